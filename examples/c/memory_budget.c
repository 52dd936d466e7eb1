/* Finds the largest context that fits into a budget, before anything is allocated, and runs in
 * exactly that memory.
 *
 *   ./memory_budget model.arn 300
 */
#include <string.h>

#include "common.h"

/* Returns the bytes that a chat with this context takes: session and conversation. The weights are
 * mapped from the file: clean pages, which the system shares and may drop. */
static uint64_t bytes_of(const arn_model* model, arn_session_options* options,
                         arn_memory_plan* plan, uint64_t* conversation_bytes) {
  char error[512] = "";
  check(arn_session_plan(model, options, error, sizeof error, plan), error);
  check(arn_conversation_plan(model, options, NULL, error, sizeof error, conversation_bytes),
        error);
  return plan->total_bytes + *conversation_bytes;
}

int main(int argc, char** argv) {
  const uint64_t budget = argc == 3 ? strtoull(argv[2], NULL, 10) * 1000 * 1000 : 0;
  if (budget == 0) {
    fprintf(stderr, "usage: %s MODEL.arn MEGABYTES\n", argv[0]);
    return 2;
  }
  arn_model* model = open_model(argv[1]);
  arn_model_info info = ARN_MODEL_INFO_INIT;
  check(arn_model_get_info(model, &info), "the model");

  /* Best first: a cache in 8 bits, then in 4, each from the model's whole context down. */
  static const uint32_t kTypes[] = {ARN_KV_INT8, ARN_KV_INT4};
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  arn_memory_plan plan = ARN_MEMORY_PLAN_INIT;
  uint64_t conversation_bytes = 0, total = UINT64_MAX;
  for (size_t type = 0; type < 2 && total > budget; ++type) {
    options.kv_type = kTypes[type];
    options.context_tokens = info.max_context;
    for (; options.context_tokens >= 64; options.context_tokens /= 2) {
      total = bytes_of(model, &options, &plan, &conversation_bytes);
      if (total <= budget) break;
    }
  }
  if (total > budget) {
    fprintf(stderr, "not even 64 tokens fit into %llu bytes: take a smaller model\n",
            (unsigned long long)budget);
    return 1;
  }
  printf("%u tokens with a cache in %s:\n", plan.context_tokens, arn_kv_type_name(options.kv_type));
  printf("  cache        %10llu bytes\n", (unsigned long long)plan.kv_bytes);
  printf("  session      %10llu bytes in all\n", (unsigned long long)plan.total_bytes);
  printf("  conversation %10llu bytes\n", (unsigned long long)conversation_bytes);
  printf("  weights      %10llu bytes, mapped\n", (unsigned long long)plan.weights_bytes);

  /* The program gives the memory: nothing is allocated later. */
  char error[512] = "";
  void* block = aligned_alloc(plan.alignment, plan.total_bytes);
  void* chat_block = aligned_alloc(64, conversation_bytes);
  arn_session* session = NULL;
  arn_conversation* chat = NULL;
  if (block == NULL || chat_block == NULL) {
    fprintf(stderr, "the system has not that much memory\n");
    return 1;
  }
  check(arn_session_create(model, &options, block, plan.total_bytes, error, sizeof error, &session),
        error);
  check(arn_conversation_create(session, NULL, chat_block, conversation_bytes, error, sizeof error,
                                &chat),
        error);
  const char* message = "Tell me a story.";
  check(arn_conversation_add(chat, "user", message, strlen(message)),
        arn_conversation_last_error(chat));
  arn_generate_options limits = ARN_GENERATE_OPTIONS_INIT;
  limits.max_tokens = 20;
  check(arn_conversation_reply(chat, &limits, NULL, NULL, NULL), arn_conversation_last_error(chat));
  const char* messages = NULL;
  size_t bytes = 0;
  check(arn_conversation_messages(chat, &messages, &bytes), "the messages");
  printf("%s\n", messages);

  arn_conversation_destroy(chat);
  arn_session_destroy(session);
  free(chat_block);
  free(block);
  arn_model_close(model);
  return 0;
}
