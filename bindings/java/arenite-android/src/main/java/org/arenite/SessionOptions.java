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
   * Backend.VULKAN: a device's number, or a part of its name; null: the best one. Other backends
   * read nothing of it. Read until the session is there
   */
  public String device;
}
