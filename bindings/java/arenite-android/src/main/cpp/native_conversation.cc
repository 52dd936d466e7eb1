// org.arenite.Native: conversations.
#include <cstring>

#include "bindings/java/arenite-android/src/main/cpp/generate_input.h"
#include "bindings/java/arenite-android/src/main/cpp/local_time.h"
#include "bindings/java/arenite-android/src/main/cpp/prefill_listener.h"
#include "bindings/java/arenite-android/src/main/cpp/struct_fields.h"
#include "bindings/java/arenite-android/src/main/cpp/support.h"

using namespace arn::jni;  // NOLINT(google-build-using-namespace): the methods below are C

namespace {

arn_conversation* ToConversation(jlong handle) {
  return reinterpret_cast<arn_conversation*>(static_cast<intptr_t>(handle));
}

bool CheckCall(JNIEnv* env, const arn_conversation* conversation, arn_status status) {
  if (status == ARN_OK) return true;
  const char* why = arn_conversation_last_error(conversation);
  Throw(env, status, why[0] != '\0' ? why : arn_status_name(status));
  return false;
}

// Receives the events of one reply, on the calling thread.
struct Listener {
  JNIEnv* env;
  jobject object;
  jmethodID on_event;
};

// An exception of the listener stays pending, ends the reply and propagates to the caller.
int32_t OnEvent(void* user, uint32_t event, const char* text, size_t text_bytes) {
  const auto* listener = static_cast<const Listener*>(user);
  JNIEnv* env = listener->env;
  if (env->ExceptionCheck()) return 1;
  const jobject kind = NewEnum(env, "Lorg/arenite/ReplyEvent;", static_cast<jint>(event));
  const jstring string = kind == nullptr ? nullptr : NewText(env, text, text_bytes);
  if (string == nullptr) return 1;
  const jboolean go_on = env->CallBooleanMethod(listener->object, listener->on_event, kind, string);
  if (env->ExceptionCheck()) return 1;
  env->DeleteLocalRef(string);
  env->DeleteLocalRef(kind);
  return go_on == JNI_TRUE ? 0 : 1;
}

}  // namespace

ARN_JNI(jlong, createConversation)(JNIEnv* env, jclass, jlong session, jobject options) {
  arn_conversation_options given = ARN_CONVERSATION_OPTIONS_INIT;
  Texts texts;
  if (!IsGiven(env, options, "the options") ||
      !ReadFields(env, options, kConversationOptionsFields, &given, &texts)) {
    return 0;
  }
  given.tools_bytes = given.tools == nullptr ? 0 : std::strlen(given.tools);
  given.variables_bytes = given.variables == nullptr ? 0 : std::strlen(given.variables);
  const arn_chat_time now = LocalTime();
  given.now = &now;
  Error error;
  arn_conversation* conversation = nullptr;
  error.Check(env, arn_conversation_create(ToSession(session), &given, nullptr, 0, error.text,
                                           sizeof error.text, &conversation));
  return ToHandle(conversation);
}

ARN_JNI(void, destroyConversation)(JNIEnv*, jclass, jlong conversation) {
  arn_conversation_destroy(ToConversation(conversation));
}

ARN_JNI(void, addMessage)
(JNIEnv* env, jclass, jlong conversation, jbyteArray role, jbyteArray text) {
  InBytes role_text, content;
  if (!IsGiven(env, role, "the role") || !IsGiven(env, text, "the text") ||
      !role_text.Read(env, role) || !content.Read(env, text)) {
    return;
  }
  arn_conversation* const c = ToConversation(conversation);
  CheckCall(env, c, arn_conversation_add(c, role_text.data(), content.data(), content.size()));
}

ARN_JNI(void, addMessages)(JNIEnv* env, jclass, jlong conversation, jbyteArray json) {
  InBytes text;
  if (!IsGiven(env, json, "the messages") || !text.Read(env, json)) return;
  arn_conversation* const c = ToConversation(conversation);
  CheckCall(env, c, arn_conversation_add_json(c, text.data(), text.size()));
}

ARN_JNI(void, addToolResult)
(JNIEnv* env, jclass, jlong conversation, jint call, jbyteArray text) {
  InBytes content;
  if (!IsNumber(env, call, "the call") || !IsGiven(env, text, "the text") ||
      !content.Read(env, text)) {
    return;
  }
  arn_conversation* const c = ToConversation(conversation);
  CheckCall(env, c,
            arn_conversation_add_tool_result(c, static_cast<uint32_t>(call), content.data(),
                                             content.size()));
}

ARN_JNI(void, undo)(JNIEnv* env, jclass, jlong conversation, jboolean only_reply) {
  arn_conversation* const c = ToConversation(conversation);
  CheckCall(env, c,
            only_reply == JNI_TRUE ? arn_conversation_undo_reply(c) : arn_conversation_undo(c));
}

ARN_JNI(void, truncate)(JNIEnv* env, jclass, jlong conversation, jint n_messages) {
  if (!IsNumber(env, n_messages, "nMessages")) return;
  arn_conversation* const c = ToConversation(conversation);
  CheckCall(env, c, arn_conversation_truncate(c, static_cast<uint32_t>(n_messages)));
}

ARN_JNI(jbyteArray, messages)(JNIEnv* env, jclass, jlong conversation) {
  const char* json = nullptr;
  size_t bytes = 0;
  if (!Check(env, arn_conversation_messages(ToConversation(conversation), &json, &bytes))) {
    return nullptr;
  }
  return NewBytes(env, json, bytes);
}

ARN_JNI(void, conversationInfo)(JNIEnv* env, jclass, jlong conversation, jobject out) {
  arn_conversation_info info = ARN_CONVERSATION_INFO_INIT;
  if (!Check(env, arn_conversation_get_info(ToConversation(conversation), &info))) return;
  WriteFields(env, &info, kConversationInfoFields, out);
}

ARN_JNI(void, reply)
(JNIEnv* env, jclass, jlong session, jlong conversation, jint max_tokens, jboolean ignore_eos,
 jobjectArray stops, jintArray extra_eos_ids, jint n_top_logprobs, jintArray logprob_ids,
 jfloatArray logprobs, jobject listener, jobject progress, jobject out) {
  GenerateInput input;
  if (!input.Read(env, max_tokens, ignore_eos, stops, extra_eos_ids, n_top_logprobs, logprob_ids,
                  logprobs)) {
    return;
  }
  if (!IsGiven(env, listener, "the listener")) return;
  const jclass type = env->GetObjectClass(listener);
  const jmethodID on_event =
      env->GetMethodID(type, "onEvent", "(Lorg/arenite/ReplyEvent;Ljava/lang/String;)Z");
  env->DeleteLocalRef(type);
  if (on_event == nullptr) return;
  Listener to = {env, listener, on_event};
  const PrefillProgress reports(env, ToSession(session), progress);
  if (env->ExceptionCheck()) return;
  arn_conversation* const c = ToConversation(conversation);
  arn_conversation_result result = ARN_CONVERSATION_RESULT_INIT;
  const arn_status status = arn_conversation_reply(c, &input.options, OnEvent, &to, &result);
  if (env->ExceptionCheck()) return;
  if (WriteFields(env, &result, kConversationResultFields, out) &&
      input.logprobs.Write(env, result.n_logprobs)) {
    CheckCall(env, c, status);
  }
}
