// PrefillProgress: reports the progress of prompts to a PrefillListener during one native call.
#pragma once

#include "bindings/java/arenite-android/src/main/cpp/support.h"

namespace arn::jni {

class PrefillProgress {
 public:
  // `listener` null: none. An exception is pending if its method is not found.
  PrefillProgress(JNIEnv* env, arn_session* session, jobject listener)
      : env_(env), session_(session), listener_(listener) {
    if (listener == nullptr) return;
    const jclass type = env->GetObjectClass(listener);
    on_progress_ = env->GetMethodID(type, "onProgress", "(JJ)Z");
    env->DeleteLocalRef(type);
    if (on_progress_ == nullptr) return;
    is_set_ = Check(env, session, arn_session_set_prefill_callback(session, OnChunk, this));
  }
  ~PrefillProgress() {
    if (is_set_) arn_session_set_prefill_callback(session_, nullptr, nullptr);
  }
  PrefillProgress(const PrefillProgress&) = delete;
  PrefillProgress& operator=(const PrefillProgress&) = delete;

 private:
  // An exception of the listener stays pending, ends the call and propagates to the caller.
  static int32_t OnChunk(void* user, uint64_t done, uint64_t total) {
    const auto* progress = static_cast<const PrefillProgress*>(user);
    JNIEnv* env = progress->env_;
    if (env->ExceptionCheck()) return 1;
    const jboolean go_on =
        env->CallBooleanMethod(progress->listener_, progress->on_progress_,
                               static_cast<jlong>(done), static_cast<jlong>(total));
    return env->ExceptionCheck() || go_on != JNI_TRUE ? 1 : 0;
  }

  JNIEnv* env_;
  arn_session* session_;
  jobject listener_;
  jmethodID on_progress_ = nullptr;
  bool is_set_ = false;
};

}  // namespace arn::jni
