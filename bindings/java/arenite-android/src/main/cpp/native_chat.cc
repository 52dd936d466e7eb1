// org.arenite.Native: chat templates.
#include "bindings/java/arenite-android/src/main/cpp/support.h"

using namespace arn::jni;  // NOLINT(google-build-using-namespace): the methods below are C

ARN_JNI(jlong, createChat)
(JNIEnv* env, jclass, jlong model, jlong arena_bytes, jlong max_steps) {
  arn_chat_options options = ARN_CHAT_OPTIONS_INIT;
  options.arena_bytes = static_cast<uint64_t>(arena_bytes);
  options.max_steps = static_cast<uint64_t>(max_steps);
  Error error;
  arn_chat* chat = nullptr;
  error.Check(env, arn_chat_create(ToModel(model), &options, nullptr, 0, error.text,
                                   sizeof error.text, &chat));
  return ToHandle(chat);
}

ARN_JNI(void, destroyChat)(JNIEnv*, jclass, jlong chat) { arn_chat_destroy(ToChat(chat)); }

ARN_JNI(jbyteArray, renderChat)
(JNIEnv* env, jclass, jlong chat, jbyteArray messages, jbyteArray tools, jbyteArray variables,
 jbyteArray template_name, jboolean add_generation_prompt) {
  InBytes message_text, tool_text, variable_text, name;
  if (!IsGiven(env, messages, "the messages") || !message_text.Read(env, messages) ||
      !tool_text.Read(env, tools) || !variable_text.Read(env, variables) ||
      !name.Read(env, template_name)) {
    return nullptr;
  }
  arn_chat_input input = ARN_CHAT_INPUT_INIT;
  input.messages = message_text.data();
  input.messages_bytes = message_text.size();
  input.tools = tool_text.data();
  input.tools_bytes = tool_text.size();
  input.variables = variable_text.data();
  input.variables_bytes = variable_text.size();
  input.template_name = name.data();
  input.add_generation_prompt = add_generation_prompt == JNI_TRUE ? 1 : 0;
  Buffer<char> text;
  size_t n = 0;
  const bool good = Fetch(
      env, 4096, &text, &n,
      [&](char* out, size_t capacity, size_t* count) {
        return arn_chat_render(ToChat(chat), &input, out, capacity, count);
      },
      [&](arn_status status) {
        if (status != ARN_OK) {
          const char* why = arn_chat_last_error(ToChat(chat));
          Throw(env, status, why[0] != '\0' ? why : arn_status_name(status));
        }
        return status == ARN_OK;
      });
  return good ? NewBytes(env, text.data(), n) : nullptr;
}
