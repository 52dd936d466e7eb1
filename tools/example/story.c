/* The smallest complete program: continues a text. `cmake --install` installs its dependencies:
 *
 *   cc story.c $(pkg-config --cflags --libs arenite) -o story
 *   ./story model.arn "Once upon a time"
 */
#include <arenite/arenite.h>
#include <stdio.h>
#include <string.h>

enum { kMostTokens = 256 };

/* Called with whole characters, as soon as they can be shown. */
static int32_t show(void* user, int32_t id, const char* text, size_t text_bytes) {
  (void)user;
  (void)id;
  fwrite(text, 1, text_bytes, stdout);
  fflush(stdout);
  return 0; /* go on */
}

int main(int argc, char** argv) {
  char error[256] = "";
  arn_model* model = NULL;
  arn_session* session = NULL;
  int32_t ids[kMostTokens];
  size_t n_ids = 0;

  if (argc != 3) {
    fprintf(stderr, "usage: %s MODEL.arn PROMPT\n", argv[0]);
    return 2;
  }
  arn_status status = arn_model_open(argv[1], NULL, error, sizeof error, &model);
  if (status == ARN_OK) {
    arn_session_options options = ARN_SESSION_OPTIONS_INIT;
    options.context_tokens = 2 * kMostTokens;
    status = arn_session_create(model, &options, NULL, 0, error, sizeof error, &session);
  }
  if (status == ARN_OK) {
    status = arn_tokenize(model, argv[2], strlen(argv[2]), ARN_TOKENIZE_DEFAULT, NULL, 0, ids,
                          kMostTokens, &n_ids);
  }
  if (status == ARN_OK) status = arn_session_prefill(session, ids, n_ids);
  if (status == ARN_OK) { /* the checkpoint's own sampling settings; a new session is greedy */
    arn_sampling sampling = ARN_SAMPLING_INIT;
    status = arn_model_sampling(model, &sampling);
    if (status == ARN_OK) status = arn_session_set_sampling(session, &sampling);
  }
  if (status == ARN_OK) {
    arn_generate_options generate = ARN_GENERATE_OPTIONS_INIT;
    generate.max_tokens = kMostTokens;
    generate.callback = show;
    arn_generate_result result = ARN_GENERATE_RESULT_INIT;
    fputs(argv[2], stdout);
    status = arn_session_generate(session, &generate, &result);
    putchar('\n');
  }
  if (status != ARN_OK) {
    const char* why = session != NULL ? arn_session_last_error(session) : error;
    fprintf(stderr, "%s: %s\n", arn_status_name(status), why);
  }
  arn_session_destroy(session);
  arn_model_close(model);
  return status == ARN_OK ? 0 : 1;
}
