/* Conversations: messages in, events and a message out; calls in the wrong order. */
#include <stdlib.h>

#include "tests/capi/capi_case.h"

typedef struct chat_log {
  arn_conversation* conversation;
  arn_session* session;
  char text[2048];
  size_t bytes;
  uint32_t n_others;
  uint32_t n_refused; /* calls from the callback that were refused */
  int32_t answer;
} chat_log;

static int32_t on_event(void* user, uint32_t event, const char* text, size_t text_bytes) {
  chat_log* log = (chat_log*)user;
  if (event != ARN_REPLY_EVENT_TEXT || log->bytes + text_bytes >= sizeof log->text) {
    ++log->n_others;
    return log->answer;
  }
  memcpy(log->text + log->bytes, text, text_bytes);
  log->bytes += text_bytes;
  log->text[log->bytes] = '\0';
  return log->answer;
}

/* Calls everything that must not be called from an event. */
static int32_t on_event_hostile(void* user, uint32_t event, const char* text, size_t text_bytes) {
  chat_log* log = (chat_log*)user;
  arn_conversation* c = log->conversation;
  const arn_status wrong[] = {
      arn_conversation_add(c, "user", "x", 1),
      arn_conversation_add_json(c, "[]", 2),
      arn_conversation_add_tool_result(c, 0, "x", 1),
      arn_conversation_undo(c),
      arn_conversation_undo_reply(c),
      arn_conversation_truncate(c, 0),
      arn_conversation_reply(c, NULL, NULL, NULL, NULL),
      arn_session_reset(log->session),
  };
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; ++i) {
    log->n_refused += wrong[i] == ARN_BAD_STATE ? 1 : 0;
  }
  (void)on_event(user, event, text, text_bytes);
  return 1;
}

typedef struct talk {
  arn_model* model;
  arn_session* session;
  arn_conversation* conversation;
} talk;

static int open_chat(capi_env* env, const arn_conversation_options* options, talk* out) {
  char error[256] = "";
  arn_session_options session = ARN_SESSION_OPTIONS_INIT;
  session.context_tokens = 256;
  session.max_sequences = 2;
  CHECK_STATUS(ARN_OK, arn_model_open(env->text_path, NULL, error, sizeof error, &out->model));
  CHECK_STATUS(ARN_OK, arn_session_create(out->model, &session, NULL, 0, error, sizeof error,
                                          &out->session));
  CHECK_STATUS(ARN_OK, arn_conversation_create(out->session, options, NULL, 0, error, sizeof error,
                                               &out->conversation));
  CHECK(out->conversation != NULL && error[0] == '\0');
  return 0;
}

static void close_chat(talk* c) {
  arn_conversation_destroy(c->conversation);
  arn_session_destroy(c->session);
  arn_model_close(c->model);
}

static int reply(capi_env* env, talk* c, uint32_t max_tokens, chat_log* log,
                 arn_conversation_result* result) {
  arn_generate_options options = ARN_GENERATE_OPTIONS_INIT;
  options.max_tokens = max_tokens;
  memset(log, 0, sizeof *log);
  CHECK_STATUS(ARN_OK, arn_conversation_reply(c->conversation, &options, on_event, log, result));
  return 0;
}

static int has_message(const talk* c, const char* text) {
  const char* json = NULL;
  size_t bytes = 0;
  return arn_conversation_messages(c->conversation, &json, &bytes) == ARN_OK &&
         strlen(json) == bytes && strstr(json, text) != NULL;
}

int capi_conversation(capi_env* env) {
  talk c;
  chat_log log, again;
  arn_conversation_result result = ARN_CONVERSATION_RESULT_INIT;
  arn_conversation_info info = ARN_CONVERSATION_INFO_INIT;
  if (open_chat(env, NULL, &c) != 0) return 1;
  CHECK_STATUS(ARN_OK, arn_conversation_get_info(c.conversation, &info));
  CHECK(info.n_messages == 0 && info.n_tokens == 0 && info.context_tokens == 256);
  CHECK(info.has_calls == 0 && info.has_reasoning == 0);
  CHECK(info.messages_bytes == 2 && info.text_bytes == 256 * 8 + 16384);
  CHECK(has_message(&c, "[]"));

  CHECK_STATUS(ARN_OK, arn_conversation_add(c.conversation, "system", "Be \"brief\".\n", 12));
  CHECK_STATUS(ARN_OK, arn_conversation_add(c.conversation, "user", "Tell a story.", 13));
  if (reply(env, &c, 12, &log, &result) != 0) return 1;
  CHECK(result.n_tokens == 12 && result.finish == ARN_FINISH_LENGTH && result.is_added == 1);
  CHECK(result.n_kept == 0 && result.n_prompt_tokens > 10 && result.n_dropped == 0);
  CHECK(log.bytes > 0 && log.n_others == 0);
  CHECK(has_message(&c, "{\"role\":\"system\",\"content\":\"Be \\\"brief\\\".\\n\"}"));
  CHECK(has_message(&c, "\"role\":\"assistant\""));
  CHECK(arn_session_length(c.session) == result.n_prompt_tokens + 12);

  /* Nothing of the first turn runs twice. */
  const uint32_t held = arn_session_length(c.session);
  CHECK_STATUS(ARN_OK, arn_conversation_add(c.conversation, "user", "Go on.", 6));
  if (reply(env, &c, 8, &log, &result) != 0) return 1;
  CHECK(result.n_kept == held && result.n_prompt_tokens > held);

  /* Another reply: all but the last token before it is kept. */
  const uint32_t prompt = result.n_prompt_tokens;
  CHECK_STATUS(ARN_OK, arn_conversation_undo_reply(c.conversation));
  if (reply(env, &c, 8, &again, &result) != 0) return 1;
  CHECK(result.n_prompt_tokens == prompt && result.n_kept == prompt - 1);
  CHECK(strcmp(log.text, again.text) == 0);

  /* Another question in its place: the turns before are kept. */
  CHECK_STATUS(ARN_OK, arn_conversation_undo(c.conversation));
  CHECK_STATUS(ARN_OK, arn_conversation_get_info(c.conversation, &info));
  CHECK(info.n_messages == 3);
  CHECK_STATUS(ARN_OK, arn_conversation_add(c.conversation, "user", "What then?", 10));
  if (reply(env, &c, 4, &log, &result) != 0) return 1;
  CHECK(result.n_kept >= held && result.n_kept < prompt);

  /* The other sequence has a conversation of its own, from saved messages. */
  arn_conversation* other = NULL;
  arn_conversation_options options = ARN_CONVERSATION_OPTIONS_INIT;
  options.sequence = 1;
  const char* json = NULL;
  size_t bytes = 0;
  CHECK_STATUS(ARN_OK, arn_conversation_create(c.session, &options, NULL, 0, NULL, 0, &other));
  CHECK_STATUS(ARN_OK, arn_conversation_messages(c.conversation, &json, &bytes));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_conversation_add_json(c.conversation, json, bytes));
  CHECK(strstr(arn_conversation_last_error(c.conversation), "copy it first") != NULL);
  CHECK_STATUS(ARN_OK, arn_conversation_add_json(other, json, bytes));
  CHECK_STATUS(ARN_OK, arn_conversation_undo_reply(other));
  arn_generate_options generate = ARN_GENERATE_OPTIONS_INIT;
  arn_token_logprob rows[4 * 2];
  generate.max_tokens = 4;
  generate.logprobs = rows;
  generate.logprobs_capacity = 4 * 2;
  generate.n_top_logprobs = 1;
  memset(&again, 0, sizeof again);
  CHECK_STATUS(ARN_OK, arn_conversation_reply(other, &generate, on_event, &again, &result));
  CHECK(result.n_tokens == 4 && result.n_logprobs == 4);
  for (uint32_t i = 0; i < 4; ++i) { /* greedy */
    CHECK(rows[2 * i].id == rows[2 * i + 1].id && rows[2 * i].logprob == rows[2 * i + 1].logprob);
    CHECK(rows[2 * i].logprob <= 0);
  }
  CHECK(result.n_kept == 0 && arn_session_selected(c.session) == 0);
  CHECK(strcmp(log.text, again.text) == 0);
  arn_conversation_destroy(other);

  CHECK_STATUS(ARN_OK, arn_conversation_truncate(c.conversation, 0));
  CHECK(has_message(&c, "[]"));
  close_chat(&c);
  return 0;
}

int capi_conversation_memory(capi_env* env) {
  arn_model* model = NULL;
  arn_session* session = NULL;
  arn_conversation* conversation = NULL;
  char error[256] = "";
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.context_tokens = 128;
  arn_conversation_options small = ARN_CONVERSATION_OPTIONS_INIT;
  small.text_bytes = 2048;
  small.arena_bytes = 65536;
  small.tools = "[{\"name\": \"get\"}]";
  small.tools_bytes = strlen(small.tools);
  uint64_t bytes = 0, standard = 0;
  CHECK_STATUS(ARN_OK, arn_model_open(env->text_path, NULL, error, sizeof error, &model));
  CHECK_STATUS(ARN_OK, arn_session_create(model, &options, NULL, 0, NULL, 0, &session));
  CHECK_STATUS(ARN_OK, arn_conversation_plan(model, &options, &small, error, sizeof error, &bytes));
  CHECK_STATUS(ARN_OK, arn_conversation_plan(model, NULL, NULL, error, sizeof error, &standard));
  CHECK(bytes > 0 && bytes < standard);
  char* memory = aligned_alloc(64, bytes + 64);
  CHECK(memory != NULL);
  memset(memory, 0x5A, bytes + 64);
  CHECK_STATUS(ARN_OUT_OF_MEMORY, arn_conversation_create(session, &small, memory, bytes - 1, error,
                                                          sizeof error, &conversation));
  CHECK(conversation == NULL && strstr(error, "needs") != NULL);
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_conversation_create(session, &small, memory + 8, bytes, error,
                                                         sizeof error, &conversation));
  CHECK(strstr(error, "aligned") != NULL);
  CHECK_STATUS(ARN_OK, arn_conversation_create(session, &small, memory, bytes, error, sizeof error,
                                               &conversation));
  CHECK_STATUS(ARN_OK, arn_conversation_add(conversation, "user", "Hi", 2));
  arn_generate_options generate = ARN_GENERATE_OPTIONS_INIT;
  generate.max_tokens = 5;
  CHECK_STATUS(ARN_OK, arn_conversation_reply(conversation, &generate, NULL, NULL, NULL));
  /* More text than text_bytes. */
  static char text[2048];
  memset(text, 'a', sizeof text);
  CHECK_STATUS(ARN_OUT_OF_MEMORY, arn_conversation_add(conversation, "user", text, sizeof text));
  CHECK(strstr(arn_conversation_last_error(conversation), "text_bytes is 2048") != NULL);
  CHECK_STATUS(ARN_OK, arn_conversation_add(conversation, "user", text, 10));
  for (size_t i = 0; i < 64; ++i) CHECK(memory[bytes + i] == 0x5A);
  arn_conversation_destroy(conversation);
  free(memory);
  arn_session_destroy(session);
  arn_model_close(model);
  return 0;
}

/* Nothing of these changes the messages. */
int capi_conversation_wrong_order(capi_env* env) {
  talk c;
  chat_log log;
  arn_conversation_result result = ARN_CONVERSATION_RESULT_INIT;
  if (open_chat(env, NULL, &c) != 0) return 1;
  arn_conversation* chat = c.conversation;
  CHECK_STATUS(ARN_BAD_STATE, arn_conversation_reply(chat, NULL, NULL, NULL, &result));
  CHECK(result.finish == ARN_FINISH_NONE && result.is_added == 0);
  CHECK(strstr(arn_conversation_last_error(chat), "no message") != NULL);
  CHECK_STATUS(ARN_BAD_STATE, arn_conversation_undo(chat));
  CHECK_STATUS(ARN_BAD_STATE, arn_conversation_undo_reply(chat));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_conversation_truncate(chat, 1));
  CHECK_STATUS(ARN_NOT_FOUND, arn_conversation_add_tool_result(chat, 0, "x", 1));
  CHECK(has_message(&c, "[]"));

  CHECK_STATUS(ARN_OK, arn_conversation_add(chat, "user", "Hi", 2));
  CHECK_STATUS(ARN_BAD_STATE, arn_conversation_undo_reply(chat));
  CHECK_STATUS(ARN_NOT_FOUND, arn_conversation_add_tool_result(chat, 0, "x", 1));
  if (reply(env, &c, 4, &log, &result) != 0) return 1;
  CHECK_STATUS(ARN_BAD_STATE, arn_conversation_reply(chat, NULL, NULL, NULL, &result));
  CHECK(strstr(arn_conversation_last_error(chat), "take the reply back") != NULL);
  CHECK_STATUS(ARN_NOT_FOUND, arn_conversation_add_tool_result(chat, 0, "x", 1));
  CHECK(strstr(arn_conversation_last_error(chat), "it has 0") != NULL);

  /* From within an event. */
  CHECK_STATUS(ARN_OK, arn_conversation_add(chat, "user", "On.", 3));
  memset(&log, 0, sizeof log);
  log.conversation = chat;
  log.session = c.session;
  CHECK_STATUS(ARN_OK, arn_conversation_reply(chat, NULL, on_event_hostile, &log, &result));
  CHECK(result.finish == ARN_FINISH_CALLBACK && result.is_added == 1);
  CHECK(log.n_refused == 8 && log.bytes > 0);

  /* The session is used behind the conversation's back: it is only slower. */
  const uint32_t held = arn_session_length(c.session);
  CHECK_STATUS(ARN_OK, arn_session_rewind(c.session, held / 2));
  CHECK_STATUS(ARN_OK, arn_conversation_add(chat, "user", "On.", 3));
  if (reply(env, &c, 4, &log, &result) != 0) return 1;
  CHECK(result.n_kept == held / 2);

  /* A cancel before the first token adds nothing, and the next try goes on. */
  CHECK_STATUS(ARN_OK, arn_conversation_add(chat, "user", "On.", 3));
  arn_session_cancel(c.session);
  CHECK_STATUS(ARN_CANCELLED, arn_conversation_reply(chat, NULL, on_event, &log, &result));
  CHECK(result.finish == ARN_FINISH_CANCELLED && result.is_added == 0 && result.n_tokens == 0);
  if (reply(env, &c, 4, &log, &result) != 0) return 1;
  CHECK(result.is_added == 1);
  close_chat(&c);
  return 0;
}

int capi_conversation_errors(capi_env* env) {
  arn_model *model = NULL, *without = NULL;
  arn_session *session = NULL, *bare = NULL;
  arn_conversation* chat = NULL;
  char error[256] = "";
  uint64_t bytes = 0;
  CHECK_STATUS(ARN_OK, arn_model_open(env->text_path, NULL, error, sizeof error, &model));
  CHECK_STATUS(ARN_OK, arn_session_create(model, NULL, NULL, 0, NULL, 0, &session));
  CHECK_STATUS(ARN_OK, arn_model_open(env->path, NULL, error, sizeof error, &without));
  CHECK_STATUS(ARN_OK, arn_session_create(without, NULL, NULL, 0, NULL, 0, &bare));
  CHECK_STATUS(ARN_NOT_FOUND,
               arn_conversation_create(bare, NULL, NULL, 0, error, sizeof error, &chat));
  CHECK(chat == NULL && strstr(error, "no chat template") != NULL);
  CHECK_STATUS(ARN_NOT_FOUND,
               arn_conversation_plan(without, NULL, NULL, error, sizeof error, &bytes));
  CHECK(bytes == 0);
  const struct {
    arn_status status;
    const char* named;
    arn_conversation_options options;
  } wrong[] = {
      {ARN_BAD_ARGUMENT, "sequence is 1, the session has 1", {.sequence = 1}},
      {ARN_BAD_ARGUMENT, "drops_oldest is 2", {.drops_oldest = 2}},
      {ARN_BAD_ARGUMENT, "tools", {.tools = "{}", .tools_bytes = 2}},
      {ARN_BAD_ARGUMENT, "tools is NULL", {.tools_bytes = 2}},
      {ARN_BAD_ARGUMENT, "variables", {.variables = "[]", .variables_bytes = 2}},
      {ARN_BAD_ARGUMENT, "at byte 1", {.variables = "{", .variables_bytes = 1}},
      {ARN_NOT_FOUND, "'none'", {.template_name = "none"}},
      {ARN_BAD_ARGUMENT, "text_bytes is 1023", {.text_bytes = 1023}},
      {ARN_BAD_ARGUMENT, "text_bytes", {.text_bytes = UINT64_MAX}},
      {ARN_BAD_ARGUMENT, "arena_bytes", {.arena_bytes = 1}},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; ++i) {
    arn_conversation_options options = wrong[i].options;
    options.struct_size = sizeof options;
    CHECK_STATUS(wrong[i].status,
                 arn_conversation_create(session, &options, NULL, 0, error, sizeof error, &chat));
    CHECK(chat == NULL && strstr(error, wrong[i].named) != NULL);
  }
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_conversation_create(NULL, NULL, NULL, 0, NULL, 0, &chat));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_conversation_create(session, NULL, NULL, 0, NULL, 0, NULL));
  CHECK_STATUS(ARN_OK, arn_conversation_create(session, NULL, NULL, 0, NULL, 0, &chat));

  const char* const not_messages[] = {
      "", "1", "{}", "[{\"role\": 1}]", "{\"role\": \"\"}", "[1", "[{\"role\": \"user\"}, 2]"};
  for (size_t i = 0; i < sizeof not_messages / sizeof not_messages[0]; ++i) {
    CHECK_STATUS(ARN_BAD_ARGUMENT,
                 arn_conversation_add_json(chat, not_messages[i], strlen(not_messages[i])));
    CHECK(strstr(arn_conversation_last_error(chat), "message") != NULL);
  }
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_conversation_add_json(chat, NULL, 1));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_conversation_add(chat, NULL, "x", 1));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_conversation_add(chat, "", "x", 1));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_conversation_add(chat, "user", NULL, 1));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_conversation_add(chat, "user", "\xFF", 1));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_conversation_add(chat, "\xFF", "x", 1));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_conversation_add_tool_result(chat, 0, NULL, 1));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_conversation_get_info(chat, NULL));
  arn_conversation_info info = ARN_CONVERSATION_INFO_INIT;
  CHECK_STATUS(ARN_OK, arn_conversation_get_info(chat, &info));
  CHECK(info.n_messages == 0);

  CHECK_STATUS(ARN_OK,
               arn_conversation_add_json(chat, " {\"role\": \"user\", \"content\": \"]}\"} ", 35));
  CHECK_STATUS(ARN_OK, arn_conversation_add_json(chat, " [ ] ", 5));
  arn_generate_options generate = ARN_GENERATE_OPTIONS_INIT;
  generate.callback = (arn_token_callback)0;
  const arn_stop_string empty = {"", 0};
  generate.stops = &empty;
  generate.n_stops = 1;
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_conversation_reply(chat, &generate, NULL, NULL, NULL));
  CHECK(strstr(arn_conversation_last_error(chat), "stop string") != NULL);
  CHECK_STATUS(ARN_OK, arn_conversation_get_info(chat, &info));
  CHECK(info.n_messages == 1);

  arn_conversation_destroy(chat);
  arn_conversation_destroy(NULL);
  CHECK(strcmp(arn_conversation_last_error(NULL), "") == 0);
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_conversation_undo(NULL));
  CHECK_STATUS(ARN_BAD_ARGUMENT, arn_conversation_reply(NULL, NULL, NULL, NULL, NULL));
  arn_session_destroy(bare);
  arn_session_destroy(session);
  arn_model_close(without);
  arn_model_close(model);
  return 0;
}
