// org.arenite.Native: speech to text.
#include <cstring>

#include "bindings/java/arenite-android/src/main/cpp/options.h"
#include "bindings/java/arenite-android/src/main/cpp/skill_fields.h"
#include "bindings/java/arenite-android/src/main/cpp/support.h"

using namespace arn::jni;  // NOLINT(google-build-using-namespace): the methods below are C

namespace {

// Receives what one transcription hears: a SegmentReceiver. The C API calls back on the calling
// thread, so `env` is valid there. An exception stays pending, ends the transcription and
// propagates to the caller.
struct Receiver {
  JNIEnv* env;
  jobject object;
  jmethodID on_segment = nullptr;
  jmethodID on_progress = nullptr;

  // Returns false if an exception is pending.
  bool Find() {
    const jclass type = env->GetObjectClass(object);
    on_segment = env->GetMethodID(type, "onSegment", "(DD[B[I)Z");
    if (on_segment != nullptr) on_progress = env->GetMethodID(type, "onProgress", "(JJ)Z");
    env->DeleteLocalRef(type);
    return on_progress != nullptr;
  }
};

int32_t OnSegment(void* user, const arn_segment* segment) {
  const auto* to = static_cast<const Receiver*>(user);
  JNIEnv* env = to->env;
  if (env->ExceptionCheck()) return 1;
  const jbyteArray text = NewBytes(env, segment->text, segment->text_bytes);
  const jintArray ids = text == nullptr ? nullptr : NewInts(env, segment->ids, segment->n_ids);
  if (ids == nullptr) return 1;
  const jboolean go_on = env->CallBooleanMethod(to->object, to->on_segment, segment->start_s,
                                                segment->end_s, text, ids);
  if (env->ExceptionCheck()) return 1;
  env->DeleteLocalRef(text);
  env->DeleteLocalRef(ids);
  return go_on == JNI_TRUE ? 0 : 1;
}

int32_t OnProgress(void* user, uint64_t done, uint64_t total) {
  const auto* to = static_cast<const Receiver*>(user);
  JNIEnv* env = to->env;
  if (env->ExceptionCheck()) return 1;
  const jboolean go_on = env->CallBooleanMethod(
      to->object, to->on_progress, static_cast<jlong>(done), static_cast<jlong>(total));
  return env->ExceptionCheck() || go_on != JNI_TRUE ? 1 : 0;
}

}  // namespace

ARN_JNI(void, transcribeInfo)(JNIEnv* env, jclass, jlong model, jobject out) {
  arn_transcribe_info info = ARN_TRANSCRIBE_INFO_INIT;
  if (Check(env, arn_transcribe_get_info(ToModel(model), &info))) {
    WriteFields(env, &info, kTranscribeInfoFields, out);
  }
}

// Null: there is no such language.
ARN_JNI(jbyteArray, language)(JNIEnv* env, jclass, jlong model, jint index) {
  const char* name = nullptr;
  const arn_status status =
      arn_transcribe_language(ToModel(model), static_cast<uint32_t>(index), &name);
  if (status == ARN_NOT_FOUND || !Check(env, status)) return nullptr;
  return NewBytes(env, name, std::strlen(name));
}

ARN_JNI(jlong, transcriberPlan)(JNIEnv* env, jclass, jlong model, jobject session_options) {
  SessionOptions given;
  if (!given.Read(env, session_options)) return 0;
  uint64_t bytes = 0;
  Error error;
  error.Check(env, arn_transcriber_plan(ToModel(model), &given.c, nullptr, error.text,
                                        sizeof error.text, &bytes));
  return static_cast<jlong>(bytes);
}

ARN_JNI(jlong, createTranscriber)(JNIEnv* env, jclass, jlong session) {
  Error error;
  arn_transcriber* transcriber = nullptr;
  error.Check(env, arn_transcriber_create(ToSession(session), nullptr, nullptr, 0, error.text,
                                          sizeof error.text, &transcriber));
  return ToHandle(transcriber);
}

ARN_JNI(void, destroyTranscriber)(JNIEnv*, jclass, jlong transcriber) {
  arn_transcriber_destroy(ToTranscriber(transcriber));
}

ARN_JNI(void, transcribe)
(JNIEnv* env, jclass, jlong transcriber, jfloatArray samples, jobject options, jobject receiver,
 jobject out) {
  InFloats pcm;
  arn_transcribe_options given = ARN_TRANSCRIBE_OPTIONS_INIT;
  Texts texts;
  if (!IsGiven(env, samples, "the samples") ||
      !ReadFields(env, options, kTranscribeOptionsFields, &given, &texts) ||
      !pcm.Read(env, samples)) {
    return;
  }
  Receiver to = {env, receiver};
  if (!to.Find()) return;
  given.on_segment = OnSegment;
  given.on_progress = OnProgress;
  given.user = &to;
  arn_transcribe_result result = ARN_TRANSCRIBE_RESULT_INIT;
  arn_transcriber* const t = ToTranscriber(transcriber);
  const arn_status status = arn_transcribe(t, pcm.data(), pcm.size(), &given, &result);
  if (env->ExceptionCheck()) return;
  if (WriteFields(env, &result, kTranscribeResultFields, out)) {
    Check(env, arn_transcriber_last_error(t), status);
  }
}
