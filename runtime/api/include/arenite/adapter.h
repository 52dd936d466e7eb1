/* Part of arenite.h: adapters of a model: low-rank changes of its matrices (LoRA), and control
 * vectors, which are added to the output of its layers. */
#ifndef ARENITE_ADAPTER_H_
#define ARENITE_ADAPTER_H_

#include <arenite/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An open bundle with an adapter, as arenite-convert --lora or --control-vector writes it with
 * --base. Immutable: any number
 * of sessions may share it. */
typedef struct arn_adapter arn_adapter;

typedef struct arn_adapter_options {
  size_t struct_size;
  /* 32-byte Ed25519 key, or NULL. The bundle must be signed with it (arenite-convert --sign), else
   * ARN_BAD_SIGNATURE. Read only during the call. */
  const uint8_t* public_key;
} arn_adapter_options;
#define ARN_ADAPTER_OPTIONS_INIT \
  { sizeof(arn_adapter_options), NULL }

/* Maps an adapter of `base`, which must outlive it. Reads the whole file once and compares all
 * hashes. `options` may be NULL. On failure sets *out_adapter to NULL and, if error is not NULL,
 * writes a message to it. ARN_BAD_BUNDLE: also if the adapter was made for another base than this
 * bundle. ARN_HASH_MISMATCH and the other errors of arn_model_open: the file. ARN_UNSUPPORTED: it
 * changes what is no linear layer of the decoder, it has control vectors and the model several
 * residual streams, or the library is built without adapters. base
 * NULL: opens it for arn_adapter_get_info alone; sessions refuse it. */
ARN_API arn_status arn_adapter_open(const arn_model* base, const char* path,
                                    const arn_adapter_options* options, char* error,
                                    size_t error_bytes, arn_adapter** out_adapter);
/* Closes an adapter that no session uses any more. NULL is allowed. */
ARN_API void arn_adapter_close(arn_adapter* adapter);

/* Description of an adapter. Strings live as long as it. */
typedef struct arn_adapter_info {
  size_t struct_size;
  const char* name;      /* of the folder that it was made from */
  const char* base_name; /* file name of its base */
  const char* producer;
  uint64_t base_hash; /* of the bundle that it changes */
  uint64_t hash;      /* of the adapter, as in saved states */
  uint32_t n_changes; /* matrices that it changes */
  uint32_t max_rank;  /* the largest of a matrix; parts that a bundle joins, such as q, k and v, add
                         up */
  uint64_t file_bytes;
  uint32_t n_directions; /* layers that have a control vector */
} arn_adapter_info;
#define ARN_ADAPTER_INFO_INIT \
  { sizeof(arn_adapter_info), NULL, NULL, NULL, 0, 0, 0, 0, 0, 0 }
ARN_API arn_status arn_adapter_get_info(const arn_adapter* adapter, arn_adapter_info* out_info);

#ifdef __cplusplus
}
#endif

#endif /* ARENITE_ADAPTER_H_ */
