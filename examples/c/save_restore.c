/* Saves a conversation and goes on with it in a later process, without computing it again: run this
 * twice.
 *
 *   ./save_restore model.arn saved
 *
 * The session's state (saved.state) has the KV cache; the messages (saved.json) are a JSON text. */
#include <string.h>

#include "common.h"

enum { kMostJson = 65536 };

/* Returns the bytes of a file, 0 if there is none. */
static size_t read_file(const char* path, char* out, size_t capacity) {
  FILE* file = fopen(path, "rb");
  if (file == NULL) return 0;
  const size_t bytes = fread(out, 1, capacity, file);
  fclose(file);
  return bytes;
}

int main(int argc, char** argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: %s MODEL.arn NAME\n", argv[0]);
    return 2;
  }
  char error[512] = "", state_path[1024], json_path[1024];
  static char json[kMostJson];
  snprintf(state_path, sizeof state_path, "%s.state", argv[2]);
  snprintf(json_path, sizeof json_path, "%s.json", argv[2]);

  arn_model* model = open_model(argv[1]);
  arn_session* session = NULL;
  arn_conversation* chat = NULL;
  check(arn_session_create(model, NULL, NULL, 0, error, sizeof error, &session), error);
  check(arn_conversation_create(session, NULL, NULL, 0, error, sizeof error, &chat), error);

  const size_t json_bytes = read_file(json_path, json, sizeof json);
  if (json_bytes > 0) {
    check(arn_conversation_add_json(chat, json, json_bytes), arn_conversation_last_error(chat));
    /* A state of another model, or a damaged one, is refused and changes nothing: the messages are
     * then computed again. */
    const arn_status restored = arn_session_restore(session, state_path, NULL);
    if (restored != ARN_OK) fprintf(stderr, "starting over: %s\n", arn_session_last_error(session));
  }
  const char* message = json_bytes > 0 ? "And then?" : "Tell me a story.";
  check(arn_conversation_add(chat, "user", message, strlen(message)),
        arn_conversation_last_error(chat));
  arn_generate_options limits = ARN_GENERATE_OPTIONS_INIT;
  limits.max_tokens = 40;
  arn_conversation_result result = ARN_CONVERSATION_RESULT_INIT;
  check(arn_conversation_reply(chat, &limits, NULL, NULL, &result),
        arn_conversation_last_error(chat));

  const char* messages = NULL;
  size_t bytes = 0;
  check(arn_conversation_messages(chat, &messages, &bytes), "the messages");
  printf("%s\n(%u tokens were kept, %u computed)\n", messages, result.n_kept,
         result.n_prompt_tokens - result.n_kept);

  /* Replaces the old file only once the new one is complete. */
  check(arn_session_save(session, state_path), arn_session_last_error(session));
  FILE* file = fopen(json_path, "wb");
  if (file == NULL || fwrite(messages, 1, bytes, file) != bytes || fclose(file) != 0) {
    fprintf(stderr, "%s cannot be written\n", json_path);
    return 1;
  }
  arn_conversation_destroy(chat);
  arn_session_destroy(session);
  arn_model_close(model);
  return 0;
}
