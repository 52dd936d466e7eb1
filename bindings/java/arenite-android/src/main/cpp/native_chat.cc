// org.arenite.Native: chat templates.
#include "bindings/java/arenite-android/src/main/cpp/expand.h"
#include "bindings/java/arenite-android/src/main/cpp/local_time.h"
#include "bindings/java/arenite-android/src/main/cpp/support.h"

using namespace arn::jni;  // NOLINT(google-build-using-namespace): the methods below are C

namespace {

// Arguments of a conversation, as Java passes them.
struct Input {
  jbyteArray messages, tools, variables, template_name;
  jboolean add_generation_prompt;
};

// Returns false if an exception is pending.
bool Render(JNIEnv* env, arn_chat* chat, const Input& given, Buffer<char>* text, size_t* n) {
  InBytes message_text, tool_text, variable_text, name;
  if (!IsGiven(env, given.messages, "the messages") || !message_text.Read(env, given.messages) ||
      !tool_text.Read(env, given.tools) || !variable_text.Read(env, given.variables) ||
      !name.Read(env, given.template_name)) {
    return false;
  }
  arn_chat_input input = ARN_CHAT_INPUT_INIT;
  input.messages = message_text.data();
  input.messages_bytes = message_text.size();
  input.tools = tool_text.data();
  input.tools_bytes = tool_text.size();
  input.variables = variable_text.data();
  input.variables_bytes = variable_text.size();
  input.template_name = name.data();
  input.add_generation_prompt = given.add_generation_prompt == JNI_TRUE ? 1 : 0;
  const arn_chat_time now = LocalTime();
  input.now = &now;
  return Fetch(
      env, 4096, text, n,
      [&](char* out, size_t capacity, size_t* count) {
        return arn_chat_render(chat, &input, out, capacity, count);
      },
      [&](arn_status status) { return Check(env, arn_chat_last_error(chat), status); });
}

}  // namespace

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
  Buffer<char> text;
  size_t n = 0;
  const Input input = {messages, tools, variables, template_name, add_generation_prompt};
  return Render(env, ToChat(chat), input, &text, &n) ? NewBytes(env, text.data(), n) : nullptr;
}

// image_sizes: width and height of each image; null: the messages have none.
ARN_JNI(jintArray, tokenizeChat)
(JNIEnv* env, jclass, jlong model, jlong chat, jbyteArray messages, jbyteArray tools,
 jbyteArray variables, jbyteArray template_name, jboolean add_generation_prompt,
 jintArray image_sizes) {
  Buffer<char> text;
  size_t n_text = 0;
  const Input input = {messages, tools, variables, template_name, add_generation_prompt};
  if (!Render(env, ToChat(chat), input, &text, &n_text)) return nullptr;
  arn_tokenize_options options = ARN_TOKENIZE_OPTIONS_INIT;
  options.flags = ARN_TOKENIZE_NO_SPECIAL;
  if (!Check(env,
             arn_chat_plain_spans(ToChat(chat), &options.plain_spans, &options.n_plain_spans))) {
    return nullptr;
  }
  const char* prompt = text.data();
  InInts sizes;
  Expanded expanded;
  if (image_sizes != nullptr) {
    if (!sizes.Read(env, image_sizes) ||
        !expanded.Read(env, ToModel(model), sizes, prompt, n_text, options.plain_spans,
                       options.n_plain_spans)) {
      return nullptr;
    }
    prompt = expanded.text.data();
    n_text = expanded.n;
    options.plain_spans = expanded.plain.data();
  }
  Buffer<int32_t> ids;
  size_t n = 0;
  const bool good = Fetch(
      env, n_text + 16, &ids, &n,
      [&](int32_t* out, size_t capacity, size_t* count) {
        return arn_tokenize_with(ToModel(model), prompt, n_text, &options, out, capacity, count);
      },
      [&](arn_status status) { return Check(env, status); });
  return good ? NewInts(env, ids.data(), n) : nullptr;
}
