/* Part of arenite.h: sessions. */
#ifndef ARENITE_SESSION_H_
#define ARENITE_SESSION_H_

#include <arenite/adapter.h>
#include <arenite/model.h>
#include <arenite/reply.h>
#include <arenite/sampling_info.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct arn_session arn_session;

/* Storage types of keys and values. INT4 and INT2 are written as int8 first. A page whose tokens
 * are all older than the residual is quantised to 4 or 2 bits: keys per channel, values per token.
 */
enum {
  ARN_KV_F32 = 0,
  ARN_KV_F16 = 1,
  ARN_KV_INT8 = 2,
  ARN_KV_INT4 = 3,
  ARN_KV_INT2 = 4,
  ARN_KV_AS_KEYS = 255
};
/* Returns the name of ARN_KV_..., such as "int8"; NULL if the number is not a storage type. The
 * types are numbered from 0 without gaps. */
ARN_API const char* arn_kv_type_name(uint32_t kv_type);
/* Which INT4 and INT2 values share a range: kv_group_size tokens of a channel, or kv_group_size
 * channels of a token. */
enum {
  ARN_KV_AXIS_DEFAULT = 0, /* keys per channel, values per token: the smallest error, and fastest */
  ARN_KV_AXIS_CHANNEL = 1,
  ARN_KV_AXIS_TOKEN = 2
};
/* Policy when a sequence reaches context_tokens. */
enum {
  /* generate ends with ARN_FINISH_CONTEXT and other calls with ARN_CONTEXT_FULL once the token
   * after the full context has been chosen. */
  ARN_OVERFLOW_STOP = 0,
  ARN_OVERFLOW_ERROR = 1, /* every call, generate included, then ends with ARN_CONTEXT_FULL */
  /* Drops the oldest unpinned tokens, a quarter at a time, and moves the rest down to their
   * positions. ARN_UNSUPPORTED if layers keep a recurrent state. */
  ARN_OVERFLOW_SHIFT = 2
};
/* Backends of a session.
 *
 * ARN_BACKEND_VULKAN: keeps weights, KV pages and activations in GPU memory. ARN_UNSUPPORTED, with
 * the reason, if the model uses an unsupported feature, if there is no driver, or if the library
 * was built without Vulkan. If the device fails later, all further calls return ARN_DEVICE,
 * ARN_DEVICE_LOST or ARN_OUT_OF_MEMORY.
 *
 * ARN_BACKEND_AUTO: Vulkan if there is a GPU (software drivers are skipped unless `device` names
 * one), else the CPU. The CPU part of the session is always created: if the device fails in any
 * call, session and call continue on the CPU without an allocation. This recomputes all tokens of
 * the sequences, which takes as long as prefilling them. arn_session_backend returns the backend in
 * use and the reason.
 *
 * ARN_BACKEND_VULKAN_CPU: as AUTO, but runs with one token per sequence use the CPU: prompts on the
 * GPU, decoding on the CPU. Each KV page is copied between them once, when it is needed. */
enum {
  ARN_BACKEND_CPU = 0,
  ARN_BACKEND_REFERENCE = 1,
  ARN_BACKEND_VULKAN = 2,
  ARN_BACKEND_AUTO = 3,
  ARN_BACKEND_VULKAN_CPU = 4
};

/* Where guesses of the next tokens come from (docs/speculation.md). */
enum {
  ARN_SPECULATE_NONE = 0,
  ARN_SPECULATE_NGRAM = 1, /* what followed the same tokens earlier in the sequence */
  ARN_SPECULATE_DRAFT = 2, /* what a smaller model would write: arn_session_options.draft */
  ARN_SPECULATE_AUTO = 3,  /* NGRAM, and where that has nothing DRAFT, if there is a model, else
                              MTP, if the bundle has a head */
  ARN_SPECULATE_MTP = 4    /* what the model's own head predicts (multi-token prediction), or its
                              assistant, which bundles of some families have; not on a GPU */
};

/* Scaling of RoPE for contexts beyond the one a checkpoint was trained for. */
enum {
  ARN_ROPE_AS_TRAINED = 0,
  ARN_ROPE_LINEAR = 1, /* positions divided by the factor: for checkpoints tuned with it */
  ARN_ROPE_YARN = 2    /* keeps the frequencies of near tokens (https://arxiv.org/abs/2309.00071) */
};

/* CPU affinity of a session's threads, including the calling thread during calls that run the
 * model. arn_session_cpus (device.h) returns the result. */
enum {
  ARN_CPUS_AUTO = 0, /* the performance CPUs if there are also others and no more threads than
                        these; else as ALL */
  ARN_CPUS_PERFORMANCE = 1, /* the performance CPUs, for any number of threads */
  ARN_CPUS_ALL = 2,         /* placed by the system */
  ARN_CPUS_MASK = 3         /* the CPUs of cpu_mask */
};

typedef struct arn_session_options {
  size_t struct_size;
  uint32_t backend;        /* ARN_BACKEND_... */
  uint32_t kv_type;        /* ARN_KV_... of keys, and of values unless kv_value_type differs */
  uint32_t context_tokens; /* per sequence; 0: the model's max_context, at most 4096 */
  uint32_t prefill_chunk;  /* tokens per prefill step; 0: 128. On a GPU, without all_logits and
                              speculation, 0: up to 512, as the device wants */
  uint32_t n_threads;      /* 0: the number of performance cores */
  uint32_t kv_page_tokens; /* a power of two, 8..1024; 0: 32, with INT4 keys 64 */
  uint32_t all_logits;     /* 1: reserves logits for every position of a chunk
                              (arn_session_prefill_logits) */
  uint32_t max_sequences;  /* 0: 1 */
  uint32_t kv_tokens;      /* Total KV tokens of all sequences, tokens shared by forks counted once;
                              rounded up to pages. 0: enough for all sequences to be full. */
  uint32_t overflow;       /* ARN_OVERFLOW_... */
  uint32_t pinned_tokens;  /* ARN_OVERFLOW_SHIFT: leading tokens that are kept, rounded up to
                              pages */
  uint32_t no_cache;       /* 1: every run recomputes all tokens of its sequences (slow: for
                              comparisons) */
  /* If not NULL: stores the KV pages of full-attention layers in a file of this name, so that a
   * cache can be larger than memory: what does not fit is read a layer ahead
   * (arn_session_stats_data has the bytes). The session creates the file, sparse, and unlinks it at
   * once: nothing is left behind. The name must be unused, and kv_bytes must fit the disk (else
   * ARN_DISK_FULL); a disk that fills up later ends the process (SIGBUS). ARN_UNSUPPORTED if the
   * caller provides the memory. */
  const char* kv_file;
  uint32_t kv_value_type;     /* ARN_KV_..., or ARN_KV_AS_KEYS */
  uint32_t kv_residual;       /* INT4, INT2: most recent tokens that stay int8; 0: 128 */
  uint32_t kv_group_size;     /* INT4, INT2: quantisation group size in tokens (keys) and channels
                                 (values), a divisor of kv_page_tokens; 0: its default or a page */
  uint32_t encoder_rows;      /* Models with an encoder: encoder rows reserved per sequence; 0: the
                                model's maximum, for token ids at most 512. */
  uint32_t n_prefill_threads; /* for runs with more than one token of a sequence; 0: n_threads */
  /* VULKAN, AUTO, VULKAN_CPU: device number or part of its name; NULL: the best one. Ignored by
   * other backends. Must stay valid until arn_session_create returns. */
  const char* device;
  /* ARN_CPUS_... With PERFORMANCE and MASK creation fails with ARN_UNSUPPORTED if the affinity read
   * back differs from the request, or if the backend has no threads. */
  uint32_t cpus;
  uint32_t sensors;       /* 1: finds energy counters and thermal zones, for arn_session_stats.
                             Implied by a thermal limit. */
  uint64_t cpu_mask;      /* ARN_CPUS_MASK: bit i is CPU i, for the first 64 */
  float max_tokens_per_s; /* Rate limit: sleeps before decoding more tokens than this per second,
                             over all sequences; prompts are not limited. 0: none. */
  /* Thermal limit in millidegrees Celsius; 0: none. Once a thermal zone reaches it, and until all
   * zones are 3 degrees cooler, the session sleeps after each run (a token or a prompt chunk).
   * ARN_UNSUPPORTED if no zone can be read. */
  int32_t thermal_limit_mc;
  float thermal_headroom; /* As thermal_limit_mc for Android's thermal headroom, which is 1 at
                          severe throttling; 0: none. ARN_UNSUPPORTED if the system has none. */
  uint32_t thermal_duty_percent; /* share of time spent running while hot, 1 to 99; 0: 50 */
  const char* thermal_zone; /* Uses only zones with this string in their type; NULL: all. Must stay
                            valid until arn_session_create returns. */
  const char* system_root;  /* Directory that contains /sys, for containers; NULL: "". Must stay
                               valid until arn_session_create returns. */
  /* 0: arn_session_create tests a GPU: it runs a few tokens several times and compares their logits
   * with those in the bundle or, if the bundle has none, with the CPU's. If they differ:
   * ARN_DEVICE, or the CPU if it is the fallback. Takes memory for the test and releases it. 1: no
   * test. */
  uint32_t trust_device;
  /* VULKAN, AUTO, VULKAN_CPU: directory of the pipeline cache, for faster creation, and of the
   * kernel choice, measured for 0.2 s in total while the first sessions are created. Damaged files
   * and files of another device, driver or library are ignored and replaced. If a driver crashes
   * the process during a measurement, a marker file makes later sessions refuse it
   * (ARN_UNSUPPORTED, with the file's name). NULL: none. Must stay valid until arn_session_create
   * returns. */
  const char* device_folder;
  /* VULKAN, VULKAN_CPU: 1: refuses a software driver (slower than ARN_BACKEND_CPU) unless `device`
   * names it: ARN_UNSUPPORTED (or the CPU), before anything is compiled. 0: uses it if there is no
   * other device. AUTO uses one only if named. */
  uint32_t needs_gpu;
  /* Bits of the activations multiplied with int8 and int4 weights: 8 (or 0) or 16. 16 splits each
   * row in two 8-bit parts, multiplied together: with int8 weights only the rounding of the weights
   * remains, and prompts take twice as long. CPU and REFERENCE only; VULKAN returns
   * ARN_UNSUPPORTED. */
  uint32_t activation_bits;
  /* Bytes for each constraint (constrain.h), part of io_bytes; ordinary schemas take less than 1
   * MiB. 0: no constraints. */
  uint64_t constraint_bytes;
  uint32_t max_constraints; /* different constraints at a time; 0: one for each sequence */
  /* 1: reserves a row of logits for the options of arn_sampling that change logits before a token
   * is sampled: penalties, biases, suppressed tokens (arn_sampling_option_info.is_processor).
   * Implied if the checkpoint's own defaults have some. */
  uint32_t logits_processors;
  /* Elements reserved per sequence for the lists of arn_sampling, all lists together; at least as
   * many as the checkpoint's own defaults have. */
  uint32_t sampling_words;
  /* Snapshots of the recurrent states (Mamba, short convolutions) kept for each sequence, up to
   * 1024, so that it can be rewound: one every snapshot_every tokens, and one at each
   * arn_session_mark. When all are in use, the older ones thin out. arn_memory_plan has their
   * bytes; models without such states need none and take none. 0: none. */
  uint32_t state_snapshots;
  uint32_t snapshot_every; /* 0: prefill_chunk; context_tokens or more: only marks */
  /* ARN_SPECULATE_...: arn_session_generate, and the steps of a scheduler, run guesses of the next
   * tokens beside each token, where that is expected to be faster. The tokens, and the random
   * numbers that they take, are those of a session without. ARN_UNSUPPORTED with no_cache, with
   * INT4 or INT2 KV beside layers with a recurrent state, and for a GPU without a fallback; while a
   * GPU is in use, and with max_tokens_per_s or a thermal limit, nothing is guessed.
   * arn_memory_plan.speculation_bytes is what it takes. */
  uint32_t speculation;
  uint32_t max_guesses;  /* guesses that a run verifies at most, up to 63, less than prefill_chunk;
                            0: 15 */
  uint32_t guess_always; /* 1: verifies every guess there is, whatever it costs: for tests and
                            measurements. 0: those that are expected to save time */
  /* Models with an encoder: ARN_KV_F32, F16 or INT8 for the keys and values of its output, which
   * cross-attention reads; others are ARN_UNSUPPORTED.
   * ARN_KV_AS_KEYS: as kv_type and kv_value_type, where INT4 and INT2 count as INT8. Ignored by
   * other models. */
  uint32_t encoder_kv_type;
  /* ARN_ROPE_...: extends max_context by rope_factor, as if config.json had the scaling. Saved
   * states and the bundle's prefix are of one scaling only. ARN_UNSUPPORTED for models with a
   * scaling of their own, frequencies by layer type, learned positions or an encoder, and for
   * bundles from before 0.2. */
  uint32_t rope_scaling;
  float rope_factor; /* with rope_scaling: above 1, at most 1024; else 0 */
  /* ARN_KV_AXIS_... of INT4 and INT2, to compare caches: slower than the default. ARN_UNSUPPORTED
   * on a GPU. */
  uint32_t kv_key_axis;
  uint32_t kv_value_axis;
  uint32_t n_adapters; /* of `adapters` */
  /* Adapters that the sequences may use (arn_session_set_adapters). They must outlive the session;
   * the array is read only during the call. VULKAN: ARN_UNSUPPORTED; AUTO and VULKAN_CPU take the
   * CPU. arn_memory_plan has their bytes. */
  const arn_adapter* const* adapters;
  /* Embeddings of images that the sequences may hold at a time (arn_session_prefill_embeddings).
   * arn_memory_plan has their bytes. */
  uint32_t embedding_rows;
  /* ARN_SPECULATE_DRAFT and AUTO: an open model with the same tokens (else ARN_BAD_ARGUMENT), which
   * runs on the CPU and writes guesses greedily. Sampling, constraints and adapters of the
   * sequences do not reach it. It has a cache for one sequence of context_tokens in the session's
   * block, and reads what it has not seen of a text when it is asked for guesses. Models with an
   * encoder or a recurrent state are ARN_UNSUPPORTED. It must outlive the session. */
  const arn_model* draft;
  /* Requests that a scheduler of this session takes at a time, those that wait included
   * (scheduler.h); 0: it has none. ARN_UNSUPPORTED for models with an encoder, and with no_cache or
   * another overflow than STOP. arn_memory_plan.scheduler_bytes is what it takes. */
  uint32_t max_requests;
  /* VULKAN, AUTO, VULKAN_CPU: 1: matmuls of prompts with f16 and bf16 weights may multiply in f16
   * on a GPU that has such arithmetic, if that measures faster (device_folder). Sums of 32 products
   * go on in f32; a matmul's outputs are off by less than a thousandth (root mean square). 0: all
   * in f32. Other weights and backends ignore it. */
  uint32_t half_products;
} arn_session_options;
#define ARN_SESSION_OPTIONS_INIT                                                                   \
  {                                                                                                \
    sizeof(arn_session_options), ARN_BACKEND_CPU, ARN_KV_INT8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL, \
        ARN_KV_AS_KEYS, 0, 0, 0, 0, NULL, ARN_CPUS_AUTO, 0, 0, 0, 0, 0, 0, NULL, NULL, 0, NULL, 0, \
        0, 0, 0, 0, 0, 0, 0, ARN_SPECULATE_NONE, 0, 0, ARN_KV_AS_KEYS, ARN_ROPE_AS_TRAINED, 0,     \
        ARN_KV_AXIS_DEFAULT, ARN_KV_AXIS_DEFAULT, 0, NULL, 0, NULL, 0, 0                           \
  }

/* Memory use of a session by region. total_bytes = constants + kv + activations + io is the size of
 * its block. With ARN_BACKEND_VULKAN the block is constants + io, and the rest is in device_bytes.
 * With ARN_BACKEND_AUTO and VULKAN_CPU it is both: the block has room for the CPU to take over. If
 * the session reserves the block itself, kv and activations are committed only then. */
typedef struct arn_memory_plan {
  size_t struct_size;
  uint64_t weights_bytes;   /* of the bundle; read-only, shared, not part of the block */
  uint64_t constants_bytes; /* session state, tables, repacked weights */
  uint64_t repacked_bytes;  /* part of constants_bytes: weights repacked for this CPU */
  uint64_t kv_bytes;        /* reserved; committed as tokens are added */
  uint64_t kv_bytes_per_token;
  uint64_t activations_bytes;
  uint64_t io_bytes;
  uint64_t total_bytes;
  uint64_t alignment;      /* of the block */
  uint32_t context_tokens; /* options after defaults are applied */
  uint32_t prefill_chunk;  /* the most, where a GPU chooses */
  uint32_t n_threads;
  uint32_t kv_page_tokens;
  uint32_t max_sequences;
  uint32_t kv_tokens;
  uint32_t n_kv_groups; /* see arn_session_plan_group */
  uint32_t n_prefill_threads;
  uint32_t n_performance_cpus; /* performance CPUs that the process may use */
  /* 1: there are other CPUs too, and threads stay on the performance CPUs, the calling thread
   * during calls. 0: all CPUs are alike, or more threads were requested than there are performance
   * CPUs; the system places them. */
  uint32_t keeps_to_performance_cpus;
  uint64_t device_bytes; /* VULKAN, AUTO, VULKAN_CPU: all buffers on the device: weights, KV pages,
                            activations, logits, run parameters, and a staging buffer. */
  uint64_t copied_bytes; /* ARN_RESIDENCY_COPIED: the model's copy of the bundle, in whole pages.
                            Not part of the block, allocated once for all sessions. 0: no copy. */
  uint64_t constraints_bytes; /* part of io_bytes: constraints, and a copy of the logits for them */
  uint64_t snapshots_bytes;   /* part of kv_bytes: slots for snapshots of recurrent states */
  uint32_t state_snapshots;   /* per sequence; 0 without recurrent states, and with no_cache */
  uint32_t snapshot_every;
  uint64_t speculation_bytes; /* part of io_bytes: the index of n-grams (of each sequence with
                                 max_requests), logits of guesses, and draft_bytes */
  uint32_t max_guesses;       /* 0: no speculation */
  uint32_t n_adapters;
  uint64_t adapters_bytes; /* part of constants_bytes and activations_bytes: tables of adapters,
                              and rows between two matrices */
  uint64_t adapter_files_bytes; /* of the adapters' bundles, which are mapped; not part of the
                                   block */
  uint64_t embeddings_bytes;    /* part of io_bytes: of embedding_rows */
  uint32_t embedding_rows;
  uint64_t draft_bytes;         /* part of speculation_bytes: cache, activations and all else of the
                                   draft model but its bundle, or of the head of
                                   ARN_SPECULATE_MTP */
  uint64_t draft_weights_bytes; /* of the draft's bundle; not part of the block. Of a head: what
                                   weights_bytes has for it alone */
  uint64_t scheduler_bytes;     /* part of io_bytes: requests, their events and texts */
  uint32_t max_requests;
  /* Part of device_bytes: weights in the device's layout (arenite-convert --target vulkan). Where
   * the device shares the host's memory and its driver can, it reads them in the bundle's own
   * pages: they take no memory of their own then (arn_backend_info.imported_bytes). */
  uint64_t importable_bytes;
} arn_memory_plan;
#define ARN_MEMORY_PLAN_INIT                                                                      \
  {                                                                                               \
    sizeof(arn_memory_plan), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0                                                  \
  }

/* Computes the memory use of a session with these options without allocating. `options` may be
 * NULL. */
ARN_API arn_status arn_session_plan(const arn_model* model, const arn_session_options* options,
                                    char* error, size_t error_bytes, arn_memory_plan* out_plan);

/* A group of layers that share a page pool: layers with the same KV shape and attention mask, or
 * layers with the same state size. */
typedef struct arn_kv_group_info {
  size_t struct_size;
  uint32_t n_layers; /* layers with their own keys and values */
  uint32_t n_kv_heads;
  uint32_t head_dim;
  uint32_t window; /* tokens that a query attends to, itself included; 0: all */
  uint32_t chunk;  /* A query attends only within its chunk of this many positions; 0: no chunks. */
  uint32_t page_tokens;
  uint32_t n_pages;        /* pages in the pool */
  uint32_t sequence_pages; /* maximum pages of one sequence */
  uint64_t page_bytes;
  uint64_t offset;            /* offset of the pool in the KV region */
  uint32_t n_quantised_pages; /* pages in the pool of quantised pages; 0: none */
  uint64_t quantised_page_bytes;
  uint64_t quantised_offset;
  uint32_t residual; /* most recent tokens, never quantised; 0 without quantised pages */
  /* Bytes per layer; 0: keys and values. Otherwise each page is a slot with the states of one
   * sequence, independent of its length: heads, dimension, window, chunk and page_tokens are 0. */
  uint64_t state_bytes;
  uint32_t is_encoder; /* 1: cross-attention: a page holds a sequence's encoder output, up to
                         page_tokens rows */
} arn_kv_group_info;
#define ARN_KV_GROUP_INFO_INIT \
  { sizeof(arn_kv_group_info), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
/* Returns a KV group of the plan. ARN_BAD_ARGUMENT unless index < arn_memory_plan.n_kv_groups. */
ARN_API arn_status arn_session_plan_group(const arn_model* model,
                                          const arn_session_options* options, uint32_t index,
                                          char* error, size_t error_bytes,
                                          arn_kv_group_info* out_group);

/* Creates a session in `memory` (arn_memory_plan.total_bytes, aligned to .alignment; need not be
 * cleared; must outlive the session). NULL: reserves pages from the OS and commits them on use.
 * ARN_OUT_OF_MEMORY if memory_bytes is too small. */
ARN_API arn_status arn_session_create(const arn_model* model, const arn_session_options* options,
                                      void* memory, uint64_t memory_bytes, char* error,
                                      size_t error_bytes, arn_session** out_session);
/* Stops the session's threads and releases what it allocated. NULL is allowed. */
ARN_API void arn_session_destroy(arn_session* session);

/* Returns the message of the last failed call on this session; "" if none. */
ARN_API const char* arn_session_last_error(const arn_session* session);

/* Backend in use. */
typedef struct arn_backend_info {
  size_t struct_size;
  uint32_t backend;   /* ARN_BACKEND_..., never AUTO */
  const char* name;   /* "cpu", "reference", "vulkan", "vulkan+cpu" */
  const char* device; /* VULKAN, VULKAN_CPU: device name; else "" */
  const char* reason; /* AUTO, VULKAN_CPU: why it is not Vulkan, or no longer; else "" */
  /* VULKAN, VULKAN_CPU: text for display: the matmul kernels per weight type for one, few and many
   * rows, and whether they were "measured" at creation, "remembered" in device_folder, or are
   * "fixed"; else "". */
  const char* kernels;
  /* VULKAN, VULKAN_CPU: text for display: what is not used because of known bugs of this driver,
   * with a source for each; else "". */
  const char* quirks;
  /* VULKAN, VULKAN_CPU: bytes of weights that the device reads in the bundle's own pages:
   * importable_bytes of the plan, or less where the driver takes only some of them; else 0. */
  uint64_t imported_bytes;
} arn_backend_info;
#define ARN_BACKEND_INFO_INIT \
  { sizeof(arn_backend_info), 0, NULL, NULL, NULL, NULL, NULL, 0 }
/* Returns the backend in use. The strings are owned by the session and valid until its next call.
 */
ARN_API arn_status arn_session_backend(const arn_session* session, arn_backend_info* out_info);

/* Runs the encoder on token ids for the selected sequence. Computed once; the sequence's tokens
 * attend to the output by cross-attention. May be called again at any time, which clears the
 * sequence's tokens; arn_session_reset clears both. Forks share the output. Required before tokens
 * can run (else ARN_BAD_STATE). n_ids: 1 to encoder_rows. ARN_UNSUPPORTED if the model has no
 * encoder, or one that takes features. */
ARN_API arn_status arn_session_encode_ids(arn_session* session, const int32_t* ids, size_t n_ids);
/* Runs the encoder on features: f32 [n_frames, width]. n_frames makes 1 to encoder_rows rows, as
 * arn_model_info.encoder_row_frames says; width is the model's encoder_feature_width. Features are
 * read only during the call. */
ARN_API arn_status arn_session_encode_features(arn_session* session, const float* features,
                                               uint32_t n_frames, uint32_t width);

/* Appends tokens to the sequence, runs them in chunks and computes the logits of the last one.
 * ARN_CONTEXT_FULL and ARN_BAD_TOKEN change nothing. ARN_CANCELLED keeps the finished chunks (see
 * arn_session_length); generation may continue from there. n_ids > 0. */
ARN_API arn_status arn_session_prefill(arn_session* session, const int32_t* ids, size_t n_ids);
/* Called after each chunk of arn_session_prefill and arn_session_follow: `done` of the `total`
 * tokens that the call computes have run. Return 0 to continue, anything else to end the call with
 * ARN_CANCELLED before its next chunk. What an arn_token_callback may call, this one may too. */
typedef int32_t (*arn_prefill_callback)(void* user, uint64_t done, uint64_t total);
/* Sets the callback of all later calls; NULL: none. `user` is passed to it. */
ARN_API arn_status arn_session_set_prefill_callback(arn_session* session,
                                                    arn_prefill_callback callback, void* user);
/* As arn_session_prefill for at most one chunk (prefill_chunk tokens), keeping the logits of every
 * position. Requires all_logits = 1. *out_logits: f32 [n_ids, vocab], owned by the session, valid
 * until its next call. */
ARN_API arn_status arn_session_prefill_logits(arn_session* session, const int32_t* ids,
                                              size_t n_ids, const float** out_logits);
/* Returns the logits after the last token: f32 [vocab], owned by the session, valid until its next
 * call. Sampling does not modify them. Greedy decoding does not store logits: the first request
 * after a token may take as long as the output head, further requests do not. If the logits are
 * gone (arn_session_rewind, a cancelled prefill), the last token runs once more, here and in all
 * calls that sample; that run is not cancellable. Where layers keep a recurrent state, the tokens
 * behind the last snapshot before it run too; that can be cancelled and repeated. ARN_BAD_STATE for
 * an empty sequence, and if the cache cannot go back by that one token: prefill one more instead.
 * ARN_CONTEXT_FULL once the token after a full context has been chosen. */
ARN_API arn_status arn_session_logits(const arn_session* session, const float** out_logits);

/* Sets the sampling of arn_session_decode and arn_session_generate, and restarts the random numbers
 * at seed. A new session is greedy. The lists are copied. ARN_BAD_ARGUMENT names a value out of its
 * range. ARN_UNSUPPORTED: an option needs more than logits_processors and sampling_words of
 * arn_session_options reserved. */
ARN_API arn_status arn_session_set_sampling(arn_session* session, const arn_sampling* sampling);
/* Makes the sequence use n of the session's adapters, by their indices in
 * arn_session_options.adapters, all of them added up; n = 0: none, as in a new session. scales[i]
 * multiplies what adapter adapters[i] changes; NULL: 1. Allocates nothing and computes nothing.
 * ARN_BAD_STATE unless the sequence is empty, so that its keys and values are of the same adapters:
 * reset it, or rewind it to 0, first. arn_session_reset keeps them, arn_session_fork copies them,
 * and beams use those of their prompt. While some are set, the bundle's prefix is not used, and a
 * saved state is restored only if each sequence with tokens uses the adapters that it was saved
 * with. ARN_BAD_ARGUMENT: an index that the session does not have, or twice; a scale that is not
 * finite. */
ARN_API arn_status arn_session_set_adapters(arn_session* session, const uint32_t* adapters,
                                            const float* scales, size_t n);
/* Samples the next token, appends it and runs it. At a full context it is the last token, neither
 * appended nor run. ARN_CONTEXT_FULL, once that token has been chosen, and ARN_CANCELLED change
 * nothing. */
ARN_API arn_status arn_session_decode(arn_session* session, int32_t* out_id);
/* Samples a token from the current logits without running it. */
ARN_API arn_status arn_session_sample(arn_session* session, int32_t* out_id);

/* Returns the number of tokens in the sequence. */
ARN_API uint32_t arn_session_length(const arn_session* session);
/* Returns the token ids of the sequence: owned by the session, valid until its next call. */
ARN_API arn_status arn_session_tokens(const arn_session* session, const int32_t** out_ids,
                                      uint32_t* out_count);
/* Clears the sequence; keeps memory, sampling and statistics. */
ARN_API arn_status arn_session_reset(arn_session* session);
/* Drops the tokens from `position` on (0 <= position <= length), and the logits unless position is
 * the length. Generation then runs the token before `position` again first (see
 * arn_session_logits); prefill does not. Layers with a recurrent state continue from the last
 * snapshot up to `position` (state_snapshots), and the tokens in between run again with the next
 * call that runs tokens. ARN_BAD_STATE, with nothing changed, if a sliding-window layer has freed
 * tokens that the token at `position`, or at that snapshot, attends to, or if there are recurrent
 * states and state_snapshots is 0 (only the length is allowed then): see
 * arn_session_first_rewind_position. */
ARN_API arn_status arn_session_rewind(arn_session* session, uint32_t position);
ARN_API uint32_t arn_session_first_rewind_position(const arn_session* session);
/* Returns where the sequence would continue from after arn_session_rewind(position): the tokens
 * from there to `position` would run again. Without recurrent states it is `position`. */
ARN_API uint32_t arn_session_resume_position(const arn_session* session, uint32_t position);
/* Keeps a snapshot of the recurrent states at the end of the sequence, so that a later rewind to it
 * computes nothing again: for the borders of turns, and before guesses. Marks have half of the
 * slots of state_snapshots (at least one); when more are set, the older ones thin out. Copies
 * nothing. ARN_BAD_STATE if there are recurrent states and state_snapshots is 0. Does nothing where
 * any position can be rewound to without. If a rewind has left tokens to run, they run first;
 * ARN_CANCELLED then leaves the rest of them to the next call. */
ARN_API arn_status arn_session_mark(arn_session* session);
/* Makes the sequence hold exactly these tokens and computes only what is missing: keeps the common
 * prefix, drops the rest and prefills. A conversation continues by passing all of its tokens each
 * time. If they share a longer prefix with the bundle's, the sequence starts there as with
 * arn_session_use_prefix, if the session can use it. Computes the logits of the last token; at
 * least one token runs for this, unless the sequence holds exactly these tokens and has logits
 * already. All tokens run if a sliding-window layer has freed tokens that the first new token
 * attends to, or if layers keep a recurrent state, state_snapshots is 0 and the tokens do not
 * extend the sequence (arn_session_first_rewind_position). With snapshots, tokens run from the last
 * one before the first new token, and there a mark is kept (arn_session_mark). n_ids > 0; `ids` may
 * be the result of arn_session_tokens. *out_kept (may be NULL): number of reused tokens. A damaged
 * bundle prefix is an error here, not a reason to recompute. ARN_BAD_ARGUMENT, ARN_BAD_TOKEN, and
 * ARN_CONTEXT_FULL for more than context_tokens (nothing is shifted), change nothing, and *out_kept
 * is 0. ARN_CANCELLED, and ARN_CONTEXT_FULL if sequences share too small a kv_tokens, leave the
 * kept tokens and the finished chunks; another call continues from there. */
ARN_API arn_status arn_session_follow(arn_session* session, const int32_t* ids, size_t n_ids,
                                      uint32_t* out_kept);
/* Clears the sequence and starts it from the bundle's precomputed prefix: its tokens and logits are
 * available, and nothing is computed. If all other sequences are empty, the session reserved its
 * memory itself and the bundle was opened by path or descriptor, the pages are mapped copy-on-write
 * and loaded from the file on use; their hash check is then that of
 * arn_model_options.verify_hashes. Otherwise they are copied and their hash is checked: for a
 * second sequence prefer arn_session_fork, which shares them. ARN_NOT_FOUND: the bundle has no
 * prefix. ARN_SAVE_MISMATCH: computed for another KV type, page size or group size.
 * ARN_CONTEXT_FULL: does not fit context_tokens or the session's pages. ARN_HASH_MISMATCH,
 * ARN_BAD_SAVE: damaged. ARN_UNSUPPORTED with no_cache. On failure nothing changes, except that the
 * sequence is cleared if other sequences hold the pages it needs. */
ARN_API arn_status arn_session_use_prefix(arn_session* session);
/* Returns the memory of unused KV pages to the OS; it is committed again on use. *out_bytes (may be
 * NULL): upper bound of the bytes returned. ARN_UNSUPPORTED if the caller provided the memory. */
ARN_API arn_status arn_session_trim(arn_session* session, uint64_t* out_bytes);

/* ---- several sequences
 *
 * A session holds max_sequences sequences, numbered from 0, each with its own tokens, sampling and
 * logits. All other calls act on the selected one; a new session has selected 0. */

ARN_API arn_status arn_session_select(arn_session* session, uint32_t sequence);
ARN_API uint32_t arn_session_selected(const arn_session* session);
/* Copies `from` with its tokens, logits and sampling to `to`, which must be empty. They share pages
 * until one writes to them, so the copy itself costs no memory. `to` gets its own random numbers,
 * derived from those of `from` and the number `to`: sampling forks diverge, and reproducibly for a
 * seed. arn_session_set_sampling replaces them. */
ARN_API arn_status arn_session_fork(arn_session* session, uint32_t from, uint32_t to);
/* Appends ids[i] to sequences[i], 0 <= i < n, in one run. Sequences must be distinct. */
ARN_API arn_status arn_session_step(arn_session* session, const uint32_t* sequences,
                                    const int32_t* ids, size_t n);
/* Samples and runs one token for each sequence in one run. out_ids [n]. A sequence with a full
 * context samples its last token, which is not appended and does not run. ARN_CONTEXT_FULL, if a
 * sequence has had its last token, and ARN_CANCELLED change nothing (with no_cache sequences run
 * one by one, and ARN_CANCELLED keeps those that have run). */
ARN_API arn_status arn_session_decode_batch(arn_session* session, const uint32_t* sequences,
                                            size_t n, int32_t* out_ids);

/* ---- reading the cache */

typedef struct arn_kv_layer_info {
  size_t struct_size;
  uint32_t n_kv_heads;
  uint32_t head_dim;
  uint32_t kv_layer; /* layer that owns the keys and values: this layer or an earlier one */
  /* First position kept for the selected sequence. Earlier ones are dropped: no later token of a
   * layer with a window or chunks attends to them. */
  uint32_t first_position;
} arn_kv_layer_info;
#define ARN_KV_LAYER_INFO_INIT \
  { sizeof(arn_kv_layer_info), 0, 0, 0, 0 }
/* Describes what arn_session_read_kv can read of a layer. ARN_BAD_ARGUMENT if layer >= the model's
 * n_layers; ARN_UNSUPPORTED with no_cache = 1, and for a layer with a recurrent state. */
ARN_API arn_status arn_session_kv_layer(const arn_session* session, uint32_t layer,
                                        arn_kv_layer_info* out_info);
/* Reads the keys and values of `layer` at positions [first, first + n) of the selected sequence, n
 * > 0. keys, values: f32 [n_kv_heads, n, head_dim], owned by the caller; either may be NULL. Keys
 * are after RoPE, as attention uses them; quantised values are dequantised. ARN_BAD_ARGUMENT beyond
 * the sequence's tokens, ARN_BAD_STATE before the layer's first_position, ARN_UNSUPPORTED with
 * no_cache = 1 or for a layer with a recurrent state; then nothing is written. For inspection: slow
 * if the pages are in device memory, because they are read in small parts. */
ARN_API arn_status arn_session_read_kv(arn_session* session, uint32_t layer, uint32_t first,
                                       uint32_t n, float* keys, float* values);

/* Cancels the call that is running the model, on another thread or around the calling callback: it
 * ends with ARN_CANCELLED within the time of one layer. Takes effect once: a cancel with no call to
 * end, or too late for it, stays pending and ends the next call, so none is lost between two calls
 * of one task. Finished tokens are kept with the logits of the last one: the next
 * arn_session_generate, decode or prefill continues there with the same result. The interrupted
 * token is neither in the sequence nor counted; it is sampled again with the same random number. */
ARN_API void arn_session_cancel(arn_session* session);
/* Clears a pending cancel. Callable from any thread. Call it when a task begins, before handing it
 * to its thread: then only later cancels end the task. Otherwise only a call that ends with
 * ARN_CANCELLED clears a cancel. */
ARN_API void arn_session_clear_cancel(arn_session* session);

enum {
  ARN_FINISH_NONE = 0,
  ARN_FINISH_EOS = 1,      /* a stop token, or nothing may follow the constrained text */
  ARN_FINISH_STOP = 2,     /* a stop string */
  ARN_FINISH_LENGTH = 3,   /* max_tokens */
  ARN_FINISH_CONTEXT = 4,  /* the context is full */
  ARN_FINISH_CALLBACK = 5, /* ended by the callback */
  ARN_FINISH_CANCELLED = 6
};

/* Called for each new token. text: the text ready to show (whole UTF-8 characters, never the start
 * of a possible stop string; may be empty), valid during the call. Return 0 to continue, anything
 * else to stop. Text still held back at the end of generation comes in one last call with id -1;
 * its return value is ignored. The callback may make session calls that take a const arn_session
 * (length, tokens, logits, statistics and so on: the token is not in the sequence yet),
 * arn_session_cancel and arn_session_clear_cancel. All other calls return ARN_BAD_STATE and change
 * nothing. It must not destroy the session. */
typedef int32_t (*arn_token_callback)(void* user, int32_t id, const char* text, size_t text_bytes);

typedef struct arn_token_logprob {
  int32_t id;
  float logprob; /* natural logarithm of the probability */
} arn_token_logprob;
/* Returns log-probabilities of the next token in the model's own distribution: the log-softmax of
 * arn_session_logits, before temperature, penalties and the other options of arn_sampling, as in
 * OpenAI's API. Inside arn_token_callback they are those that its token was chosen from, which one
 * that is forced behind others has with with_logprobs only (ARN_BAD_STATE). Otherwise call it
 * before the token runs (arn_session_sample, then arn_session_step). *out_logprob: of `id`; may be
 * NULL. out_top: the n_top most likely tokens, best first, ties by lower id; n_top is 0 to the
 * vocabulary's size. ARN_BAD_TOKEN unless id is in the vocabulary, or -1 with out_logprob NULL.
 * Otherwise fails as arn_session_logits. */
ARN_API arn_status arn_session_logprobs(const arn_session* session, int32_t id, uint32_t n_top,
                                        arn_token_logprob* out_top, float* out_logprob);

typedef struct arn_stop_string {
  const char* text;
  size_t bytes;
} arn_stop_string;

typedef struct arn_generate_options {
  size_t struct_size;
  uint32_t max_tokens;          /* 0: until a stop token or a full context */
  uint32_t ignore_eos;          /* 1: do not stop at stop tokens */
  const arn_stop_string* stops; /* at most 16, each 1 to 256 bytes; not shown */
  size_t n_stops;
  const int32_t* extra_eos_ids; /* stop tokens besides the model's own */
  size_t n_extra_eos_ids;
  arn_token_callback callback; /* may be NULL */
  void* user;                  /* of callback and on_event */
  /* Splits the new tokens into reasoning, text and tool calls, whose events go to on_event. The
   * caller starts it (arn_reply_start); where a stop token, a stop string or a full context ends
   * the generation, the reply ends too, else call arn_reply_end or generate on. Stop strings are
   * part of the events. NULL: none. */
  arn_reply* reply;
  arn_reply_callback on_event; /* with reply; returns 0 to continue */
  /* With reply: after this many tokens of reasoning its end comes next
   * (arn_reply_options.reasoning_close). 0: the model decides. */
  uint32_t reasoning_budget;
  uint32_t no_guesses; /* 1: runs token by token, although the session has speculation */
  /* 1: the callback asks for the log-probabilities of every token. Tokens that a constraint or the
   * end of a reasoning forces run one by one then; else only the first of a run has any. */
  uint32_t with_logprobs;
  uint32_t n_top_logprobs; /* with logprobs; 0 to the vocabulary's size */
  /* Room for the log-probabilities of the new tokens, as arn_session_logprobs gives them: for each
   * token in turn 1 + n_top_logprobs entries, its own and the most likely ones. Implies
   * with_logprobs. Tokens that the room does not suffice for have none. NULL: none at all. */
  arn_token_logprob* logprobs;
  size_t logprobs_capacity; /* entries */
} arn_generate_options;
#define ARN_GENERATE_OPTIONS_INIT                                                             \
  {                                                                                           \
    sizeof(arn_generate_options), 0, 0, NULL, 0, NULL, 0, NULL, NULL, NULL, NULL, 0, 0, 0, 0, \
        NULL, 0                                                                               \
  }

typedef struct arn_generate_result {
  size_t struct_size;
  uint32_t n_tokens; /* new tokens, without the stop token */
  uint32_t finish;   /* ARN_FINISH_... */
  /* Tokens whose log-probabilities are in arn_generate_options.logprobs: the first ones, all of
   * them unless its room or the device failed. */
  uint64_t n_logprobs;
} arn_generate_result;
#define ARN_GENERATE_RESULT_INIT \
  { sizeof(arn_generate_result), 0, 0, 0 }

/* Generates from the prefilled sequence (which must not be empty). Every counted token is in the
 * sequence afterwards, except the last one at a full context: it is sampled from the logits of the
 * last position and need not run, so T tokens leave room for up to context_tokens - T + 1 new ones.
 * A stop token is not appended either. Fills *out_result on ARN_CANCELLED too, and on
 * ARN_CONTEXT_FULL (ARN_OVERFLOW_ERROR, or no KV page is free). After the last token further calls
 * generate nothing, with ARN_FINISH_CONTEXT. */
ARN_API arn_status arn_session_generate(arn_session* session, const arn_generate_options* options,
                                        arn_generate_result* out_result);

#ifdef __cplusplus
}
#endif

#endif /* ARENITE_SESSION_H_ */
