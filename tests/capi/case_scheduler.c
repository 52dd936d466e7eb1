/* The scheduler: requests, steps, events, and arguments that are refused. */
#include <string.h>

#include "tests/capi/capi_case.h"

typedef struct fixture {
  arn_model* model;
  arn_session* session;
  arn_scheduler* scheduler;
} fixture;

static int begin(capi_env* env, uint32_t max_requests, fixture* f) {
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  memset(f, 0, sizeof *f);
  options.max_sequences = 2;
  options.max_requests = max_requests;
  CHECK_STATUS(ARN_OK, arn_model_open(env->path, NULL, NULL, 0, &f->model));
  CHECK_STATUS(ARN_OK, arn_session_create(f->model, &options, NULL, 0, NULL, 0, &f->session));
  CHECK_STATUS(ARN_OK, arn_scheduler_create(f->session, NULL, NULL, 0, &f->scheduler));
  return 0;
}

static void end(fixture* f) {
  arn_scheduler_destroy(f->scheduler);
  arn_session_destroy(f->session);
  arn_model_close(f->model);
}

int capi_scheduler(capi_env* env) {
  fixture f;
  const int32_t ids[] = {3, 10, 17, 24, 31, 38, 45, 52, 59};
  int32_t alone[2][6], together[2][6];
  uint64_t numbers[2];
  uint32_t n_tokens[2] = {0, 0}, n_ended = 0;
  arn_request request = ARN_REQUEST_INIT;
  arn_step_result result = ARN_STEP_RESULT_INIT;
  arn_scheduler_event event = ARN_SCHEDULER_EVENT_INIT;
  arn_scheduler_info info = ARN_SCHEDULER_INFO_INIT;
  arn_request_info about = ARN_REQUEST_INFO_INIT;
  if (begin(env, 4, &f) != 0) return 1;
  arn_scheduler_destroy(f.scheduler);
  for (int i = 0; i < 2; ++i) {
    CHECK_STATUS(ARN_OK, arn_session_reset(f.session));
    CHECK_STATUS(ARN_OK, arn_session_prefill(f.session, ids + i, 8));
    for (int j = 0; j < 6; ++j) CHECK_STATUS(ARN_OK, arn_session_decode(f.session, &alone[i][j]));
  }
  CHECK_STATUS(ARN_OK, arn_session_reset(f.session));
  CHECK_STATUS(ARN_OK, arn_scheduler_create(f.session, NULL, NULL, 0, &f.scheduler));
  CHECK_STATUS(ARN_NOT_FOUND, arn_scheduler_next_event(f.scheduler, &event));
  for (int i = 0; i < 2; ++i) {
    request.ids = ids + i;
    request.n_ids = 8;
    request.max_tokens = 6;
    request.ignore_eos = 1;
    request.user = &n_tokens[i];
    CHECK_STATUS(ARN_OK, arn_scheduler_submit(f.scheduler, &request, &numbers[i]));
  }
  CHECK(numbers[0] == 1 && numbers[1] == 2);
  CHECK_STATUS(ARN_OK, arn_scheduler_get_info(f.scheduler, &info));
  CHECK(info.n_waiting == 2 && info.n_running == 0 && info.max_requests == 4);
  CHECK(info.step_rows == 128);
  CHECK_STATUS(ARN_OK, arn_scheduler_get_request(f.scheduler, 2, &about));
  CHECK(about.state == ARN_REQUEST_STATE_WAITING && about.n_tokens == 0);
  for (int step = 0; n_ended < 2; ++step) {
    CHECK(step < 10);
    CHECK_STATUS(ARN_OK, arn_scheduler_step(f.scheduler, &result));
    CHECK(result.n_rows == (step == 0 ? 16u : 2u) && result.n_chosen == 2);
    while (arn_scheduler_next_event(f.scheduler, &event) == ARN_OK) {
      const int i = (int)event.request - 1;
      CHECK(event.user == &n_tokens[i] && event.n_prompt_tokens == 8 && event.status == ARN_OK);
      if (event.kind == ARN_REQUEST_EVENT_STARTED) CHECK(event.n_kept == 0);
      if (event.kind == ARN_REQUEST_EVENT_TOKEN) together[i][n_tokens[i]++] = event.id;
      if (event.kind == ARN_REQUEST_EVENT_ENDED) {
        CHECK(event.finish == ARN_FINISH_LENGTH && event.n_tokens == 6);
        ++n_ended;
      }
    }
  }
  CHECK(result.n_running == 0 && result.n_waiting == 0);
  CHECK(memcmp(alone, together, sizeof alone) == 0);
  CHECK_STATUS(ARN_NOT_FOUND, arn_scheduler_get_request(f.scheduler, 2, &about));
  CHECK_STATUS(ARN_NOT_FOUND, arn_scheduler_cancel(f.scheduler, 2));
  CHECK(arn_scheduler_request_of(f.scheduler, 0) == 0);
  CHECK_STATUS(ARN_OK, arn_scheduler_step(f.scheduler, &result));
  CHECK(result.n_rows == 0);
  end(&f);
  return 0;
}

int capi_scheduler_errors(capi_env* env) {
  fixture f;
  char error[256] = "";
  const int32_t ids[] = {3, 10, 17};
  uint64_t number = 5;
  int32_t id = 0;
  arn_scheduler* other = NULL;
  arn_request request = ARN_REQUEST_INIT;
  arn_step_result result = ARN_STEP_RESULT_INIT;
  arn_scheduler_event event = ARN_SCHEDULER_EVENT_INIT;
  arn_scheduler_options options = ARN_SCHEDULER_OPTIONS_INIT;
  if (begin(env, 2, &f) != 0) return 1;
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_scheduler_create(NULL, NULL, NULL, 0, &other));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_scheduler_create(f.session, NULL, NULL, 0, NULL));
  CHECK_STATUS(ARN_BAD_STATE, arn_scheduler_create(f.session, NULL, error, sizeof error, &other));
  CHECK(other == NULL && strstr(error, "already") != NULL);
  arn_scheduler_destroy(f.scheduler);
  options.struct_size = 3;
  CHECK_STATUS(ARN_BAD_ARGUMENT,
               arn_scheduler_create(f.session, &options, error, sizeof error, &other));
  options.struct_size = sizeof options;
  options.step_rows = 129;
  CHECK_STATUS(ARN_BAD_ARGUMENT,
               arn_scheduler_create(f.session, &options, error, sizeof error, &other));
  CHECK(strstr(error, "step_rows") != NULL);
  CHECK_STATUS(ARN_OK, arn_scheduler_create(f.session, NULL, NULL, 0, &f.scheduler));

  request.n_ids = 3;
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_scheduler_submit(f.scheduler, &request, &number));
  CHECK(number == 0);
  CHECK(strstr(arn_scheduler_last_error(f.scheduler), "ids") != NULL);
  request.ids = ids;
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_scheduler_submit(f.scheduler, NULL, &number));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_scheduler_submit(f.scheduler, &request, NULL));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_scheduler_submit(NULL, &request, &number));
  request.ignore_eos = 2;
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_scheduler_submit(f.scheduler, &request, &number));
  request.ignore_eos = 1;
  request.n_stops = 1;
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_scheduler_submit(f.scheduler, &request, &number));
  request.n_stops = 0;
  CHECK_STATUS(ARN_OK, arn_scheduler_submit(f.scheduler, &request, &number));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_scheduler_pause(f.scheduler, number, 2));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_scheduler_force(f.scheduler, number, NULL, 1));
  CHECK_STATUS(ARN_BAD_STATE, arn_scheduler_begin_constraint(f.scheduler, number));
  CHECK_STATUS(ARN_NOT_FOUND, arn_scheduler_begin_constraint(f.scheduler, number + 1));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_scheduler_cancel(NULL, number));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_scheduler_step(NULL, &result));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_scheduler_next_event(f.scheduler, NULL));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_scheduler_get_request(f.scheduler, number, NULL));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_scheduler_get_info(NULL, NULL));
  CHECK(arn_scheduler_request_of(NULL, 0) == 0);
  CHECK(arn_scheduler_request_of(f.scheduler, 99) == 0);
  CHECK(arn_scheduler_last_error(NULL)[0] == '\0');
  CHECK_STATUS(ARN_OK, arn_scheduler_step(f.scheduler, NULL));
  /* The sequences are the scheduler's. */
  CHECK_STATUS(ARN_BAD_STATE, arn_session_reset(f.session));
  CHECK(strstr(arn_session_last_error(f.session), "scheduler") != NULL);
  CHECK_STATUS(ARN_BAD_STATE, arn_session_prefill(f.session, ids, 3));
  CHECK_STATUS(ARN_BAD_STATE, arn_session_fork(f.session, 0, 1));
  CHECK_STATUS(ARN_BAD_STATE, arn_session_decode(f.session, &id));
  CHECK_STATUS(ARN_OK, arn_session_select(f.session, 1));
  CHECK_STATUS(ARN_OK, arn_session_select(f.session, 0));
  CHECK_STATUS(ARN_OK, arn_session_trim(f.session, NULL));
  CHECK_STATUS(ARN_OK, arn_session_reset_stats(f.session));
  CHECK(arn_session_length(f.session) == 3);
  CHECK_STATUS(ARN_BAD_STATE, arn_scheduler_step(f.scheduler, &result));
  CHECK(result.n_rows == 0);
  while (arn_scheduler_next_event(f.scheduler, &event) == ARN_OK) CHECK(event.request == number);
  arn_scheduler_destroy(NULL);
  arn_scheduler_destroy(f.scheduler);
  f.scheduler = NULL;
  CHECK_STATUS(ARN_OK, arn_session_decode(f.session, &id));
  CHECK_STATUS(ARN_OK, arn_session_reset(f.session));
  end(&f);
  return 0;
}
