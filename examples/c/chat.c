/* A chat: each line of the input is a message.
 *
 *   ./chat model.arn
 *
 * The conversation remembers the messages, formats them as the model expects, and computes only
 * what is new in each turn. */
#include <string.h>

#include "common.h"

/* Called for each piece of the reply. Text is UTF-8, whole characters, not NUL-terminated. */
static int32_t on_event(void* user, uint32_t event, const char* text, size_t text_bytes) {
  (void)user;
  switch (event) {
    case ARN_REPLY_EVENT_TEXT: fwrite(text, 1, text_bytes, stdout); break;
    case ARN_REPLY_EVENT_CALL_BEGIN: printf("\n[calls %.*s] ", (int)text_bytes, text); break;
    default: break; /* reasoning, and the rest of a call */
  }
  fflush(stdout);
  return 0; /* go on; anything else ends the reply */
}

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: %s MODEL.arn\n", argv[0]);
    return 2;
  }
  char error[512] = "", line[2048];
  arn_model* model = open_model(argv[1]);

  /* The session has the KV cache and the threads. All its memory is allocated here. */
  arn_session* session = NULL;
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.context_tokens = 512; /* prompt and replies together; 0 chooses for you */
  check(arn_session_create(model, &options, NULL, 0, error, sizeof error, &session), error);

  /* The checkpoint's own temperature and so on; without this, replies are greedy. */
  arn_sampling sampling = ARN_SAMPLING_INIT;
  check(arn_model_sampling(model, &sampling), "the sampling options");
  sampling.seed = arn_random_seed(); /* other words each time */
  check(arn_session_set_sampling(session, &sampling), arn_session_last_error(session));

  arn_conversation* chat = NULL;
  arn_conversation_options how = ARN_CONVERSATION_OPTIONS_INIT;
  how.drops_oldest = 1; /* forget the oldest turns when the context is full */
  check(arn_conversation_create(session, &how, NULL, 0, error, sizeof error, &chat), error);

  while (fgets(line, sizeof line, stdin) != NULL) {
    line[strcspn(line, "\n")] = '\0';
    arn_generate_options limits = ARN_GENERATE_OPTIONS_INIT;
    limits.max_tokens = 100;
    arn_conversation_result result = ARN_CONVERSATION_RESULT_INIT;
    arn_status status = arn_conversation_add(chat, "user", line, strlen(line));
    if (status == ARN_OK) {
      status = arn_conversation_reply(chat, &limits, on_event, NULL, &result);
    }
    check(status, arn_conversation_last_error(chat));
    printf("\n(%u tokens; %u of %u before them were kept)\n", result.n_tokens, result.n_kept,
           result.n_prompt_tokens);
  }
  arn_conversation_destroy(chat);
  arn_session_destroy(session);
  arn_model_close(model);
  return 0;
}
