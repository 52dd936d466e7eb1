/* Part of arenite.h: bundles, what is in them, and their tokenizers. */
#ifndef ARENITE_MODEL_H_
#define ARENITE_MODEL_H_

#include <arenite/status.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct arn_model arn_model;

/* Which sections of a bundle have their hashes checked; those of header and index always have. */
enum {
  ARN_HASHES_INDEX = 0,
  ARN_HASHES_ALL = 1,   /* of all sections while opening, which reads the whole file */
  ARN_HASHES_ON_USE = 2 /* tokenizer and chat templates while opening, weights and prefix when the
                           first session is created, which reads them */
};

typedef struct arn_model_options {
  size_t struct_size;
  uint32_t verify_hashes; /* ARN_HASHES_... */
  /* 32 bytes, an Ed25519 key, or NULL: the bundle has to be signed with it (arenite-convert
   * --sign), else ARN_BAD_SIGNATURE. Sections are then held against what was signed, and
   * ARN_HASHES_INDEX is ARN_HASHES_ON_USE. Who can write the file while it is mapped can still
   * change it afterwards: keep it where only the app writes, or open a copy
   * (arn_model_open_reader). Needed for the call only. */
  const uint8_t* public_key;
} arn_model_options;
#define ARN_MODEL_OPTIONS_INIT \
  { sizeof(arn_model_options), ARN_HASHES_INDEX, NULL }

/* Opens a bundle. `options` may be NULL. On failure *out_model is NULL and, when error is not NULL,
 * a sentence that says what was found is written to it (at most error_bytes, NUL-terminated). path:
 * maps the file. fd: maps [offset, offset + bytes) of it (bytes 0: to the end; offset a multiple of
 * 16384); the descriptor may be closed afterwards. memory: used in place, 64-byte aligned, must
 * outlive the model. */
ARN_API arn_status arn_model_open(const char* path, const arn_model_options* options, char* error,
                                  size_t error_bytes, arn_model** out_model);
ARN_API arn_status arn_model_open_fd(int fd, uint64_t offset, uint64_t bytes,
                                     const arn_model_options* options, char* error,
                                     size_t error_bytes, arn_model** out_model);
ARN_API arn_status arn_model_open_memory(const void* data, uint64_t bytes,
                                         const arn_model_options* options, char* error,
                                         size_t error_bytes, arn_model** out_model);
/* For bundles that no file holds as they are: encrypted, compressed, fetched. */
typedef struct arn_reader {
  size_t struct_size;
  uint64_t bytes; /* of the bundle */
  void* user;
  /* Puts bytes [offset, offset + bytes) of the bundle into out. Called by arn_model_open_reader
   * only, in its thread, from the beginning to the end in pieces of at most 4 MiB. Not 0: it
   * cannot. */
  int (*read)(void* user, uint64_t offset, void* out, size_t bytes);
} arn_reader;
#define ARN_READER_INIT \
  { sizeof(arn_reader), 0, NULL, NULL }
/* Reads the bundle into memory that the model owns (as many bytes as the bundle has, from the OS).
 * ARN_IO when `read` gives anything but 0, with that number in `error`. */
ARN_API arn_status arn_model_open_reader(const arn_reader* reader, const arn_model_options* options,
                                         char* error, size_t error_bytes, arn_model** out_model);
/* NULL is allowed. */
ARN_API void arn_model_close(arn_model* model);

/* Strings point into the model and live as long as it. Absent strings are "". */
typedef struct arn_model_info {
  size_t struct_size;
  const char* architecture;
  const char* source_name;
  const char* producer;
  const char* target;        /* what the weights were packed for */
  const char* chat_template; /* "" when the bundle has none */
  size_t chat_template_bytes;
  uint32_t has_weights;   /* 0: a tokenizer-only bundle */
  uint32_t has_tokenizer; /* 0: works with token ids only */
  uint32_t n_layers;
  uint32_t hidden;
  uint32_t vocab;
  uint32_t max_context; /* the longest context the model was made for */
  uint64_t n_parameters;
  uint64_t file_bytes;
  uint64_t weight_bytes;
  int32_t bos_id; /* the first of bos_ids; -1: none */
  int32_t pad_id; /* -1: none */
  uint32_t n_eos_ids;
  const uint32_t* eos_ids;
  /* The checkpoint's own sampling defaults: what arn_model_sampling makes a whole of. Without
   * do_sample the others are for who asks for sampling. */
  uint32_t do_sample;
  float temperature;
  uint32_t top_k;
  float top_p;
  float min_p;
  uint32_t prefix_tokens; /* of the prompt's beginning that comes computed with the bundle; 0: none
                             (arn_model_prefix, arn_session_use_prefix) */
  uint32_t n_bos_ids;
  const uint32_t* bos_ids;
  /* Models that attend to a source beside their own tokens (arn_session_encode_ids, .._features):
   */
  uint32_t source_rows; /* it has at most; 0: there is none */
  uint32_t
      source_feature_width; /* of each frame, two of which are a row; 0: the source is tokens */
  uint32_t n_start_ids;     /* what the tokens of such a sequence begin with */
  const uint32_t* start_ids;
  uint32_t self_test_tokens; /* that a device is tested with, whose logits come with the bundle; 0:
                                none, a CPU computes them (arn_session_options.trust_device) */
} arn_model_info;
#define ARN_MODEL_INFO_INIT                                                                      \
  {                                                                                              \
    sizeof(arn_model_info), NULL, NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
        NULL, 0, 0, 0, 0, 0, 0, 0, NULL, 0, 0, 0, NULL, 0                                        \
  }
ARN_API arn_status arn_model_get_info(const arn_model* model, arn_model_info* out_info);

/* The tokens of the bundle's prefix: owned by the model, at least one. ARN_NOT_FOUND, with NULL and
 * 0, when the bundle has none. A model that was opened by path or descriptor and has a prefix keeps
 * the file open. */
ARN_API arn_status arn_model_prefix(const arn_model* model, const int32_t** out_ids,
                                    uint32_t* out_count);

typedef struct arn_tensor_info {
  size_t struct_size;
  const char* name;
  const char* dtype;  /* "f32", "f16", "bf16", "int8", "int4" */
  const char* layout; /* "rows" or "panels" */
  uint32_t nr, kr, sr;
  uint32_t rows, cols;
  uint64_t offset; /* in the file */
  uint64_t bytes;
} arn_tensor_info;
#define ARN_TENSOR_INFO_INIT \
  { sizeof(arn_tensor_info), NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, 0 }
ARN_API uint32_t arn_model_tensor_count(const arn_model* model);
ARN_API arn_status arn_model_get_tensor(const arn_model* model, uint32_t index,
                                        arn_tensor_info* out_info);

/* ---- text
 * ------------------------------------------------------------------------------------------------
 */

enum {
  ARN_TOKENIZE_DEFAULT = 0,
  ARN_TOKENIZE_NO_SPECIAL =
      1 /* do not add BOS and the like around the text (special tokens written
           inside the text are still recognised, as Hugging Face tokenizers do) */
};
/* Bytes of scratch that arn_tokenize needs for a text of text_bytes. */
ARN_API size_t arn_tokenize_scratch_bytes(const arn_model* model, size_t text_bytes);
/* Text to token ids. *out_count: how many there are (also when out_ids is too small, or NULL with
 * capacity 0). scratch: 16-byte aligned, at least arn_tokenize_scratch_bytes; NULL: taken from the
 * OS for this call. */
ARN_API arn_status arn_tokenize(const arn_model* model, const char* text, size_t text_bytes,
                                uint32_t flags, void* scratch, size_t scratch_bytes,
                                int32_t* out_ids, size_t capacity, size_t* out_count);
enum { ARN_DETOKENIZE_DEFAULT = 0, ARN_DETOKENIZE_SKIP_SPECIAL = 1 };
/* Token ids to text; bytes that are not UTF-8 become U+FFFD. Not NUL-terminated. */
ARN_API arn_status arn_detokenize(const arn_model* model, const int32_t* ids, size_t n_ids,
                                  uint32_t flags, char* out_text, size_t capacity,
                                  size_t* out_bytes);
/* The text of one token as it is stored, for display; not NUL-terminated. */
ARN_API arn_status arn_token_text(const arn_model* model, int32_t id, const char** out_text,
                                  size_t* out_bytes);

#ifdef __cplusplus
}
#endif

#endif /* ARENITE_MODEL_H_ */
