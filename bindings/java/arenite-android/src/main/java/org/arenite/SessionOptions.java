// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/**
 * How a session is to be. Zeros are defaults. The fields are those of arn_session_options in
 * arenite.h.
 */
public final class SessionOptions {
  /** Backend */
  public int backend;
  /** KvType: of keys, and of values unless kv_value_type says another */
  public int kvType = 2;
  /** of one sequence; 0: the model's max_context, at most 4096 */
  public int contextTokens;
  /** tokens a prefill step; 0: 128 */
  public int prefillChunk;
  /** 0: as many as there are performance cores */
  public int nThreads;
  /** a power of two, 8..1024; 0: 32 */
  public int kvPageTokens;
  /** 1: room for the logits of every position of a chunk (arn_session_prefill_logits) */
  public boolean allLogits;
  /** 0: 1 */
  public int maxSequences;
  /**
   * tokens that all sequences hold together, those that forks share counted once; rounded up to
   * pages; 0: those of all full
   */
  public int kvTokens;
  /** Overflow */
  public int overflow;
  /** Overflow.SHIFT: the first tokens that stay, rounded up to pages */
  public int pinnedTokens;
  /** 1: every run computes all tokens of its sequences anew (slow: for comparisons) */
  public boolean noCache;
  /**
   * not null: the KV pages of layers that see all tokens lie in a file of this name, so that the
   * OS can write them to the disk and drop them. The session makes it, sparse, and removes the
   * name at once: nothing is left behind. There must be nothing else of that name, and room for
   * kv_bytes (else Status.DISK_FULL); a disk that fills up later ends the process (SIGBUS).
   * Status.UNSUPPORTED when the caller gives the memory
   */
  public String kvFile;
  /** KvType, or KvType.AS_KEYS */
  public int kvValueType = 255;
  /** INT4, INT2: tokens that stay int8; 0: 128 */
  public int kvResidual;
  /**
   * INT4, INT2: tokens (keys) and channels (values) that share a range, a divisor of
   * kv_page_tokens; 0: 32 or a page
   */
  public int kvGroupSize;
  /**
   * of models with a source: rows of it that a sequence has room for; 0: the model's, of tokens at
   * most 512
   */
  public int sourceRows;
  /** of runs with more than one token of a sequence; 0: n_threads */
  public int nPrefillThreads;
  /**
   * VULKAN, AUTO, VULKAN_CPU: a device's number, or a part of its name; null: the best one. Other
   * backends read nothing of it. Read until the session is there
   */
  public String device;
  /**
   * Cpus PERFORMANCE and MASK: the session is not created (Status.UNSUPPORTED) when the threads,
   * read back, may not run on just these, and not on backends that have no threads of their own
   */
  public int cpus;
  /**
   * 1: look for counters of energy and for thermal zones when the session is created, for
   * arn_session_stats. Also where there is a limit to the heat
   */
  public boolean sensors;
  /** Cpus.MASK: bit i is CPU i, of the first 64 */
  public long cpuMask;
  /**
   * 0: as many as can be. Else the session sleeps before it decodes more of them, all sequences
   * together; prompts are not held back
   */
  public float maxTokensPerS;
  /**
   * 0: none. Else, from the time on that a thermal zone has so many thousandths of a degree until
   * all of them are 3 degrees cooler, the session sleeps after each run (a token, a chunk of a
   * prompt). Status.UNSUPPORTED when no zone can be read
   */
  public int heatLimitMc;
  /**
   * 0: none. The same of Android's thermal headroom, which is 1 where the system throttles
   * severely. Status.UNSUPPORTED where there is none
   */
  public float heatHeadroom;
  /** of the time that it runs while it is hot, 1 to 99; 0: 50 */
  public int heatDutyPercent;
  /** only zones with this in their type count; null: all. Read until the session is there */
  public String heatZone;
  /**
   * in which /sys lies, for a container that has it elsewhere; null: "". Read until the session is
   * there
   */
  public String systemRoot;
  /**
   * of a GPU. 0: arn_session_create lets it compute a few tokens, several times, and compares
   * their logits with those that the bundle has of them or, without such, with the CPU's; when it
   * is wrong, Status.DEVICE, or the CPU if that is in reserve. Memory for it is taken and given
   * back. 1: not
   */
  public boolean trustDevice;
  /**
   * VULKAN, AUTO, VULKAN_CPU: a folder in which the driver's compiled pipelines are kept, for
   * faster creation, and which kernels are fast on it: measured for 0.2 s, in one session or a
   * few, when they are created. What is damaged or of another device, driver or library is ignored
   * and replaced. A driver that ends the process while it is tested leaves a file there by which
   * it is refused from then on (Status.UNSUPPORTED, with its name). null: none. Read until the
   * session is there
   */
  public String deviceFolder;
}
