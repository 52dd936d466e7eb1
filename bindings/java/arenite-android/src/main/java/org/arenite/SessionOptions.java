// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/**
 * Options of a session. Zeros are defaults. The fields are those of arn_session_options in
 * arenite.h.
 */
public final class SessionOptions {
  /** Backend */
  public Backend backend = Backend.CPU;
  /** KvType of keys, and of values unless kv_value_type differs */
  public KvType kvType = KvType.INT8;
  /** per sequence; 0: the model's max_context, at most 4096 */
  public int contextTokens;
  /**
   * tokens per prefill step; 0: 128. On a GPU, without all_logits and speculation, 0: up to 512,
   * as the device wants
   */
  public int prefillChunk;
  /** 0: the number of performance cores */
  public int nThreads;
  /** a power of two, 8..1024; 0: 32, with INT4 keys 64 */
  public int kvPageTokens;
  /** 1: reserves logits for every position of a chunk (arn_session_prefill_logits) */
  public boolean allLogits;
  /** 0: 1 */
  public int maxSequences;
  /**
   * Total KV tokens of all sequences, tokens shared by forks counted once; rounded up to pages. 0:
   * enough for all sequences to be full.
   */
  public int kvTokens;
  /** Overflow */
  public Overflow overflow = Overflow.STOP;
  /** Overflow.SHIFT: leading tokens that are kept, rounded up to pages */
  public int pinnedTokens;
  /** 1: every run recomputes all tokens of its sequences (slow: for comparisons) */
  public boolean noCache;
  /**
   * If not null: stores the KV pages of full-attention layers in a file of this name, so that a
   * cache can be larger than memory: what does not fit is read a layer ahead
   * (arn_session_stats_data has the bytes). The session creates the file, sparse, and unlinks it
   * at once: nothing is left behind. The name must be unused, and kv_bytes must fit the disk (else
   * Status.DISK_FULL); a disk that fills up later ends the process (SIGBUS). Status.UNSUPPORTED if
   * the caller provides the memory.
   */
  public String kvFile;
  /** KvType, or KvType.AS_KEYS */
  public KvType kvValueType = KvType.AS_KEYS;
  /** INT4, INT2: most recent tokens that stay int8; 0: 128 */
  public int kvResidual;
  /**
   * INT4, INT2: quantisation group size in tokens (keys) and channels (values), a divisor of
   * kv_page_tokens; 0: its default or a page
   */
  public int kvGroupSize;
  /**
   * Models with an encoder: encoder rows reserved per sequence; 0: the model's maximum, for token
   * ids at most 512.
   */
  public int encoderRows;
  /** for runs with more than one token of a sequence; 0: n_threads */
  public int nPrefillThreads;
  /**
   * VULKAN, AUTO, VULKAN_CPU: device number or part of its name; null: the best one. Ignored by
   * other backends. Must stay valid until arn_session_create returns.
   */
  public String device;
  /**
   * Cpus With PERFORMANCE and MASK creation fails with Status.UNSUPPORTED if the affinity read
   * back differs from the request, or if the backend has no threads.
   */
  public Cpus cpus = Cpus.AUTO;
  /**
   * 1: finds energy counters and thermal zones, for arn_session_stats. Implied by a thermal limit.
   */
  public boolean sensors;
  /** Cpus.MASK: bit i is CPU i, for the first 64 */
  public long cpuMask;
  /**
   * Rate limit: sleeps before decoding more tokens than this per second, over all sequences;
   * prompts are not limited. 0: none.
   */
  public float maxTokensPerS;
  /**
   * Thermal limit in millidegrees Celsius; 0: none. Once a thermal zone reaches it, and until all
   * zones are 3 degrees cooler, the session sleeps after each run (a token or a prompt chunk).
   * Status.UNSUPPORTED if no zone can be read.
   */
  public int thermalLimitMc;
  /**
   * As thermal_limit_mc for Android's thermal headroom, which is 1 at severe throttling; 0: none.
   * Status.UNSUPPORTED if the system has none.
   */
  public float thermalHeadroom;
  /** share of time spent running while hot, 1 to 99; 0: 50 */
  public int thermalDutyPercent;
  /**
   * Uses only zones with this string in their type; null: all. Must stay valid until
   * arn_session_create returns.
   */
  public String thermalZone;
  /**
   * Directory that contains /sys, for containers; null: "". Must stay valid until
   * arn_session_create returns.
   */
  public String systemRoot;
  /**
   * 0: arn_session_create tests a GPU: it runs a few tokens several times and compares their
   * logits with those in the bundle or, if the bundle has none, with the CPU's. If they differ:
   * Status.DEVICE, or the CPU if it is the fallback. Takes memory for the test and releases it. 1:
   * no test.
   */
  public boolean trustDevice;
  /**
   * VULKAN, AUTO, VULKAN_CPU: directory of the pipeline cache, for faster creation, and of the
   * kernel choice, measured for 0.2 s in total while the first sessions are created. Damaged files
   * and files of another device, driver or library are ignored and replaced. If a driver crashes
   * the process during a measurement, a marker file makes later sessions refuse it
   * (Status.UNSUPPORTED, with the file's name). null: none. Must stay valid until
   * arn_session_create returns.
   */
  public String deviceFolder;
  /**
   * VULKAN, VULKAN_CPU: 1: refuses a software driver (slower than Backend.CPU) unless `device`
   * names it: Status.UNSUPPORTED (or the CPU), before anything is compiled. 0: uses it if there is
   * no other device. AUTO uses one only if named.
   */
  public boolean needsGpu;
  /**
   * Bits of the activations multiplied with int8 and int4 weights: 8 (or 0) or 16. 16 splits each
   * row in two 8-bit parts, multiplied together: with int8 weights only the rounding of the
   * weights remains, and prompts take twice as long. CPU and REFERENCE only; VULKAN returns
   * Status.UNSUPPORTED.
   */
  public int activationBits;
  /**
   * Bytes for each constraint (constrain.h), part of io_bytes; ordinary schemas take less than 1
   * MiB. 0: no constraints.
   */
  public long constraintBytes;
  /** different constraints at a time; 0: one for each sequence */
  public int maxConstraints;
  /**
   * 1: reserves a row of logits for the options of arn_sampling that change logits before a token
   * is sampled: penalties, biases, suppressed tokens (arn_sampling_option_info.is_processor).
   * Implied if the checkpoint's own defaults have some.
   */
  public boolean logitsProcessors;
  /**
   * Elements reserved per sequence for the lists of arn_sampling, all lists together; at least as
   * many as the checkpoint's own defaults have.
   */
  public int samplingWords;
  /**
   * Snapshots of the recurrent states (Mamba, short convolutions) kept for each sequence, up to
   * 1024, so that it can be rewound: one every snapshot_every tokens, and one at each
   * arn_session_mark. When all are in use, the older ones thin out. arn_memory_plan has their
   * bytes; models without such states need none and take none. 0: none.
   */
  public int stateSnapshots;
  /** 0: prefill_chunk; context_tokens or more: only marks */
  public int snapshotEvery;
  /**
   * Speculate: arn_session_generate, and the steps of a scheduler, run guesses of the next tokens
   * beside each token, where that is expected to be faster. The tokens, and the random numbers
   * that they take, are those of a session without. Status.UNSUPPORTED with no_cache, with INT4 or
   * INT2 KV beside layers with a recurrent state, and for a GPU without a fallback; while a GPU is
   * in use, and with max_tokens_per_s or a thermal limit, nothing is guessed.
   * arn_memory_plan.speculation_bytes is what it takes.
   */
  public Speculate speculation = Speculate.NONE;
  /** guesses that a run verifies at most, up to 63, less than prefill_chunk; 0: 15 */
  public int maxGuesses;
  /**
   * 1: verifies every guess there is, whatever it costs: for tests and measurements. 0: those that
   * are expected to save time
   */
  public int guessAlways;
  /**
   * Models with an encoder: KvType.F32, F16 or INT8 for the keys and values of its output, which
   * cross-attention reads; others are Status.UNSUPPORTED. KvType.AS_KEYS: as kv_type and
   * kv_value_type, where INT4 and INT2 count as INT8. Ignored by other models.
   */
  public KvType encoderKvType = KvType.AS_KEYS;
  /**
   * RopeScaling: extends max_context by rope_factor, as if config.json had the scaling. Saved
   * states and the bundle's prefix are of one scaling only. Status.UNSUPPORTED for models with a
   * scaling of their own, frequencies by layer type, learned positions or an encoder, and for
   * bundles from before 0.2.
   */
  public RopeScaling ropeScaling = RopeScaling.AS_TRAINED;
  /** with rope_scaling: above 1, at most 1024; else 0 */
  public float ropeFactor;
  /**
   * KvAxis of INT4 and INT2, to compare caches: slower than the default. Status.UNSUPPORTED on a
   * GPU.
   */
  public KvAxis kvKeyAxis = KvAxis.DEFAULT;
  public KvAxis kvValueAxis = KvAxis.DEFAULT;
  /**
   * Embeddings of images that the sequences may hold at a time (arn_session_prefill_embeddings).
   * arn_memory_plan has their bytes.
   */
  public int embeddingRows;
  /**
   * Requests that a scheduler of this session takes at a time, those that wait included
   * (scheduler.h); 0: it has none. Status.UNSUPPORTED for models with an encoder, and with
   * no_cache or another overflow than STOP. arn_memory_plan.scheduler_bytes is what it takes.
   */
  public int maxRequests;
  /**
   * VULKAN, AUTO, VULKAN_CPU: 1: matmuls of prompts with f16 and bf16 weights may multiply in f16
   * on a GPU that has such arithmetic, if that measures faster (device_folder). Sums of 32
   * products go on in f32; a matmul's outputs are off by less than a thousandth (root mean
   * square). 0: all in f32. Other weights and backends ignore it.
   */
  public boolean halfProducts;
}
