/* Answers many requests with few sequences, as a server does: each has its own length and sampling,
 * they join while others are at work, and what begins alike is computed once.
 *
 *   ./requests model.arn "Once upon a time" "Once upon a time, a fox" "In the garden"
 */
#include <string.h>

#include "common.h"

enum { kMostRequests = 16, kMostTokens = 256, kSequences = 3, kCopies = 2 };

typedef struct job {
  int32_t ids[kMostTokens]; /* the scheduler reads them until the request has ended */
  char text[4096];
  size_t bytes;
} job;

static job jobs[kMostRequests];

static void take(const arn_scheduler_event* event) {
  job* to = event->user;
  if (event->status != ARN_OK) {
    fprintf(stderr, "request failed: %.*s\n", (int)event->text_bytes, event->text);
    exit(1);
  }
  if (event->kind == ARN_REQUEST_EVENT_STARTED) {
    printf("%d: %u tokens, %u of them known already\n", (int)(to - jobs), event->n_prompt_tokens,
           event->n_kept);
  }
  /* The text of an event is whole characters, ready to show. */
  if (to->bytes + event->text_bytes <= sizeof to->text) {
    memcpy(to->text + to->bytes, event->text, event->text_bytes);
    to->bytes += event->text_bytes;
  }
  if (event->kind == ARN_REQUEST_EVENT_ENDED) {
    printf("%d: %.*s\n", (int)(to - jobs), (int)to->bytes, to->text);
  }
}

int main(int argc, char** argv) {
  if (argc < 3 || (argc - 2) * kCopies > kMostRequests) {
    fprintf(stderr, "usage: %s MODEL.arn TEXT ... (at most %d texts)\n", argv[0],
            kMostRequests / kCopies);
    return 2;
  }
  char error[512] = "";
  arn_model* model = open_model(argv[1]);
  arn_session* session = NULL;
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.context_tokens = kMostTokens;
  options.max_sequences = kSequences;   /* that work at a time */
  options.max_requests = kMostRequests; /* those that wait, too */
  check(arn_session_create(model, &options, NULL, 0, error, sizeof error, &session), error);
  arn_scheduler* scheduler = NULL;
  check(arn_scheduler_create(session, NULL, error, sizeof error, &scheduler), error);

  /* Two replies to each text, which differ by their seed. */
  const int n = (argc - 2) * kCopies;
  for (int i = 0; i < n; ++i) {
    const char* text = argv[2 + i / kCopies];
    size_t n_ids = 0;
    check(arn_tokenize(model, text, strlen(text), ARN_TOKENIZE_DEFAULT, NULL, 0, jobs[i].ids,
                       kMostTokens, &n_ids),
          "a text cannot be tokenized, or has more than 256 tokens");
    arn_sampling sampling = ARN_SAMPLING_INIT;
    sampling.temperature = 0.8f;
    sampling.seed = (uint64_t)(1 + i % kCopies);
    arn_request request = ARN_REQUEST_INIT;
    request.ids = jobs[i].ids;
    request.n_ids = n_ids;
    request.sampling = &sampling;
    request.max_tokens = 24;
    request.user = &jobs[i];
    uint64_t number = 0;
    check(arn_scheduler_submit(scheduler, &request, &number), arn_scheduler_last_error(scheduler));
  }
  for (int n_ended = 0; n_ended < n;) {
    check(arn_scheduler_step(scheduler, NULL), arn_scheduler_last_error(scheduler));
    arn_scheduler_event event = ARN_SCHEDULER_EVENT_INIT;
    while (arn_scheduler_next_event(scheduler, &event) == ARN_OK) {
      take(&event);
      n_ended += event.kind == ARN_REQUEST_EVENT_ENDED;
    }
  }
  arn_scheduler_destroy(scheduler);
  arn_session_destroy(session);
  arn_model_close(model);
  return 0;
}
