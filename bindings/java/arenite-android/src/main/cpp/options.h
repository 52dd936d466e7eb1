// Session options that own the bytes of their strings.
#pragma once

#include "bindings/java/arenite-android/src/main/cpp/struct_fields.h"
#include "bindings/java/arenite-android/src/main/cpp/support.h"

namespace arn::jni {

struct SessionOptions {
  arn_session_options c = ARN_SESSION_OPTIONS_INIT;
  Texts texts;

  // Returns false if an exception is pending.
  bool Read(JNIEnv* env, jobject options) {
    return ReadFields(env, options, kSessionOptionsFields, &c, &texts);
  }
};

}  // namespace arn::jni
