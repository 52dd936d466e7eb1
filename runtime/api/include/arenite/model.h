/* Part of arenite.h: bundles, their contents, and tokenizers. */
#ifndef ARENITE_MODEL_H_
#define ARENITE_MODEL_H_

#include <arenite/status.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct arn_model arn_model;

/* Selects the sections whose hashes are checked. Header and index are always checked. */
enum {
  ARN_HASHES_INDEX = 0,
  ARN_HASHES_ALL = 1,   /* all sections while opening; reads the whole file */
  ARN_HASHES_ON_USE = 2 /* Tokenizer and chat templates while opening; weights and prefix when
                           the first session is created. Reads those sections. */
};

/* Placement of the bundle's bytes while it is open. Huge pages can speed up reading weights on a
 * CPU (measure with arenite bench --residency); arn_model_get_residency returns how many bytes lie
 * in them. */
enum {
  /* Mapped from the file: paged in on use, dropped under memory pressure, shared between processes.
   * Uses huge pages where the file system supports them for file mappings. Truncating the file
   * while it is mapped ends the process; writing to it changes the weights. */
  ARN_RESIDENCY_MAPPED = 0,
  /* Copied into memory of the model (arn_memory_plan.copied_bytes), read-only, in anonymous huge
   * pages as far as the system has them. Later changes of the file have no effect. */
  ARN_RESIDENCY_COPIED = 1,
  /* Mapped and locked: read while opening and never dropped. ARN_OUT_OF_MEMORY if the process may
   * not lock that much. Still backed by the file, as with MAPPED. */
  ARN_RESIDENCY_LOCKED = 2,
  /* Mapped, and moved into huge pages while opening: with MADV_COLLAPSE where Linux supports it for
   * this file, else by reading the file again. Pages that stay small are not an error. */
  ARN_RESIDENCY_HUGE = 3
};

typedef struct arn_model_options {
  size_t struct_size;
  uint32_t verify_hashes; /* ARN_HASHES_... */
  /* 32-byte Ed25519 key, or NULL. The bundle must be signed with it (arenite-convert --sign), else
   * ARN_BAD_SIGNATURE. Sections are then checked against the signature, and ARN_HASHES_INDEX acts
   * as ARN_HASHES_ON_USE. A process that can write the mapped file can still change it later: store
   * it where only the app can write, or open a copy (ARN_RESIDENCY_COPIED). Read only during the
   * call. */
  const uint8_t* public_key;
  /* ARN_RESIDENCY_..., for a bundle in a file. arn_model_open_memory accepts only MAPPED and uses
   * the bytes in place; arn_model_open_reader always copies. Other values are ARN_UNSUPPORTED
   * there. */
  uint32_t residency;
} arn_model_options;
#define ARN_MODEL_OPTIONS_INIT \
  { sizeof(arn_model_options), ARN_HASHES_INDEX, NULL, ARN_RESIDENCY_MAPPED }

/* Opens a bundle. `options` may be NULL. On failure sets *out_model to NULL and, if error is not
 * NULL, writes a message to it (at most error_bytes, NUL-terminated). path: maps the file. fd: maps
 * [offset, offset + bytes) of it (bytes 0: to the end; offset a multiple of 16384); the descriptor
 * may be closed afterwards. memory: used in place, 64-byte aligned, must outlive the model.
 * Trailing bytes after the bundle are refused (ARN_BAD_BUNDLE). A path that ends in
 * -00001-of-NNNNN.arn is the first part of a bundle in parts (arenite-convert --split): the others
 * are taken from beside it. */
ARN_API arn_status arn_model_open(const char* path, const arn_model_options* options, char* error,
                                  size_t error_bytes, arn_model** out_model);
/* Opens a bundle in parts that lie anywhere, in their order. They are mapped one behind another and
 * used in place, or copied (ARN_RESIDENCY_COPIED); ARN_RESIDENCY_HUGE acts as MAPPED. A part that
 * is none, of another bundle or in the wrong place is ARN_BAD_BUNDLE; errors name it. */
ARN_API arn_status arn_model_open_parts(const char* const* paths, size_t n_paths,
                                        const arn_model_options* options, char* error,
                                        size_t error_bytes, arn_model** out_model);
ARN_API arn_status arn_model_open_fd(int fd, uint64_t offset, uint64_t bytes,
                                     const arn_model_options* options, char* error,
                                     size_t error_bytes, arn_model** out_model);
ARN_API arn_status arn_model_open_memory(const void* data, uint64_t bytes,
                                         const arn_model_options* options, char* error,
                                         size_t error_bytes, arn_model** out_model);
/* Callback source for bundles that no file holds verbatim: encrypted, compressed, downloaded. */
typedef struct arn_reader {
  size_t struct_size;
  uint64_t bytes; /* size of the bundle */
  void* user;
  /* Copies bytes [offset, offset + bytes) of the bundle to out. Called only by
   * arn_model_open_reader, on its thread, front to back in chunks of at most 4 MiB. Return 0 on
   * success, anything else on failure. */
  int (*read)(void* user, uint64_t offset, void* out, size_t bytes);
} arn_reader;
#define ARN_READER_INIT \
  { sizeof(arn_reader), 0, NULL, NULL }
/* Reads the bundle into memory owned by the model (the bundle's size, from the OS;
 * ARN_RESIDENCY_COPIED). ARN_IO if `read` returns non-zero; `error` then contains that number. */
ARN_API arn_status arn_model_open_reader(const arn_reader* reader, const arn_model_options* options,
                                         char* error, size_t error_bytes, arn_model** out_model);
/* Closes a model. NULL is allowed. */
ARN_API void arn_model_close(arn_model* model);

/* Description of a model. Strings point into the model and live as long as it. Absent strings are
 * "". */
typedef struct arn_model_info {
  size_t struct_size;
  const char* architecture;
  const char* source_name;
  const char* producer;
  const char* target;        /* CPU target that the weights are packed for */
  const char* chat_template; /* "" if the bundle has none */
  size_t chat_template_bytes;
  uint32_t has_weights;   /* 0: a tokenizer-only bundle */
  uint32_t has_tokenizer; /* 0: works with token ids only */
  uint32_t n_layers;
  uint32_t hidden;
  uint32_t vocab;
  uint32_t max_context; /* longest context the model was trained for */
  uint64_t n_parameters;
  uint64_t file_bytes;
  uint64_t weight_bytes;
  int32_t bos_id; /* first of bos_ids; -1: none */
  int32_t pad_id; /* -1: none */
  uint32_t n_eos_ids;
  const uint32_t* eos_ids;
  /* The checkpoint's sampling defaults; arn_model_sampling combines them. Without do_sample the
   * others apply only if sampling is requested explicitly. */
  uint32_t do_sample;
  float temperature;
  uint32_t top_k;
  float top_p;
  float min_p;
  uint32_t prefix_tokens; /* Length of the precomputed prompt prefix in the bundle; 0: none
                             (arn_model_prefix, arn_session_use_prefix). */
  uint32_t n_bos_ids;
  const uint32_t* bos_ids;
  /* Models with an encoder (arn_session_encode_ids, .._features): */
  uint32_t encoder_rows;          /* maximum encoder rows; 0: no encoder */
  uint32_t encoder_feature_width; /* width of each input frame; 0: the encoder takes token ids */
  uint32_t n_start_ids;           /* tokens that every decoder sequence begins with */
  const uint32_t* start_ids;
  uint32_t self_test_tokens; /* Tokens of the device self-test whose logits the bundle contains;
                                0: none, a CPU computes them (arn_session_options.trust_device). */
  uint32_t makes_text;       /* 0: no sessions, only embedders (arn_embedder_create) */
  uint32_t makes_vectors;    /* of texts: arn_embed */
  uint32_t makes_scores;     /* of pairs of texts: arn_rerank */
  /* n rows of an encoder with frames are encoder_row_frames * n + encoder_more_frames frames, or up
   * to encoder_optional_frames less. 1, 0 and 0: the encoder takes token ids. */
  uint32_t encoder_row_frames;
  uint32_t encoder_more_frames;
  uint32_t encoder_optional_frames;
} arn_model_info;
#define ARN_MODEL_INFO_INIT                                                                      \
  {                                                                                              \
    sizeof(arn_model_info), NULL, NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
        NULL, 0, 0, 0, 0, 0, 0, 0, NULL, 0, 0, 0, NULL, 0, 0, 0, 0, 1, 0, 0                      \
  }
ARN_API arn_status arn_model_get_info(const arn_model* model, arn_model_info* out_info);

/* Returns the tokens of the bundle's prefix: owned by the model, at least one. ARN_NOT_FOUND, with
 * NULL and 0, if the bundle has none. A model opened by path or descriptor that has a prefix keeps
 * the file open. */
ARN_API arn_status arn_model_prefix(const arn_model* model, const int32_t** out_ids,
                                    uint32_t* out_count);

/* Location of a bundle's bytes. */
typedef struct arn_residency {
  size_t struct_size;
  uint32_t residency;      /* ARN_RESIDENCY_...; COPIED after arn_model_open_reader */
  uint64_t mapped_bytes;   /* mapped from the file; 0: a copy, or the caller's memory */
  uint64_t copied_bytes;   /* memory owned by the model */
  uint64_t resident_bytes; /* of these bytes, in memory as far as this process has touched them */
  uint64_t huge_bytes;     /* of the resident bytes, in huge pages */
  uint64_t locked_bytes;   /* locked in memory */
} arn_residency;
#define ARN_RESIDENCY_INIT \
  { sizeof(arn_residency), ARN_RESIDENCY_MAPPED, 0, 0, 0, 0, 0 }
/* Returns where the bundle's bytes lie. Reads /proc/self/smaps, which takes milliseconds.
 * ARN_UNSUPPORTED if the system does not report it. */
ARN_API arn_status arn_model_get_residency(const arn_model* model, arn_residency* out_residency);

typedef struct arn_tensor_info {
  size_t struct_size;
  const char* name;
  const char* dtype;  /* "f32", "f16", "bf16", "int8", "int4", "int3", "int2", "ternary"; "int4k",
                         "int6k", "int8k", "fp4", "iq4": as others have quantised it */
  const char* layout; /* "rows", "panels" or "device rows" */
  uint32_t nr, kr, sr;
  uint32_t rows, cols;
  uint64_t offset; /* file offset */
  uint64_t bytes;
  uint64_t stored_bits; /* of values and scales, without what kernels keep beside them */
} arn_tensor_info;
#define ARN_TENSOR_INFO_INIT \
  { sizeof(arn_tensor_info), NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, 0, 0 }
ARN_API uint32_t arn_model_tensor_count(const arn_model* model);
ARN_API arn_status arn_model_get_tensor(const arn_model* model, uint32_t index,
                                        arn_tensor_info* out_info);

/* ---- text
 * ------------------------------------------------------------------------------------------------
 */

enum {
  ARN_TOKENIZE_DEFAULT = 0,
  /* Do not add BOS or other special tokens around the text. Special tokens written inside the text
   * are still recognised, as in Hugging Face tokenizers. */
  ARN_TOKENIZE_NO_SPECIAL = 1,
  /* Treat special tokens written inside the text as ordinary text. Use it for user input, which
   * could otherwise end its part of a prompt. Added tokens that are not special are still
   * recognised. */
  ARN_TOKENIZE_PLAIN = 2
};
/* Returns the scratch bytes that arn_tokenize needs for a text of text_bytes. */
ARN_API size_t arn_tokenize_scratch_bytes(const arn_model* model, size_t text_bytes);
/* Converts text to token ids. *out_count: number of ids (also if out_ids is too small, or NULL with
 * capacity 0). scratch: 16-byte aligned, at least arn_tokenize_scratch_bytes; NULL: taken from the
 * OS for this call. ARN_UNSUPPORTED: the tokenizer's regular expressions would take very long on
 * this text (arn_tokenize_options.max_steps). */
ARN_API arn_status arn_tokenize(const arn_model* model, const char* text, size_t text_bytes,
                                uint32_t flags, void* scratch, size_t scratch_bytes,
                                int32_t* out_ids, size_t capacity, size_t* out_count);

/* Bytes [offset, offset + bytes) of a text. */
typedef struct arn_text_span {
  size_t offset;
  size_t bytes;
} arn_text_span;

typedef struct arn_tokenize_options {
  size_t struct_size;
  uint32_t flags; /* ARN_TOKENIZE_... */
  void* scratch;  /* as in arn_tokenize */
  size_t scratch_bytes;
  /* Spans of the text to which ARN_TOKENIZE_PLAIN applies, ordered and disjoint:
   * arn_chat_plain_spans. A special token is recognised only if none of its bytes lies in a span.
   * The text must then be valid UTF-8. */
  const arn_text_span* plain_spans;
  size_t n_plain_spans;
  /* Extra steps allowed for the tokenizer's regular expressions beyond the few that any text needs;
   * 0: 64 per byte of text plus 16 million, a few seconds of work at most. */
  uint64_t max_steps;
  /* Called periodically on the calling thread. Non-zero ends the call with ARN_CANCELLED. May be
   * NULL. */
  int (*stop)(void* user);
  void* user;
} arn_tokenize_options;
#define ARN_TOKENIZE_OPTIONS_INIT \
  { sizeof(arn_tokenize_options), ARN_TOKENIZE_DEFAULT, NULL, 0, NULL, 0, 0, NULL, NULL }
/* As arn_tokenize, with options. `options` may be NULL. */
ARN_API arn_status arn_tokenize_with(const arn_model* model, const char* text, size_t text_bytes,
                                     const arn_tokenize_options* options, int32_t* out_ids,
                                     size_t capacity, size_t* out_count);

enum { ARN_DETOKENIZE_DEFAULT = 0, ARN_DETOKENIZE_SKIP_SPECIAL = 1 };
/* Converts token ids to text. Invalid UTF-8 becomes U+FFFD. Not NUL-terminated. */
ARN_API arn_status arn_detokenize(const arn_model* model, const int32_t* ids, size_t n_ids,
                                  uint32_t flags, char* out_text, size_t capacity,
                                  size_t* out_bytes);

/* State for detokenizing token by token: for arn_session_decode, batches and beams, which return
 * ids without text. Owned by the caller. Zero-initialise it for a new sequence; copy it when
 * forking a sequence. */
typedef struct arn_detokenizer {
  uint32_t state[8];
} arn_detokenizer;
/* Returns the text that the next token of a sequence completes: whole UTF-8, so the bytes of a
 * character come with its last token, preceded by the spaces that earlier tokens held back. The
 * concatenation over all tokens equals arn_detokenize, with one exception: if byte tokens
 * ("<0xE2>") do not form UTF-8 together, arn_detokenize replaces all of them by U+FFFD, this call
 * only those from the first invalid one on. ARN_BUFFER_TOO_SMALL leaves the state unchanged;
 * arn_detokenizer_piece_bytes is enough for any token. flags: ARN_DETOKENIZE_... */
ARN_API arn_status arn_detokenizer_next(const arn_model* model, arn_detokenizer* state, int32_t id,
                                        uint32_t flags, char* out_text, size_t capacity,
                                        size_t* out_bytes);
/* Returns the remaining text at the end of a sequence; an unfinished character becomes U+FFFD.
 * Resets the state. */
ARN_API arn_status arn_detokenizer_end(const arn_model* model, arn_detokenizer* state,
                                       char* out_text, size_t capacity, size_t* out_bytes);
/* Returns a buffer size that is enough for any token; 0 without a tokenizer. */
ARN_API size_t arn_detokenizer_piece_bytes(const arn_model* model);

/* Returns the stored text of one token, for display. Not NUL-terminated. */
ARN_API arn_status arn_token_text(const arn_model* model, int32_t id, const char** out_text,
                                  size_t* out_bytes);

#ifdef __cplusplus
}
#endif

#endif /* ARENITE_MODEL_H_ */
