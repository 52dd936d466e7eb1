/* Part of arenite.h: vectors of texts, and scores of pairs of texts. */
#ifndef ARENITE_EMBED_H_
#define ARENITE_EMBED_H_

#include <arenite/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- embeddings and reranking
 *
 * An embedder computes with a model whose checkpoint says how a text becomes a vector
 * (sentence-transformers' modules.json), or how a pair of texts is scored (a classification head,
 * or two tokens). It needs no session and no cache: several texts are packed into one run, without
 * padding, and what a text gives does not depend on the texts beside it. A text longer than
 * max_tokens is cut at its end, as sentence-transformers does. Libraries without embedders
 * (ARENITE_EMBEDDINGS) refuse with ARN_UNSUPPORTED. */
typedef struct arn_embedder arn_embedder;

typedef struct arn_embed_info {
  size_t struct_size;
  uint32_t width;           /* floats of a vector, or scores of a pair */
  uint32_t max_tokens;      /* longest text, special tokens included */
  uint32_t is_normalized;   /* vectors have length 1: their dot product is the cosine */
  uint32_t n_prompts;       /* see arn_embed_prompt */
  int32_t default_prompt;   /* index of the prompt that arn_embed uses by default; -1: none */
  uint32_t has_instruction; /* pairs have an instruction */
  const char* instruction;  /* used if the caller gives none; "" if there is none */
} arn_embed_info;
#define ARN_EMBED_INFO_INIT \
  { sizeof(arn_embed_info), 0, 0, 0, 0, -1, 0, NULL }

/* Describes what the model makes of texts. Strings live as long as the model. ARN_UNSUPPORTED: it
 * makes neither vectors nor scores. */
ARN_API arn_status arn_embed_get_info(const arn_model* model, arn_embed_info* out_info);
/* Returns prompt `index` of the checkpoint: its name ("query") and the text that is put before a
 * text. Both live as long as the model. ARN_NOT_FOUND: there is no such prompt. */
ARN_API arn_status arn_embed_prompt(const arn_model* model, uint32_t index, const char** out_name,
                                    const char** out_text);

typedef struct arn_embed_options {
  size_t struct_size;
  uint32_t backend;      /* ARN_BACKEND_CPU, ARN_BACKEND_REFERENCE or ARN_BACKEND_VULKAN; others:
                            ARN_UNSUPPORTED */
  uint32_t max_tokens;   /* of a text, special tokens included; 0: the model's */
  uint32_t batch_tokens; /* of the texts of a run, at least max_tokens; 0: max_tokens, at least
                            512 */
  uint32_t max_texts;    /* of a run; 0: 32 */
  uint32_t n_threads;    /* 0: as many as there are performance CPUs */
  uint32_t width;        /* Cuts vectors to their first elements, and normalises what is left if the
                            model does (Matryoshka). 0: whole. */
  uint64_t text_bytes;   /* longest text with its prompt, or pair, in bytes; 0: 32 for each of
                            max_tokens, and 16 KiB */
} arn_embed_options;
#define ARN_EMBED_OPTIONS_INIT \
  { sizeof(arn_embed_options), 0, 0, 0, 0, 0, 0, 0 }

typedef struct arn_embed_plan_data {
  size_t struct_size;
  uint64_t weights_bytes;     /* of the bundle; read-only, shared, not part of the block */
  uint64_t constants_bytes;   /* state, and weights repacked for this CPU */
  uint64_t repacked_bytes;    /* part of constants_bytes */
  uint64_t activations_bytes; /* of a run of batch_tokens */
  uint64_t io_bytes;          /* texts, ids, the tokenizer's memory; reserved, committed on use */
  uint64_t total_bytes;       /* of the block */
  uint64_t alignment;         /* of the block */
  uint32_t max_tokens;        /* options after defaults are applied */
  uint32_t batch_tokens;
  uint32_t max_texts;
  uint32_t n_threads;
  uint32_t width; /* floats that a text or a pair gives */
} arn_embed_plan_data;
#define ARN_EMBED_PLAN_DATA_INIT \
  { sizeof(arn_embed_plan_data), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* Computes the memory of an embedder without allocating. `options` may be NULL. Errors as
 * arn_embedder_create. */
ARN_API arn_status arn_embed_plan(const arn_model* model, const arn_embed_options* options,
                                  char* error, size_t error_bytes, arn_embed_plan_data* out_plan);
/* Creates an embedder. `options` may be NULL. memory: total_bytes of arn_embed_plan, aligned to its
 * alignment, must outlive the embedder; NULL: reserved from the OS, committed on use. Nothing
 * allocates afterwards. The model must outlive it. ARN_UNSUPPORTED: the model makes neither vectors
 * nor scores, or the backend cannot. ARN_BAD_ARGUMENT names an option out of its range. */
ARN_API arn_status arn_embedder_create(const arn_model* model, const arn_embed_options* options,
                                       void* memory, uint64_t memory_bytes, char* error,
                                       size_t error_bytes, arn_embedder** out_embedder);
/* NULL is allowed. */
ARN_API void arn_embedder_destroy(arn_embedder* embedder);
/* Returns the reason of the last failed call on this embedder; "" if there was none. Valid until
 * the next call. */
ARN_API const char* arn_embedder_last_error(const arn_embedder* embedder);
/* Ends the call in progress, or the next one, with ARN_CANCELLED within one step of the model.
 * Callable from any thread. */
ARN_API void arn_embedder_cancel(arn_embedder* embedder);

/* A UTF-8 text. */
typedef struct arn_text {
  const char* text; /* may be NULL if bytes is 0 */
  size_t bytes;
} arn_text;

/* Computes a row of arn_embed_plan_data.width floats for each text: its vector, or the scores of a
 * model that scores single texts. prompt: put before each text; NULL: the checkpoint's default one,
 * if it has one; "": none. out: f32 [n_texts, width], row-major, capacity floats.
 * ARN_BUFFER_TOO_SMALL: capacity is less. ARN_BAD_ARGUMENT: a text is longer than text_bytes or
 * gives no token. ARN_UNSUPPORTED: the bundle has no tokenizer. After a failure `out` is
 * unspecified. */
ARN_API arn_status arn_embed(arn_embedder* embedder, const char* prompt, const arn_text* texts,
                             size_t n_texts, float* out, size_t capacity);
/* The same for token ids, special tokens included: `ids` of all texts, one after the other, and the
 * number of each text's. first_lengths: how many of a text's tokens have token type 0, those after
 * them have type 1; NULL: all. ARN_BAD_ARGUMENT: a text has none or more than max_tokens.
 * ARN_BAD_TOKEN: an id is not in the vocabulary. */
ARN_API arn_status arn_embed_ids(arn_embedder* embedder, const int32_t* ids, size_t n_ids,
                                 const uint32_t* lengths, const uint32_t* first_lengths,
                                 size_t n_texts, float* out, size_t capacity);
/* Scores each document by the query: the higher, the more relevant. out: f32 [n_documents, width].
 * instruction: NULL or "": the model's own. ARN_UNSUPPORTED: the model makes vectors, or its pairs
 * have no instruction and one is given. Else as arn_embed. */
ARN_API arn_status arn_rerank(arn_embedder* embedder, const char* instruction, arn_text query,
                              const arn_text* documents, size_t n_documents, float* out,
                              size_t capacity);

typedef struct arn_embed_counts {
  size_t struct_size;
  uint64_t n_tokens;    /* run, special tokens included */
  uint64_t n_cut_texts; /* longer than max_tokens */
  uint64_t ns;          /* time */
} arn_embed_counts;
#define ARN_EMBED_COUNTS_INIT \
  { sizeof(arn_embed_counts), 0, 0, 0 }
/* Returns what the last successful call did. */
ARN_API arn_status arn_embedder_get_counts(const arn_embedder* embedder,
                                           arn_embed_counts* out_counts);

#ifdef __cplusplus
}
#endif

#endif /* ARENITE_EMBED_H_ */
