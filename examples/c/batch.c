/* Continues several texts at once: each step reads the weights once for all of them, which is what
 * a step spends its time on.
 *
 *   ./batch model.arn "Once upon a time" "The little dog" "In the garden"
 */
#include <string.h>

#include "common.h"

enum { kMostTexts = 8, kMostTokens = 256, kSteps = 24 };

int main(int argc, char** argv) {
  const uint32_t n = (uint32_t)argc - 2;
  if (argc < 3 || n > kMostTexts) {
    fprintf(stderr, "usage: %s MODEL.arn TEXT ... (at most %d texts)\n", argv[0], kMostTexts);
    return 2;
  }
  char error[512] = "";
  arn_model* model = open_model(argv[1]);
  arn_session* session = NULL;
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.context_tokens = kMostTokens; /* of each sequence */
  options.max_sequences = n;
  check(arn_session_create(model, &options, NULL, 0, error, sizeof error, &session), error);

  /* A sequence for each text. All calls act on the selected one. */
  uint32_t sequences[kMostTexts];
  for (uint32_t i = 0; i < n; ++i) {
    int32_t ids[kMostTokens];
    size_t n_ids = 0;
    const char* text = argv[2 + i];
    sequences[i] = i;
    check(arn_tokenize(model, text, strlen(text), ARN_TOKENIZE_DEFAULT, NULL, 0, ids, kMostTokens,
                       &n_ids),
          "a text cannot be tokenized, or has more than 256 tokens");
    check(arn_session_select(session, i), arn_session_last_error(session));
    check(arn_session_prefill(session, ids, n_ids), arn_session_last_error(session));
  }
  /* One more token of every text in each call. */
  for (int step = 0; step < kSteps; ++step) {
    int32_t chosen[kMostTexts];
    check(arn_session_decode_batch(session, sequences, n, chosen), arn_session_last_error(session));
  }
  /* The sequences hold the ids; turn them back into text. */
  for (uint32_t i = 0; i < n; ++i) {
    const int32_t* ids = NULL;
    uint32_t n_ids = 0;
    char text[4096];
    size_t bytes = 0;
    check(arn_session_select(session, i), arn_session_last_error(session));
    check(arn_session_tokens(session, &ids, &n_ids), arn_session_last_error(session));
    check(arn_detokenize(model, ids, n_ids, ARN_DETOKENIZE_SKIP_SPECIAL, text, sizeof text, &bytes),
          "the text is longer than 4096 bytes");
    printf("%u: %.*s\n", i, (int)bytes, text);
  }
  arn_session_destroy(session);
  arn_model_close(model);
  return 0;
}
