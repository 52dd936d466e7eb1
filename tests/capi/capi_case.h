/* One case of the C API test in C11. Returns 0 on success; otherwise env->failure has the reason.
 */
#ifndef TESTS_CAPI_CAPI_CASE_H_
#define TESTS_CAPI_CAPI_CASE_H_

#include <arenite/arenite.h>
#include <stdio.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct capi_env {
  /* A bundle without a tokenizer: vocab 61, context 256, stop token id 2. The same bytes are in a
   * file, in memory (64-byte aligned), and in a file at offset 16384 followed by as much garbage.
   */
  const char* path;
  const void* data;
  uint64_t bytes;
  const char* embedded_path;
  /* A bundle with a tokenizer; NULL for cases that use none. */
  const char* text_path;
  const char* adapter_path; /* an adapter of `path` */
  char failure[512];
} capi_env;

typedef int (*capi_case)(capi_env* env);

int capi_status_names(capi_env* env);
int capi_version(capi_env* env);
int capi_open_path(capi_env* env);
int capi_open_fd(capi_env* env);
int capi_open_memory(capi_env* env);
int capi_open_errors(capi_env* env);
int capi_info(capi_env* env);
int capi_tensors(capi_env* env);
int capi_program(capi_env* env);

int capi_plan(capi_env* env);
int capi_plan_errors(capi_env* env);
int capi_options_size(capi_env* env);
int capi_create_errors(capi_env* env);
int capi_caller_memory(capi_env* env);

int capi_prefill_decode(capi_env* env);
int capi_prefill_progress(capi_env* env);
int capi_logits(capi_env* env);
int capi_all_logits(capi_env* env);
int capi_read_kv(capi_env* env);
int capi_bad_tokens(capi_env* env);
int capi_context_full(capi_env* env);
int capi_sampling(capi_env* env);
int capi_reset(capi_env* env);
int capi_stats(capi_env* env);
int capi_two_sessions(capi_env* env);
int capi_null_session(capi_env* env);

int capi_adapter(capi_env* env);

int capi_scheduler(capi_env* env);
int capi_scheduler_errors(capi_env* env);

int capi_device(capi_env* env);
int capi_device_structs(capi_env* env);

int capi_profile(capi_env* env);
int capi_profile_errors(capi_env* env);
int capi_count(capi_env* env);

int capi_generate(capi_env* env);
int capi_generate_errors(capi_env* env);
int capi_generate_ends(capi_env* env);
int capi_generate_logprobs(capi_env* env);
int capi_cancel_from_callback(capi_env* env);
int capi_cancel_from_thread(capi_env* env);
int capi_cancel_is_remembered(capi_env* env);
int capi_calls_from_callback(capi_env* env);

int capi_tokenize(capi_env* env);
int capi_tokenize_errors(capi_env* env);
int capi_tokenize_plain(capi_env* env);
int capi_tokenize_options(capi_env* env);
int capi_detokenize(capi_env* env);
int capi_detokenizer(capi_env* env);
int capi_detokenizer_errors(capi_env* env);
int capi_token_text(capi_env* env);
int capi_stop_strings(capi_env* env);
int capi_without_tokenizer(capi_env* env);

int capi_chat(capi_env* env);
int capi_chat_errors(capi_env* env);
int capi_chat_plain_spans(capi_env* env);
int capi_reply(capi_env* env);
int capi_reply_errors(capi_env* env);
int capi_transcribe(capi_env* env);

int capi_conversation(capi_env* env);
int capi_conversation_memory(capi_env* env);
int capi_conversation_wrong_order(capi_env* env);
int capi_conversation_errors(capi_env* env);

#ifdef __cplusplus
}
#endif

/* Fails the case unless the condition holds. */
#define CHECK(condition)                                                                        \
  do {                                                                                          \
    if (!(condition)) {                                                                         \
      snprintf(env->failure, sizeof env->failure, "%s:%d: %s", __FILE__, __LINE__, #condition); \
      return 1;                                                                                 \
    }                                                                                           \
  } while (0)
/* Fails the case unless `call` returns `wanted`, and reports the status. */
#define CHECK_STATUS(wanted, call)                                                        \
  do {                                                                                    \
    const arn_status check_status_ = (call);                                              \
    if (check_status_ != (arn_status)(wanted)) {                                          \
      snprintf(env->failure, sizeof env->failure, "%s:%d: %s gives %s, not %s", __FILE__, \
               __LINE__, #call, arn_status_name(check_status_), #wanted);                 \
      return 1;                                                                           \
    }                                                                                     \
  } while (0)

#endif /* TESTS_CAPI_CAPI_CASE_H_ */
