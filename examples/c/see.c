/* A question about an image, a PPM file of 8 bits a channel (P6).
 *
 *   ./see model.arn image.ppm "What is this?"
 *
 * Apps decode images with what their system has (ImageDecoder on Android, libjpeg, libpng): the
 * library takes pixels. */
#include <string.h>

#include "common.h"

static void* allocate(size_t bytes) {
  void* memory = malloc(bytes);
  if (memory == NULL) check(ARN_OUT_OF_MEMORY, "this program's own memory");
  return memory;
}

static arn_image read_ppm(const char* path) {
  arn_image image = {NULL, 0, 0, 0};
  FILE* file = fopen(path, "rb");
  if (file == NULL || fscanf(file, "P6 %u %u 255", &image.width, &image.height) != 2 ||
      fgetc(file) == EOF || image.width > 8192 || image.height > 8192) {
    check(ARN_BAD_ARGUMENT, "no PPM file (P6) of 8 bits a channel");
  }
  const size_t bytes = (size_t)3 * image.width * image.height;
  uint8_t* pixels = allocate(bytes + 1);
  if (fread(pixels, 1, bytes, file) != bytes) check(ARN_BAD_ARGUMENT, "the PPM file is cut off");
  fclose(file);
  image.pixels = pixels;
  return image;
}

/* Returns [*n, info.width] floats. The memory of the vision tower is free afterwards. */
static float* encode(const arn_model* model, const arn_image* image, const arn_image_info* info,
                     uint32_t* n) {
  char error[512] = "";
  arn_image_encoder* encoder = NULL;
  check(arn_image_encoder_create(model, NULL, NULL, 0, error, sizeof error, &encoder), error);
  arn_image_layout layout = ARN_IMAGE_LAYOUT_INIT;
  check(arn_image_get_layout(model, image->width, image->height, error, sizeof error, &layout),
        error);
  const size_t capacity = (size_t)layout.n_embeddings * info->width;
  float* embeddings = allocate(capacity * sizeof *embeddings);
  check(arn_image_encode(encoder, image, embeddings, capacity, n),
        arn_image_encoder_last_error(encoder));
  arn_image_encoder_destroy(encoder);
  return embeddings;
}

/* Renders the message, puts the image's tokens where the template has its marker, and returns
 * the ids. Only the template's own markers and special tokens count, not those of the text. */
static int32_t* prompt_ids(const arn_model* model, const arn_image* image, const char* question,
                           size_t* n_ids) {
  char error[512] = "", messages[4096], rendered[8192];
  /* A real program escapes the question (docs/chat-format.md). */
  const int bytes = snprintf(messages, sizeof messages,
                             "[{\"role\": \"user\", \"content\": [{\"type\": \"image\"}, "
                             "{\"type\": \"text\", \"text\": \"%s\"}]}]",
                             question);
  if (bytes < 0 || (size_t)bytes >= sizeof messages || strpbrk(question, "\"\\") != NULL) {
    check(ARN_BAD_ARGUMENT, "the question is too long, or has a quote or a backslash");
  }
  arn_chat* chat = NULL;
  check(arn_chat_create(model, NULL, NULL, 0, error, sizeof error, &chat), error);
  arn_chat_input input = ARN_CHAT_INPUT_INIT;
  input.messages = messages;
  input.messages_bytes = (size_t)bytes;
  input.add_generation_prompt = 1;
  size_t n_rendered = 0, n_plain = 0, n_text = 0;
  const arn_text_span* plain = NULL;
  check(arn_chat_render(chat, &input, rendered, sizeof rendered, &n_rendered),
        arn_chat_last_error(chat));
  check(arn_chat_plain_spans(chat, &plain, &n_plain), arn_chat_last_error(chat));

  /* First without a buffer, for the size. */
  const arn_image_size size = {image->width, image->height};
  arn_text_span* moved = allocate((n_plain + 1) * sizeof *moved);
  arn_status status = arn_image_expand(model, &size, 1, rendered, n_rendered, plain, n_plain, error,
                                       sizeof error, NULL, 0, &n_text, moved);
  if (status != ARN_BUFFER_TOO_SMALL) check(status, error);
  char* text = allocate(n_text);
  check(arn_image_expand(model, &size, 1, rendered, n_rendered, plain, n_plain, error, sizeof error,
                         text, n_text, &n_text, moved),
        error);
  arn_chat_destroy(chat);

  arn_tokenize_options options = ARN_TOKENIZE_OPTIONS_INIT;
  options.flags = ARN_TOKENIZE_NO_SPECIAL; /* the template has written them */
  options.plain_spans = moved;
  options.n_plain_spans = n_plain;
  int32_t* ids = allocate(n_text * sizeof *ids);
  check(arn_tokenize_with(model, text, n_text, &options, ids, n_text, n_ids),
        "the prompt cannot be tokenized");
  free(text);
  free(moved);
  return ids;
}

static int32_t on_token(void* user, int32_t token, const char* text, size_t text_bytes) {
  (void)user;
  (void)token;
  fwrite(text, 1, text_bytes, stdout);
  fflush(stdout);
  return 0;
}

int main(int argc, char** argv) {
  if (argc != 4) {
    fprintf(stderr, "usage: %s MODEL.arn IMAGE.ppm QUESTION\n", argv[0]);
    return 2;
  }
  char error[512] = "";
  arn_model* model = open_model(argv[1]);
  arn_image_info info = ARN_IMAGE_INFO_INIT;
  check(arn_image_get_info(model, &info), "the model takes no images");
  const arn_image image = read_ppm(argv[2]);
  uint32_t n_embeddings = 0;
  float* embeddings = encode(model, &image, &info, &n_embeddings);
  size_t n_ids = 0;
  int32_t* ids = prompt_ids(model, &image, argv[3], &n_ids);

  arn_model_info about = ARN_MODEL_INFO_INIT;
  check(arn_model_get_info(model, &about), "the model's context");
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.context_tokens = (uint32_t)n_ids + 256; /* prompt and answer */
  if (options.context_tokens > about.max_context) options.context_tokens = about.max_context;
  options.embedding_rows = n_embeddings; /* those of all images in all sequences */
  arn_session* session = NULL;
  check(arn_session_create(model, &options, NULL, 0, error, sizeof error, &session), error);
  check(arn_session_prefill_embeddings(session, ids, n_ids, embeddings, n_embeddings),
        arn_session_last_error(session));

  arn_generate_options limits = ARN_GENERATE_OPTIONS_INIT;
  limits.max_tokens = 200;
  limits.callback = on_token;
  arn_generate_result result = ARN_GENERATE_RESULT_INIT;
  check(arn_session_generate(session, &limits, &result), arn_session_last_error(session));
  printf("\n(%u tokens, %u of the image among the %u of the prompt)\n", result.n_tokens,
         n_embeddings, (uint32_t)n_ids);

  arn_session_destroy(session);
  arn_model_close(model);
  free(ids);
  free(embeddings);
  free((void*)image.pixels);
  return 0;
}
