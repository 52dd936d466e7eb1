/* Part of arenite.h: images for models with a vision tower. */
#ifndef ARENITE_IMAGE_H_
#define ARENITE_IMAGE_H_

#include <arenite/model.h>
#include <arenite/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- images
 *
 * An image encoder makes embeddings of an image: rows as wide as the decoder, each in the place of
 * a token. A prompt with an image goes through these steps:
 *
 *   1. Render the messages. A chat template writes arn_image_info.marker for the part
 *      {"type": "image"} of a message.
 *   2. arn_image_expand replaces the markers; tokenize what it writes.
 *   3. arn_image_encode gives the embeddings of each image.
 *   4. arn_session_prefill_embeddings, or arn_session_follow_embeddings, runs the tokens with all
 *      embeddings, in the order of the images. The session has room for embedding_rows of them.
 *
 * Images are resized, cut into tiles and normalised as the checkpoint's image processor does. Once
 * the images are encoded the encoder may be destroyed: the session keeps copies. Libraries without
 * vision (ARENITE_VISION) refuse with ARN_UNSUPPORTED. */
typedef struct arn_image_encoder arn_image_encoder;

typedef struct arn_image_info {
  size_t struct_size;
  uint32_t width;          /* floats of an embedding: at least the decoder's width */
  uint32_t max_embeddings; /* most embeddings of an image */
  int32_t token_id;        /* the token whose places embeddings take */
  const char* marker;      /* of an image in a prompt; lives as long as the model */
} arn_image_info;
#define ARN_IMAGE_INFO_INIT \
  { sizeof(arn_image_info), 0, 0, 0, NULL }
/* ARN_UNSUPPORTED: the model takes no images. */
ARN_API arn_status arn_image_get_info(const arn_model* model, arn_image_info* out_info);

/* Layout of an image of some size. */
typedef struct arn_image_layout {
  size_t struct_size;
  uint32_t n_embeddings;
  uint32_t n_tiles;   /* that the tower runs on, the whole image among them */
  uint32_t tile_rows; /* of the grid that the image is cut into; 0: it is not */
  uint32_t tile_cols;
} arn_image_layout;
#define ARN_IMAGE_LAYOUT_INIT \
  { sizeof(arn_image_layout), 0, 0, 0, 0 }
/* Computes the layout of an image of width x height pixels. ARN_BAD_ARGUMENT: a side is 0 or above
 * 32768, or the image is too long for its width. ARN_UNSUPPORTED as above. */
ARN_API arn_status arn_image_get_layout(const arn_model* model, uint32_t width, uint32_t height,
                                        char* error, size_t error_bytes,
                                        arn_image_layout* out_layout);
/* Writes the text that takes the place of an image's marker in a prompt: its tokens, and what
 * its tiles are called. text: capacity bytes, not NUL-terminated. Errors as above. */
ARN_API arn_status arn_image_text(const arn_model* model, uint32_t width, uint32_t height,
                                  char* text, size_t capacity, size_t* out_bytes);

/* Sides of an image, in pixels. */
typedef struct arn_image_size {
  uint32_t width;
  uint32_t height;
} arn_image_size;
/* Replaces the markers of a prompt by arn_image_text of the images, in their order. plain:
 * spans of the prompt in which a marker is plain text (arn_chat_plain_spans), so that no user
 * can insert one; NULL if n_plain is 0. out_plain [n_plain]: these spans in the new text, for
 * arn_tokenize_options. out_text: capacity bytes, not NUL-terminated. ARN_BUFFER_TOO_SMALL sets
 * *out_bytes to the size. ARN_BAD_ARGUMENT: the prompt has another number of markers than
 * there are images, or as arn_image_get_layout. */
ARN_API arn_status arn_image_expand(const arn_model* model, const arn_image_size* images,
                                    size_t n_images, const char* text, size_t text_bytes,
                                    const arn_text_span* plain, size_t n_plain, char* error,
                                    size_t error_bytes, char* out_text, size_t capacity,
                                    size_t* out_bytes, arn_text_span* out_plain);

typedef struct arn_image_options {
  size_t struct_size;
  uint32_t backend;   /* ARN_BACKEND_...; the tower runs whole on it. AUTO and VULKAN_CPU: on a
                         GPU if there is one that runs it, else, or once it fails, on the CPU.
                         VULKAN: ARN_UNSUPPORTED if it does not run the tower. */
  uint32_t max_side;  /* longest side of an image, in pixels, at most 32768; 0: 8192 */
  uint32_t n_threads; /* 0: as many as there are performance CPUs */
  /* As in arn_session_options; strings must stay valid until arn_image_encoder_create returns. */
  const char* device;
  const char* device_folder;
  uint32_t needs_gpu;
  uint32_t trust_device; /* 0: tests a GPU with made-up patches, against the CPU */
} arn_image_options;
#define ARN_IMAGE_OPTIONS_INIT \
  { sizeof(arn_image_options), 0, 0, 0, NULL, NULL, 0, 0 }

typedef struct arn_image_plan_data {
  size_t struct_size;
  uint64_t constants_bytes;   /* state, and weights repacked for this CPU */
  uint64_t repacked_bytes;    /* part of constants_bytes */
  uint64_t activations_bytes; /* of a tile; VULKAN: 0, they are in device_bytes */
  uint64_t io_bytes;          /* resized images, patches; reserved, committed on use */
  uint64_t total_bytes;       /* of the block */
  uint64_t alignment;         /* of the block */
  uint32_t max_side;          /* options after defaults are applied */
  uint32_t n_threads;
  uint64_t device_bytes; /* all buffers on a GPU, outside the block; 0: on the CPU */
} arn_image_plan_data;
#define ARN_IMAGE_PLAN_DATA_INIT \
  { sizeof(arn_image_plan_data), 0, 0, 0, 0, 0, 0, 0, 0, 0 }
/* Computes the memory of an image encoder without allocating. `options` may be NULL. Errors as
 * arn_image_encoder_create. */
ARN_API arn_status arn_image_plan(const arn_model* model, const arn_image_options* options,
                                  char* error, size_t error_bytes, arn_image_plan_data* out_plan);
/* Creates an image encoder. `options` may be NULL. memory: total_bytes of arn_image_plan, aligned
 * to its alignment, must outlive the encoder; NULL: reserved from the OS, committed on use. Nothing
 * allocates afterwards. The model must outlive it. ARN_UNSUPPORTED: the model takes no images, or
 * the backend cannot. ARN_BAD_ARGUMENT names an option out of its range. */
ARN_API arn_status arn_image_encoder_create(const arn_model* model,
                                            const arn_image_options* options, void* memory,
                                            uint64_t memory_bytes, char* error, size_t error_bytes,
                                            arn_image_encoder** out_encoder);
/* NULL is allowed. */
ARN_API void arn_image_encoder_destroy(arn_image_encoder* encoder);
/* Returns the reason of the last failed call on this encoder; "" if there was none. Valid until the
 * next call. */
ARN_API const char* arn_image_encoder_last_error(const arn_image_encoder* encoder);
/* Returns the backend in use. The strings are owned by the encoder and valid until its next call.
 */
ARN_API arn_status arn_image_encoder_backend(const arn_image_encoder* encoder,
                                             arn_backend_info* out_info);
/* Ends the call in progress, or the next one, with ARN_CANCELLED within one step of the model.
 * Callable from any thread. */
ARN_API void arn_image_encoder_cancel(arn_image_encoder* encoder);

/* Interleaved RGB, 8 bits a channel. */
typedef struct arn_image {
  const uint8_t* pixels;
  uint32_t width;
  uint32_t height;
  uint64_t stride; /* bytes from a row of pixels to the next; 0: 3 * width */
} arn_image;

/* Encodes an image. out: f32 [n_embeddings, width], capacity floats. ARN_BUFFER_TOO_SMALL: capacity
 * is less. ARN_BAD_ARGUMENT: as arn_image_get_layout, or a side is longer than max_side. After a
 * failure `out` is unspecified. */
ARN_API arn_status arn_image_encode(arn_image_encoder* encoder, const arn_image* image, float* out,
                                    size_t capacity, uint32_t* out_n_embeddings);

typedef struct arn_image_counts {
  size_t struct_size;
  uint64_t n_tiles;
  uint64_t n_embeddings;
  uint64_t resize_ns; /* part of ns: from pixels to patches */
  uint64_t ns;
} arn_image_counts;
#define ARN_IMAGE_COUNTS_INIT \
  { sizeof(arn_image_counts), 0, 0, 0, 0 }
/* Returns what the last call of arn_image_encode did. */
ARN_API arn_status arn_image_encoder_get_counts(const arn_image_encoder* encoder,
                                                arn_image_counts* out_counts);

/* As arn_session_prefill for tokens of which some are embeddings: an id below 0, or the model's
 * image token (arn_image_info), takes the next row of `embeddings`, f32 [n_embeddings, width],
 * which is copied. ARN_BAD_ARGUMENT: another number of rows than of such ids. ARN_BAD_STATE: the
 * session was created with embedding_rows = 0. ARN_CONTEXT_FULL: the sequences hold too many
 * embeddings, or the tokens do not fit context_tokens. All of these change nothing.
 * arn_session_tokens then has ids below 0 in the places of embeddings. */
ARN_API arn_status arn_session_prefill_embeddings(arn_session* session, const int32_t* ids,
                                                  size_t n_ids, const float* embeddings,
                                                  size_t n_embeddings);
/* As arn_session_follow for such tokens: embeddings that are equal to those of the sequence are
 * kept. ARN_CONTEXT_FULL for too many embeddings leaves the kept tokens. */
ARN_API arn_status arn_session_follow_embeddings(arn_session* session, const int32_t* ids,
                                                 size_t n_ids, const float* embeddings,
                                                 size_t n_embeddings, uint32_t* out_kept);

#ifdef __cplusplus
}
#endif

#endif /* ARENITE_IMAGE_H_ */
