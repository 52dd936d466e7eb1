/* The examples of docs/c-api.md, which shows the code between [name] and [end]. As a program, runs
 * them on a bundle and exits with 0 if each works as described:
 *
 *   cc c_api_examples.c $(pkg-config --cflags --libs arenite) -o examples
 *   ./examples model.arn saved.state
 */
#include <arenite/arenite.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* [open] */
/* Returns a model, or NULL with the reason on stderr. */
static arn_model* open_model(const char* path) {
  char error[512];
  arn_model* model = NULL;
  arn_status status = arn_model_open(path, NULL, error, sizeof error, &model);
  if (status != ARN_OK) fprintf(stderr, "%s: %s\n", arn_status_name(status), error);
  return model;
}
/* [end] */

/* [plan] */
/* Creates a session in a block that the program allocates; its size is known beforehand. */
static arn_session* make_session(const arn_model* model, void** out_block) {
  char error[512];
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.context_tokens = 512;
  options.max_sequences = 2;
  options.max_requests = 8; /* of a scheduler */
  arn_memory_plan plan = ARN_MEMORY_PLAN_INIT;
  arn_session* session = NULL;
  if (arn_session_plan(model, &options, error, sizeof error, &plan) != ARN_OK) return NULL;
  *out_block = aligned_alloc(plan.alignment, plan.total_bytes);
  if (*out_block == NULL) return NULL;
  if (arn_session_create(model, &options, *out_block, plan.total_bytes, error, sizeof error,
                         &session) != ARN_OK) {
    fprintf(stderr, "%s\n", error);
  }
  return session;
}
/* [end] */

/* [generate] */
static int32_t on_token(void* user, int32_t id, const char* text, size_t text_bytes) {
  FILE* out = user;
  (void)id;
  fwrite(text, 1, text_bytes, out); /* whole characters; not NUL-terminated */
  return 0;                         /* go on */
}

/* Continues a text with the checkpoint's own sampling settings. */
static arn_status tell(const arn_model* model, arn_session* session, const char* prompt) {
  int32_t ids[256];
  size_t n_ids = 0;
  arn_sampling sampling = ARN_SAMPLING_INIT;
  arn_generate_options options = ARN_GENERATE_OPTIONS_INIT;
  arn_stop_string stop = {"\n\n", 2};
  options.max_tokens = 100;
  options.stops = &stop;
  options.n_stops = 1;
  options.callback = on_token;
  options.user = stdout;

  arn_status status =
      arn_tokenize(model, prompt, strlen(prompt), ARN_TOKENIZE_DEFAULT, NULL, 0, ids, 256, &n_ids);
  if (status == ARN_OK) status = arn_model_sampling(model, &sampling);
  if (status == ARN_OK) status = arn_session_set_sampling(session, &sampling);
  if (status == ARN_OK) status = arn_session_prefill(session, ids, n_ids);
  if (status == ARN_OK) status = arn_session_generate(session, &options, NULL);
  if (status != ARN_OK) fprintf(stderr, "%s\n", arn_session_last_error(session));
  return status;
}
/* [end] */

/* [chat] */
static int32_t on_event(void* user, uint32_t event, const char* text, size_t text_bytes) {
  FILE* out = user;
  if (event == ARN_REPLY_EVENT_TEXT) fwrite(text, 1, text_bytes, out);
  return 0; /* go on; there are also events of reasoning and tool calls */
}

/* Two turns of a conversation. The second computes its own message only. */
static arn_status talk(arn_session* session) {
  char error[512];
  arn_conversation* chat = NULL;
  arn_generate_options options = ARN_GENERATE_OPTIONS_INIT;
  options.max_tokens = 60;
  arn_status status = arn_conversation_create(session, NULL, NULL, 0, error, sizeof error, &chat);
  if (status != ARN_OK) {
    fprintf(stderr, "%s\n", error);
    return status;
  }
  status = arn_conversation_add(chat, "user", "Tell me a story.", 16);
  if (status == ARN_OK) status = arn_conversation_reply(chat, &options, on_event, stdout, NULL);
  if (status == ARN_OK) status = arn_conversation_add(chat, "user", "Go on.", 6);
  if (status == ARN_OK) status = arn_conversation_reply(chat, &options, on_event, stdout, NULL);
  if (status != ARN_OK) fprintf(stderr, "%s\n", arn_conversation_last_error(chat));
  arn_conversation_destroy(chat);
  return status;
}
/* [end] */

/* [save] */
/* Saves a session, and restores it, in a later process too. */
static arn_status put_by(arn_session* session, const char* path) {
  return arn_session_save(session, path); /* replaces the file once it is complete */
}

static arn_status take_up(arn_session* session, const char* path) {
  arn_status status = arn_session_restore(session, path, NULL);
  if (status == ARN_SAVE_MISMATCH) arn_session_reset(session); /* another model's: start over */
  return status;
}
/* [end] */

/* [fork] */
/* Continues one prefix in two ways; computes and stores the prefix once. */
static arn_status two_ways(arn_session* session, int32_t first, int32_t second) {
  const uint32_t both[2] = {0, 1};
  const int32_t ids[2] = {first, second};
  int32_t chosen[2];
  arn_status status = arn_session_fork(session, 0, 1); /* shares pages until one writes */
  if (status == ARN_OK) status = arn_session_step(session, both, ids, 2);
  for (int i = 0; status == ARN_OK && i < 8; ++i) {
    status = arn_session_decode_batch(session, both, 2, chosen); /* one batch */
  }
  return status;
}
/* [end] */

/* [schedule] */
typedef struct prompt {
  const int32_t* ids;
  size_t n_ids;
} prompt;

/* Answers prompts, as many at a time as the session has sequences, each with up to 32 tokens. */
static arn_status answer_all(arn_session* session, const prompt* prompts, size_t n) {
  char error[512] = "";
  arn_scheduler* scheduler = NULL;
  arn_status status = arn_scheduler_create(session, NULL, error, sizeof error, &scheduler);
  for (size_t i = 0; status == ARN_OK && i < n; ++i) {
    arn_request request = ARN_REQUEST_INIT;
    uint64_t number = 0;
    request.ids = prompts[i].ids; /* read until the request has ended */
    request.n_ids = prompts[i].n_ids;
    request.max_tokens = 32;
    status = arn_scheduler_submit(scheduler, &request, &number);
  }
  arn_step_result step = ARN_STEP_RESULT_INIT;
  do {
    if (status == ARN_OK) status = arn_scheduler_step(scheduler, &step);
    arn_scheduler_event event = ARN_SCHEDULER_EVENT_INIT;
    while (arn_scheduler_next_event(scheduler, &event) == ARN_OK) {
      printf("%llu: %.*s\n", (unsigned long long)event.request, (int)event.text_bytes, event.text);
    }
  } while (status == ARN_OK && step.n_running + step.n_waiting > 0);
  arn_scheduler_destroy(scheduler);
  return status;
}
/* [end] */

/* [cancel] */
/* Called on any other thread: the running call returns ARN_CANCELLED within one layer's time. */
static void on_stop_button(arn_session* session) { arn_session_cancel(session); }
/* [end] */

static int fail(const char* what) {
  fprintf(stderr, "failed: %s\n", what);
  return 1;
}

int main(int argc, char** argv) {
  const int32_t* tokens = NULL;
  uint32_t before = 0, after = 0;
  void* block = NULL;
  int32_t id = 0;
  if (argc != 3) return fail("usage: c_api_examples MODEL.arn STATE");
  if (open_model("/there/is/none.arn") != NULL) return fail("open: a model out of nothing");
  arn_model* model = open_model(argv[1]);
  if (model == NULL) return fail("open");
  arn_session* session = make_session(model, &block);
  if (session == NULL) return fail("plan");
  if (tell(model, session, "Once upon a time") != ARN_OK) return fail("generate");
  puts("");
  if (talk(session) != ARN_OK) return fail("chat");
  puts("");
  before = arn_session_length(session);
  if (put_by(session, argv[2]) != ARN_OK) return fail("save");
  if (arn_session_reset(session) != ARN_OK) return fail("reset");
  if (take_up(session, argv[2]) != ARN_OK) return fail("restore");
  if (arn_session_tokens(session, &tokens, &after) != ARN_OK || after != before) {
    return fail("restored tokens");
  }
  if (two_ways(session, tokens[0], tokens[1]) != ARN_OK) return fail("fork");
  int32_t ids[32];
  for (uint32_t i = 0; i < 32; ++i) ids[i] = tokens[i % before];
  const prompt prompts[] = {{ids, 32}, {ids, 5}, {ids, 32}};
  if (answer_all(session, prompts, 3) != ARN_OK) return fail("schedule");
  if (arn_session_select(session, 0) != ARN_OK) return fail("select");
  on_stop_button(session); /* without a running call, cancels the next one */
  if (arn_session_decode(session, &id) != ARN_CANCELLED) return fail("cancel");
  arn_session_destroy(session);
  free(block);
  arn_model_close(model);
  puts("all examples ran");
  return 0;
}
