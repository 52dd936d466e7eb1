/* Part of arenite.h: sessions, which run a model. */
#ifndef ARENITE_SESSION_H_
#define ARENITE_SESSION_H_

#include <arenite/model.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct arn_session arn_session;

/* How keys and values are kept. INT4 and INT2: as int8 at first; a page whose tokens are all older
 * than the residual is sealed into 4 or 2 bits, keys with a range a channel, values with one a
 * token. */
enum {
  ARN_KV_F32 = 0,
  ARN_KV_F16 = 1,
  ARN_KV_INT8 = 2,
  ARN_KV_INT4 = 3,
  ARN_KV_INT2 = 4,
  ARN_KV_AS_KEYS = 255
};
/* What happens when a sequence has as many tokens as the context. */
enum {
  ARN_OVERFLOW_STOP = 0,  /* generate ends with ARN_FINISH_CONTEXT, other calls ARN_CONTEXT_FULL */
  ARN_OVERFLOW_ERROR = 1, /* every call ends with ARN_CONTEXT_FULL */
  ARN_OVERFLOW_SHIFT = 2  /* the oldest tokens behind the pinned ones are dropped, a quarter at a
                             time, and the rest moves down to their positions.
                             ARN_UNSUPPORTED when layers keep a state */
};
/* ARN_BACKEND_VULKAN: the weights, the KV pages and the activations of a session lie in memory of
 * the GPU. ARN_UNSUPPORTED, with the reason, where the model has something that it does not run,
 * where there is no driver, and in libraries built without it. When the device fails later, calls
 * end with ARN_DEVICE, ARN_DEVICE_LOST or ARN_OUT_OF_MEMORY from then on.
 * ARN_BACKEND_AUTO: Vulkan where there is a GPU for it (a driver in software is passed over unless
 * `device` names it), else the CPU. The CPU's part of the session is made
 * in any case: when the device fails in whatever call, the session goes on with the CPU and the
 * call with it, without an allocation. All tokens that the sequences have are computed again for
 * that, which takes the time of prefilling them. arn_session_backend tells what computes, and why.
 * ARN_BACKEND_VULKAN_CPU: the same, but that runs with one token of each sequence are the CPU's:
 * prompts on the GPU, decoding on the CPU. Pages go from the one to the other as they are needed
 * there, each once. */
enum {
  ARN_BACKEND_CPU = 0,
  ARN_BACKEND_REFERENCE = 1,
  ARN_BACKEND_VULKAN = 2,
  ARN_BACKEND_AUTO = 3,
  ARN_BACKEND_VULKAN_CPU = 4
};

/* Which CPUs a session's threads stay on, the calling thread while it is in a call that runs the
 * model. arn_session_cpus (device.h) says what became of it. */
enum {
  ARN_CPUS_AUTO = 0,        /* the performance CPUs, where there are others too and no more threads
                               than these; else as ALL */
  ARN_CPUS_PERFORMANCE = 1, /* the performance CPUs, however many threads there are */
  ARN_CPUS_ALL = 2,         /* the system places them */
  ARN_CPUS_MASK = 3         /* those of cpu_mask */
};

typedef struct arn_session_options {
  size_t struct_size;
  uint32_t backend; /* ARN_BACKEND_... */
  uint32_t kv_type; /* ARN_KV_...: of keys, and of values unless kv_value_type says another */
  uint32_t context_tokens; /* of one sequence; 0: the model's max_context, at most 4096 */
  uint32_t prefill_chunk;  /* tokens a prefill step; 0: 128 */
  uint32_t n_threads;      /* 0: as many as there are performance cores */
  uint32_t kv_page_tokens; /* a power of two, 8..1024; 0: 32 */
  uint32_t all_logits;     /* 1: room for the logits of every position of a chunk
                              (arn_session_prefill_logits) */
  uint32_t max_sequences;  /* 0: 1 */
  uint32_t kv_tokens;      /* tokens that all sequences hold together, those that forks share
                              counted once; rounded up to pages; 0: those of all full */
  uint32_t overflow;       /* ARN_OVERFLOW_... */
  uint32_t pinned_tokens;  /* ARN_OVERFLOW_SHIFT: the first tokens that stay, rounded up to pages */
  uint32_t no_cache;       /* 1: every run computes all tokens of its sequences anew (slow: for
                              comparisons) */
  const char* kv_file;     /* not NULL: the KV pages of layers that see all tokens lie in a file of
                              this name, so that the OS can write them to the disk and drop them.
                              The session makes it, sparse, and removes the name at once: nothing
                              is left behind. There must be nothing else of that name, and room for
                              kv_bytes (else ARN_DISK_FULL); a disk that fills up later ends the
                              process (SIGBUS). ARN_UNSUPPORTED when the caller gives the memory */
  uint32_t kv_value_type;  /* ARN_KV_..., or ARN_KV_AS_KEYS */
  uint32_t kv_residual;    /* INT4, INT2: tokens that stay int8; 0: 128 */
  uint32_t kv_group_size;  /* INT4, INT2: tokens (keys) and channels (values) that share a range, a
                              divisor of kv_page_tokens; 0: 32 or a page */
  uint32_t source_rows; /* of models with a source: rows of it that a sequence has room for; 0: the
                           model's, of tokens at most 512 */
  uint32_t n_prefill_threads; /* of runs with more than one token of a sequence; 0: n_threads */
  const char* device; /* VULKAN, AUTO, VULKAN_CPU: a device's number, or a part of its name; NULL:
                         the best one. Other backends read nothing of it. Read until the session is
                         there */
  uint32_t cpus;      /* ARN_CPUS_... PERFORMANCE and MASK: the session is not created
                         (ARN_UNSUPPORTED) when the threads, read back, may not run on just these,
                         and not on backends that have no threads of their own */
  uint32_t sensors;   /* 1: look for counters of energy and for thermal zones when the session is
                         created, for arn_session_stats. Also where there is a limit to the heat */
  uint64_t cpu_mask;  /* ARN_CPUS_MASK: bit i is CPU i, of the first 64 */
  float max_tokens_per_s; /* 0: as many as can be. Else the session sleeps before it decodes more
                             of them, all sequences together; prompts are not held back */
  int32_t heat_limit_mc;  /* 0: none. Else, from the time on that a thermal zone has so many
                             thousandths of a degree until all of them are 3 degrees cooler, the
                             session sleeps after each run (a token, a chunk of a prompt).
                             ARN_UNSUPPORTED when no zone can be read */
  float heat_headroom;    /* 0: none. The same of Android's thermal headroom, which is 1 where
                             the system throttles severely. ARN_UNSUPPORTED where there is none */
  uint32_t heat_duty_percent; /* of the time that it runs while it is hot, 1 to 99; 0: 50 */
  const char* heat_zone;      /* only zones with this in their type count; NULL: all. Read until the
                                 session is there */
  const char* system_root;    /* in which /sys lies, for a container that has it elsewhere; NULL:
                                 "". Read until the session is there */
  uint32_t trust_device; /* of a GPU. 0: arn_session_create lets it compute a few tokens, several
                            times, and compares their logits with those that the bundle has of them
                            or, without such, with the CPU's; when it is wrong, ARN_DEVICE, or the
                            CPU if that is in reserve. Memory for it is taken and given back. 1:
                            not */
  const char* device_folder; /* VULKAN, AUTO, VULKAN_CPU: a folder in which the driver's compiled
                                pipelines are kept, for faster creation, and which kernels are fast
                                on it: measured for 0.2 s, in one session or a few, when they are
                                created. What is damaged or of another device, driver or library is
                                ignored and replaced. A driver that ends the process while it is
                                tested leaves a file there by which it is refused from then on
                                (ARN_UNSUPPORTED, with its name). NULL: none. Read until the session
                                is there */
} arn_session_options;
#define ARN_SESSION_OPTIONS_INIT                                                                   \
  {                                                                                                \
    sizeof(arn_session_options), ARN_BACKEND_CPU, ARN_KV_INT8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL, \
        ARN_KV_AS_KEYS, 0, 0, 0, 0, NULL, ARN_CPUS_AUTO, 0, 0, 0, 0, 0, 0, NULL, NULL, 0, NULL     \
  }

/* Bytes by region. `total_bytes` is the size of the block that a session takes: constants + kv +
 * activations + io; with ARN_BACKEND_VULKAN constants + io, and the others are in device_bytes.
 * With ARN_BACKEND_AUTO and VULKAN_CPU both: the block has room for what the CPU needs if it has to
 * take over. Where the session reserves its block itself, kv and activations are committed only
 * then. */
typedef struct arn_memory_plan {
  size_t struct_size;
  uint64_t weights_bytes;   /* mapped from the bundle, read-only, shared; not part of the block */
  uint64_t constants_bytes; /* session state, tables, repacked weights */
  uint64_t
      repacked_bytes; /* the part of constants_bytes that is weights packed anew for this CPU */
  uint64_t kv_bytes;  /* reserved; committed as tokens are used */
  uint64_t kv_bytes_per_token;
  uint64_t activations_bytes;
  uint64_t io_bytes;
  uint64_t total_bytes;
  uint64_t alignment;      /* of the block */
  uint32_t context_tokens; /* options as they will be applied */
  uint32_t prefill_chunk;
  uint32_t n_threads;
  uint32_t kv_page_tokens;
  uint32_t max_sequences;
  uint32_t kv_tokens;
  uint32_t n_kv_groups; /* see arn_session_plan_group */
  uint32_t n_prefill_threads;
  uint32_t n_performance_cpus; /* that the process may use */
  /* 1: there are other CPUs too, and threads stay on the performance CPUs, the calling thread while
     it is in a call. 0: all CPUs are alike, or more threads were asked for than there are of these;
     the system places them. */
  uint32_t keeps_to_performance_cpus;
  uint64_t
      device_bytes; /* VULKAN, AUTO, VULKAN_CPU: of all buffers on the device: weights, KV pages,
                       activations, logits, what tells it of a run, and a staging buffer */
} arn_memory_plan;
#define ARN_MEMORY_PLAN_INIT \
  { sizeof(arn_memory_plan), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* What a session with these options will take, before anything is allocated. `options` may be NULL.
 */
ARN_API arn_status arn_session_plan(const arn_model* model, const arn_session_options* options,
                                    char* error, size_t error_bytes, arn_memory_plan* out_plan);

/* One group of layers, which share a pool of pages: those whose keys and values have one shape and
 * that see the same positions, or those whose states have one size. */
typedef struct arn_kv_group_info {
  size_t struct_size;
  uint32_t n_layers; /* with keys and values of their own */
  uint32_t n_kv_heads;
  uint32_t head_dim;
  uint32_t window; /* tokens a query sees, itself included; 0: all */
  uint32_t chunk;  /* a query sees none before its chunk of so many positions; 0: no chunks */
  uint32_t page_tokens;
  uint32_t n_pages;        /* in the pool */
  uint32_t sequence_pages; /* that one sequence holds at most */
  uint64_t page_bytes;
  uint64_t offset;         /* of the pool, from the start of the KV region */
  uint32_t n_sealed_pages; /* in the pool of sealed pages; 0: there is none */
  uint64_t sealed_page_bytes;
  uint64_t sealed_offset;
  uint32_t residual;    /* the most recent tokens, which are never sealed; 0 without sealed pages */
  uint64_t state_bytes; /* of each layer; 0: keys and values. Else the pages are slots that hold a
                         * sequence's states, however many tokens it has: heads, dimension, window,
                         * chunk and page_tokens are 0 */
  uint32_t is_source;   /* 1: a page is a sequence's source, with room for page_tokens rows of it */
} arn_kv_group_info;
#define ARN_KV_GROUP_INFO_INIT \
  { sizeof(arn_kv_group_info), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
/* index < arn_memory_plan.n_kv_groups, else ARN_BAD_ARGUMENT. */
ARN_API arn_status arn_session_plan_group(const arn_model* model,
                                          const arn_session_options* options, uint32_t index,
                                          char* error, size_t error_bytes,
                                          arn_kv_group_info* out_group);

/* Creates a session inside `memory` (arn_memory_plan.total_bytes, aligned to .alignment; need not
 * be cleared; must outlive the session). memory NULL: pages are reserved from the OS and committed
 * as they are used. Too little memory gives ARN_OUT_OF_MEMORY. */
ARN_API arn_status arn_session_create(const arn_model* model, const arn_session_options* options,
                                      void* memory, uint64_t memory_bytes, char* error,
                                      size_t error_bytes, arn_session** out_session);
/* Ends the session's threads and gives back what it took itself. NULL is allowed. */
ARN_API void arn_session_destroy(arn_session* session);

/* The sentence that explains the last failure of a call on this session; "" if none. */
ARN_API const char* arn_session_last_error(const arn_session* session);

/* What computes a session's tokens. */
typedef struct arn_backend_info {
  size_t struct_size;
  uint32_t backend;   /* ARN_BACKEND_..., not AUTO */
  const char* name;   /* "cpu", "reference", "vulkan", "vulkan+cpu" */
  const char* device; /* VULKAN, VULKAN_CPU: the device's name; else "" */
  const char* reason; /* AUTO, VULKAN_CPU: why it is not Vulkan, or no longer; else "" */
  /* VULKAN, VULKAN_CPU: for people to read: the kernels of products by type of weights, with one
   * row, few and many, and whether they were "measured" when the session was created, "remembered"
   * in device_folder, or are "fixed"; else "" */
  const char* kernels;
} arn_backend_info;
#define ARN_BACKEND_INFO_INIT \
  { sizeof(arn_backend_info), 0, NULL, NULL, NULL, NULL }
/* The strings are the session's and stay as they are until its next call. */
ARN_API arn_status arn_session_backend(const arn_session* session, arn_backend_info* out_info);

/* The source of the selected sequence: what its tokens attend to besides each other, computed once.
 * A sequence gets a new one at any time; its tokens are forgotten then, as arn_session_reset
 * forgets both. Forks share it. Tokens can be run once it is there (else ARN_BAD_STATE). n_ids: 1
 * to source_rows. ARN_UNSUPPORTED when the model has no source, or one of features. */
ARN_API arn_status arn_session_encode_ids(arn_session* session, const int32_t* ids, size_t n_ids);
/* The same for a source of features: f32 [n_frames, width], frame by frame; n_frames is even, at
 * most 2 * source_rows; width is the model's source_feature_width. The caller keeps the features,
 * they are read during the call only. */
ARN_API arn_status arn_session_encode_features(arn_session* session, const float* features,
                                               uint32_t n_frames, uint32_t width);

/* Appends tokens to the sequence and runs them in chunks. Afterwards the logits of the last one are
 * there. ARN_CONTEXT_FULL and ARN_BAD_TOKEN change nothing. ARN_CANCELLED keeps the chunks that
 * were finished (see arn_session_length). n_ids > 0. */
ARN_API arn_status arn_session_prefill(arn_session* session, const int32_t* ids, size_t n_ids);
/* The same for at most one chunk (prefill_chunk tokens), keeping the logits of every position.
 * Needs all_logits = 1. *out_logits: f32 [n_ids, vocab], owned by the session, valid until its next
 * call. */
ARN_API arn_status arn_session_prefill_logits(arn_session* session, const int32_t* ids,
                                              size_t n_ids, const float** out_logits);
/* Logits after the last token: f32 [vocab], owned by the session, valid until its next call. The
 * sampler leaves them as they are. Greedy decoding keeps none: the first call that asks for them
 * after a token may take as long as the model's head does, and those after it do not. */
ARN_API arn_status arn_session_logits(const arn_session* session, const float** out_logits);

typedef struct arn_sampling {
  size_t struct_size;
  float temperature; /* 0: greedy */
  uint32_t top_k;    /* 0: off */
  float top_p;       /* 1: off */
  float min_p;       /* 0: off */
  uint64_t seed;     /* the same seed gives the same tokens, whatever the thread count */
} arn_sampling;
#define ARN_SAMPLING_INIT \
  { sizeof(arn_sampling), 0.0f, 0, 1.0f, 0.0f, 0 }

/* How the checkpoint wants its tokens chosen: by its own defaults where it samples (do_sample),
 * greedily where it does not, whatever else it says. The seed is 0. */
ARN_API arn_status arn_model_sampling(const arn_model* model, arn_sampling* out_sampling);
/* Sets how arn_session_decode and arn_session_generate choose tokens, and restarts the random
 * numbers at seed. A new session is greedy. */
ARN_API arn_status arn_session_set_sampling(arn_session* session, const arn_sampling* sampling);
/* Chooses the next token from the logits that are there, appends it and runs it. ARN_CONTEXT_FULL
 * changes nothing. */
ARN_API arn_status arn_session_decode(arn_session* session, int32_t* out_id);
/* Chooses from the logits that are there, without running anything. */
ARN_API arn_status arn_session_sample(arn_session* session, int32_t* out_id);

/* Tokens in the sequence. */
ARN_API uint32_t arn_session_length(const arn_session* session);
/* The ids of those tokens: owned by the session, valid until its next call. */
ARN_API arn_status arn_session_tokens(const arn_session* session, const int32_t** out_ids,
                                      uint32_t* out_count);
/* Forgets the sequence; keeps the memory, sampling and statistics. */
ARN_API arn_status arn_session_reset(arn_session* session);
/* Forgets the tokens from `position` on (0 <= position <= length), and the logits unless position
 * is the length. ARN_BAD_STATE, with nothing changed, when a layer with a window has given back
 * what the token at `position` would see, or when layers keep a state, which cannot be turned back
 * (the length is the only position then): see arn_session_first_rewind_position. */
ARN_API arn_status arn_session_rewind(arn_session* session, uint32_t position);
ARN_API uint32_t arn_session_first_rewind_position(const arn_session* session);
/* Makes the sequence hold exactly these tokens, and computes only what is not there: what it has in
 * common with them from the start on stays, the rest is forgotten and prefilled. So a conversation
 * goes on by giving all of its tokens each time. When they have more in common with the bundle's
 * prefix, the sequence starts there as by arn_session_use_prefix, provided that the session can use
 * it. Afterwards the logits of the last one are there;
 * for that at least one token runs, unless the sequence holds just these tokens and has its logits
 * already. Where a layer with a window has given back what the first new token would see, or where
 * layers keep a state and the tokens do not go on from the last one
 * (arn_session_first_rewind_position), all of them run. n_ids > 0; `ids` may be what
 * arn_session_tokens gave.
 * *out_kept (may be NULL): tokens that did not have to be computed.
 * A bundle's prefix that is damaged is an error here, not a reason to compute.
 * ARN_BAD_ARGUMENT, ARN_BAD_TOKEN and ARN_CONTEXT_FULL for more tokens than context_tokens (nothing
 * is shifted) change nothing, and *out_kept is 0. ARN_CANCELLED, and ARN_CONTEXT_FULL where
 * sequences share too small a kv_tokens, leave the tokens that were kept and the chunks that were
 * finished: following once more goes on there. */
ARN_API arn_status arn_session_follow(arn_session* session, const int32_t* ids, size_t n_ids,
                                      uint32_t* out_kept);
/* Forgets the sequence and starts it after the bundle's prefix: its tokens and their logits are
 * there, and nothing is computed. When all other sequences are empty, the session reserved its
 * memory itself and the bundle was opened by path or descriptor, the pages are mapped copy-on-write
 * and come from the file as they are used; their hash is then that of arn_model_options
 * .verify_hashes. Else they are copied, and their hash is checked: a second sequence is better made
 * by arn_session_fork, which shares them. ARN_NOT_FOUND: the bundle has none. ARN_SAVE_MISMATCH: it
 * was computed for another KV type, page size or group size. ARN_CONTEXT_FULL: it does not fit
 * context_tokens or the session's pages. ARN_HASH_MISMATCH, ARN_BAD_SAVE: it is damaged.
 * ARN_UNSUPPORTED with no_cache. Then nothing has changed, but that the sequence is empty when it
 * is the other sequences that leave no pages. */
ARN_API arn_status arn_session_use_prefix(arn_session* session);
/* Gives the memory of KV pages that hold no token back to the OS; it comes again as it is used.
 * *out_bytes (may be NULL): how much was given back at most. ARN_UNSUPPORTED when the caller gave
 * the memory. */
ARN_API arn_status arn_session_trim(arn_session* session, uint64_t* out_bytes);

/* ---- several sequences
 *
 * A session holds max_sequences sequences, numbered from 0, each with its own tokens, sampling and
 * logits. All other calls mean the selected one; a new session has selected 0. */

ARN_API arn_status arn_session_select(arn_session* session, uint32_t sequence);
ARN_API uint32_t arn_session_selected(const arn_session* session);
/* Makes `to`, which must be empty, a copy of `from` with its tokens, logits and sampling. They
 * share their pages until one writes to them, so this costs no memory but the copy's. */
ARN_API arn_status arn_session_fork(arn_session* session, uint32_t from, uint32_t to);
/* Appends ids[i] to sequences[i], 0 <= i < n, all in one run. No sequence twice. */
ARN_API arn_status arn_session_step(arn_session* session, const uint32_t* sequences,
                                    const int32_t* ids, size_t n);
/* The same with tokens that each sequence chooses by its sampling. out_ids [n]. */
ARN_API arn_status arn_session_decode_batch(arn_session* session, const uint32_t* sequences,
                                            size_t n, int32_t* out_ids);

/* ---- looking at the cache */

typedef struct arn_kv_layer_info {
  size_t struct_size;
  uint32_t n_kv_heads;
  uint32_t head_dim;
  uint32_t kv_layer; /* whose keys and values the layer uses: its own number or an earlier one's */
  uint32_t first_position; /* of the selected sequence; those before it are dropped: no later token
                              of a layer with a window or chunks sees them */
} arn_kv_layer_info;
#define ARN_KV_LAYER_INFO_INIT \
  { sizeof(arn_kv_layer_info), 0, 0, 0, 0 }
/* What arn_session_read_kv can read of a layer. ARN_BAD_ARGUMENT when layer is not below the
 * model's n_layers; ARN_UNSUPPORTED with no_cache = 1, and for a layer that keeps a state. */
ARN_API arn_status arn_session_kv_layer(const arn_session* session, uint32_t layer,
                                        arn_kv_layer_info* out_info);
/* Reads the keys and values that `layer` keeps of positions [first, first + n) of the selected
 * sequence, n > 0. keys, values: f32 [n_kv_heads, n, head_dim], the caller's; one of them may be
 * NULL. Keys are as attention uses them, turned by RoPE; what is kept in fewer bits is widened.
 * ARN_BAD_ARGUMENT beyond the sequence's tokens, ARN_BAD_STATE before the layer's first_position,
 * ARN_UNSUPPORTED with no_cache = 1 or for a layer that keeps a state; then nothing is written. For
 * inspection: it reads pages piece by piece, which takes its time where they lie in a device's
 * memory. */
ARN_API arn_status arn_session_read_kv(arn_session* session, uint32_t layer, uint32_t first,
                                       uint32_t n, float* keys, float* values);

/* ---- saving
 *
 * A saved state holds all sequences of a session: tokens, sampling with its random numbers, logits,
 * and the KV pages that the next tokens see, those that forks share once. docs/state-format.md. It
 * is restored into a session of the same model (whether or not its bundle has a prefix), kv_type
 * and kv_page_tokens; context_tokens, max_sequences, kv_tokens, prefill_chunk, threads and backend
 * may differ as long as what was saved fits. A session with no_cache = 1 saves and restores nothing
 * (ARN_UNSUPPORTED). */

/* Bytes that saving takes now. */
ARN_API arn_status arn_session_save_bytes(const arn_session* session, uint64_t* out_bytes);
/* Saves into the caller's buffer. *out_bytes: bytes that it took, or would take when capacity is
 * less (ARN_BUFFER_TOO_SMALL; nothing is written). */
ARN_API arn_status arn_session_save_memory(arn_session* session, void* buffer, uint64_t capacity,
                                           uint64_t* out_bytes);
/* Saves into a file, which takes the place of `path` when it is whole and on the disk; until then,
 * and after a failure, what was there before stays. Written to `path`.tmp in the same folder;
 * ARN_BAD_STATE when another save to this path is under way. ARN_DISK_FULL leaves nothing behind.
 */
ARN_API arn_status arn_session_save(arn_session* session, const char* path);

enum {
  ARN_VERIFY_DEFAULT = 0, /* from memory: pages too; from a file: all but the pages */
  ARN_VERIFY_ALL = 1,     /* the hash of the pages too, which reads all of them */
  ARN_VERIFY_TABLES = 2   /* all but the pages: then damage to them goes unnoticed */
};
typedef struct arn_restore_options {
  size_t struct_size;
  uint32_t verify; /* ARN_VERIFY_... */
} arn_restore_options;
#define ARN_RESTORE_OPTIONS_INIT \
  { sizeof(arn_restore_options), ARN_VERIFY_DEFAULT }

/* Replaces all sequences by the saved ones; those that were not saved become as in a new session.
 * `options` may be NULL. The bytes are not trusted: what is damaged or cut short is refused
 * (ARN_BAD_SAVE, ARN_HASH_MISMATCH), and so is what was saved by another model or kind of session
 * (ARN_SAVE_MISMATCH) or has more than this one holds (ARN_CONTEXT_FULL). Then nothing has changed.
 * The bytes are not needed afterwards. */
ARN_API arn_status arn_session_restore_memory(arn_session* session, const void* data,
                                              uint64_t bytes, const arn_restore_options* options);
/* The same from a file. When the session reserved its memory itself, the pages are not read but
 * mapped copy-on-write and come from the file as they are used: the file may be replaced or removed
 * afterwards, but must not be shortened or written to in place while the session lives. */
ARN_API arn_status arn_session_restore(arn_session* session, const char* path,
                                       const arn_restore_options* options);

/* Ends the call that is running on another thread (within one layer's time) with ARN_CANCELLED.
 * Without a running call it is remembered for the next one. */
ARN_API void arn_session_cancel(arn_session* session);

enum {
  ARN_FINISH_NONE = 0,
  ARN_FINISH_EOS = 1,      /* an end token */
  ARN_FINISH_STOP = 2,     /* a stop string */
  ARN_FINISH_LENGTH = 3,   /* max_tokens */
  ARN_FINISH_CONTEXT = 4,  /* the context is full */
  ARN_FINISH_CALLBACK = 5, /* the callback asked for the end */
  ARN_FINISH_CANCELLED = 6
};

/* Called for each new token. text: what can be shown now (whole UTF-8 characters, never the start
 * of a possible stop string; may be empty), valid during the call. Return 0 to go on, anything else
 * to end. If text was held back when generation ends, one last call with id -1 brings it; its
 * return value does not matter. */
typedef int32_t (*arn_token_callback)(void* user, int32_t id, const char* text, size_t text_bytes);

typedef struct arn_stop_string {
  const char* text;
  size_t bytes;
} arn_stop_string;

typedef struct arn_generate_options {
  size_t struct_size;
  uint32_t max_tokens;          /* 0: until an end or a full context */
  uint32_t ignore_eos;          /* 1: end tokens do not end */
  const arn_stop_string* stops; /* at most 16, each 1..256 bytes; not shown */
  size_t n_stops;
  const int32_t* extra_eos_ids; /* besides the model's own */
  size_t n_extra_eos_ids;
  arn_token_callback callback; /* may be NULL */
  void* user;
} arn_generate_options;
#define ARN_GENERATE_OPTIONS_INIT \
  { sizeof(arn_generate_options), 0, 0, NULL, 0, NULL, 0, NULL, NULL }

typedef struct arn_generate_result {
  size_t struct_size;
  uint32_t n_tokens; /* new tokens, the end token not counted */
  uint32_t finish;   /* ARN_FINISH_... */
} arn_generate_result;
#define ARN_GENERATE_RESULT_INIT \
  { sizeof(arn_generate_result), 0, 0 }

/* Generates after what has been prefilled (which must not be empty). Every token that is counted is
 * in the sequence afterwards; an end token is not. ARN_CANCELLED fills *out_result too. */
ARN_API arn_status arn_session_generate(arn_session* session, const arn_generate_options* options,
                                        arn_generate_result* out_result);

/* ---- beam search
 *
 * The rules are those of transformers' generate() with num_beams (5.12). Groups are searches of
 * num_beams / num_beam_groups beams that go one after the other in each step; a token costs
 * diversity_penalty for each beam of an earlier group that has gone on with it in the step. */

/* When a group with as many finished sequences as beams is done. */
enum {
  ARN_EARLY_STOPPING_FALSE = 0, /* when its best beam at its present length is no better than the
                                   worst finished sequence */
  ARN_EARLY_STOPPING_TRUE = 1,  /* at once */
  ARN_EARLY_STOPPING_NEVER = 2  /* as FALSE, but with length_penalty > 0 judged at max_tokens */
};

typedef struct arn_beam_options {
  size_t struct_size;
  uint32_t num_beams;       /* 1 .. max_sequences */
  uint32_t num_beam_groups; /* divides num_beams */
  float diversity_penalty;  /* >= 0; 0 with one group */
  float length_penalty;     /* a score is the sum of log-probabilities / tokens ^ length_penalty */
  uint32_t early_stopping;  /* ARN_EARLY_STOPPING_... */
  uint32_t num_return_sequences; /* 1 .. num_beams */
  uint32_t max_tokens;           /* new tokens of a sequence; 0: as many as fit the context */
  uint32_t ignore_eos;           /* 1: end tokens do not end */
  const int32_t* extra_eos_ids;  /* besides the model's own; 16 in all at most */
  size_t n_extra_eos_ids;
} arn_beam_options;
#define ARN_BEAM_OPTIONS_INIT \
  { sizeof(arn_beam_options), 1, 1, 0.0f, 1.0f, ARN_EARLY_STOPPING_FALSE, 1, 0, 0, NULL, 0 }

typedef struct arn_beam_result {
  size_t struct_size;
  uint32_t n_sequences;   /* found: num_return_sequences, or fewer when there are not so many */
  uint32_t n_steps;       /* tokens of the longest beam */
  uint64_t kv_peak_bytes; /* pages in use at most, whatever sequence holds them */
} arn_beam_result;
#define ARN_BEAM_RESULT_INIT \
  { sizeof(arn_beam_result), 0, 0, 0 }

/* Searches on from the selected sequence, which has been prefilled. The beams run in sequences 0 to
 * num_beams - 1, one run a step; all of these but the selected one must be empty before
 * (ARN_BAD_STATE), and all are empty afterwards, also after a failure: a prompt that is to stay
 * has to be in a sequence of a higher number. Beams share the pages of what they have in common.
 * ARN_CONTEXT_FULL when max_tokens do not fit the context (nothing is shifted for beams) or the
 * beams' pages do not fit kv_tokens. Sampling options play no part. out_result may be NULL. */
ARN_API arn_status arn_session_beam_search(arn_session* session, const arn_beam_options* options,
                                           arn_beam_result* out_result);
/* Sequence `index` of what the last search found, the best first: its new tokens, an end token
 * included, and its score (may be NULL). Kept until the next search. ARN_BAD_ARGUMENT when there is
 * none; ARN_BUFFER_TOO_SMALL sets *out_count and the score. */
ARN_API arn_status arn_session_beam(arn_session* session, uint32_t index, int32_t* out_ids,
                                    size_t capacity, size_t* out_count, float* out_score);

/* What the energy of arn_session_stats_data is read from: the first of these that can be read. */
enum {
  ARN_ENERGY_NONE = 0,
  ARN_ENERGY_RAPL = 1,          /* of the CPU packages; root alone may read it on most systems */
  ARN_ENERGY_BOARD_COUNTER = 2, /* hwmon */
  ARN_ENERGY_BOARD_POWER = 3,   /* hwmon, added up while the session runs */
  ARN_ENERGY_BATTERY_POWER = 4, /* of a battery that is not charged, added up while it runs */
  ARN_ENERGY_BATTERY_LEFT = 5   /* what is left in it, which goes down in coarse steps */
};
#define ARN_NO_TEMPERATURE INT32_MIN

typedef struct arn_session_stats_data {
  size_t struct_size;
  uint64_t prefill_tokens;
  uint64_t prefill_ns; /* with what was slept */
  uint64_t decode_tokens;
  uint64_t decode_ns; /* with what was slept, and a callback's own time */
  uint64_t create_ns;
  uint64_t weight_bytes_per_token;  /* read from memory by one decode step: weights ... */
  uint64_t kv_bytes_read_per_token; /* ... and KV at the present length */
  uint64_t kv_used_bytes;           /* pages in use */
  uint64_t constants_used_bytes, activations_used_bytes, io_used_bytes,
      kv_capacity_bytes;                            /* must equal the plan */
  double prefill_tokens_per_s, decode_tokens_per_s; /* of the above; 0: none yet */
  uint64_t weight_bytes_read;                       /* by all runs; each weight once a run, ... */
  uint64_t kv_bytes_read; /* ... each key, value and state once a run and sequence */
  uint64_t paced_ns;      /* slept for max_tokens_per_s and for the heat */
  uint64_t cooled_ns;     /* the part of it that was for the heat */
  /* What follows needs sensors = 1; without, it is 0 and ARN_NO_TEMPERATURE. It is read again after
     100 ms at the earliest. */
  uint64_t energy_uj;       /* microjoules: of all that the source sees, whoever used it */
  uint64_t energy_ns;       /* of the time, idle or not, that energy_uj is of; less than what has
                               passed where the source could not be read */
  uint64_t power_uw;        /* microwatts when it was last read; 0: not known */
  uint32_t energy_source;   /* ARN_ENERGY_... */
  uint32_t n_thermal_zones; /* found at creation, see arn_session_thermal_zone */
  int32_t temperature_mc;   /* of the hottest that can be read, in thousandths of a degree, or
                               ARN_NO_TEMPERATURE */
  uint32_t hottest_zone;    /* its index */
  float thermal_headroom;   /* Android's; less than 0: not known */
  uint32_t is_hot;          /* 1: the heat is over the session's limit */
  char energy_name[32];     /* the source's own name */
} arn_session_stats_data;
#define ARN_SESSION_STATS_INIT                                                                     \
  {                                                                                                \
    sizeof(arn_session_stats_data), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
        0, 0, ARN_NO_TEMPERATURE, 0, -1, 0, {                                                      \
      0                                                                                            \
    }                                                                                              \
  }
/* Counts and times since the session was created, or since arn_session_reset_stats. */
ARN_API arn_status arn_session_stats(const arn_session* session, arn_session_stats_data* out_stats);
/* Sets what is counted to zero: tokens, times, bytes read, energy. */
ARN_API arn_status arn_session_reset_stats(arn_session* session);

/* The steps that a session with these options runs, as text, one line each, to a caller's buffer
 * (not NUL-terminated). */
ARN_API arn_status arn_program_dump(const arn_model* model, const arn_session_options* options,
                                    char* out_text, size_t capacity, size_t* out_bytes);

#ifdef __cplusplus
}
#endif

#endif /* ARENITE_SESSION_H_ */
