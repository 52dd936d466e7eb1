/* Continues a text and shows it as it is made, until a full stop.
 *
 *   ./stream model.arn "Once upon a time"
 */
#include <string.h>

#include "common.h"

enum { kMostPromptTokens = 256 };

/* Called once for each token. The text may be empty: it comes in whole characters, and what may
 * become a stop string is held back until that is certain. */
static int32_t on_token(void* user, int32_t id, const char* text, size_t text_bytes) {
  (void)user;
  (void)id;
  fwrite(text, 1, text_bytes, stdout);
  fflush(stdout);
  return 0; /* go on; anything else ends the text */
}

int main(int argc, char** argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: %s MODEL.arn PROMPT\n", argv[0]);
    return 2;
  }
  char error[512] = "";
  arn_model* model = open_model(argv[1]);
  arn_session* session = NULL;
  check(arn_session_create(model, NULL, NULL, 0, error, sizeof error, &session), error);

  /* Text to token ids, and the ids through the model. */
  int32_t ids[kMostPromptTokens];
  size_t n_ids = 0;
  check(arn_tokenize(model, argv[2], strlen(argv[2]), ARN_TOKENIZE_DEFAULT, NULL, 0, ids,
                     kMostPromptTokens, &n_ids),
        "the prompt cannot be tokenized, or has more than 256 tokens");
  check(arn_session_prefill(session, ids, n_ids), arn_session_last_error(session));

  const arn_stop_string stops[] = {{".", 1}, {"!", 1}};
  arn_generate_options options = ARN_GENERATE_OPTIONS_INIT;
  options.max_tokens = 200;
  options.stops = stops;
  options.n_stops = 2;
  options.callback = on_token;
  arn_generate_result result = ARN_GENERATE_RESULT_INIT;
  fputs(argv[2], stdout);
  check(arn_session_generate(session, &options, &result), arn_session_last_error(session));
  printf("\n(%u tokens, ended by %s)\n", result.n_tokens,
         result.finish == ARN_FINISH_STOP ? "a stop string" : "a limit or the model");

  arn_session_destroy(session);
  arn_model_close(model);
  return 0;
}
