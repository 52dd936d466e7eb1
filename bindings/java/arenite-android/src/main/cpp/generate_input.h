// GenerateInput: Java's options of a generation as arn_generate_options.
#pragma once

#include "bindings/java/arenite-android/src/main/cpp/support.h"

namespace arn::jni {

inline constexpr jsize kMostStops = 16;  // limit of arn_generate_options

// Stop strings and their bytes.
struct Stops {
  InBytes texts[kMostStops];
  arn_stop_string stops[kMostStops];
  size_t n = 0;

  bool Read(JNIEnv* env, jobjectArray array) {
    const jsize given = array == nullptr ? 0 : env->GetArrayLength(array);
    if (given > kMostStops) {
      Throw(env, ARN_BAD_ARGUMENT, "more than 16 stop strings");
      return false;
    }
    for (jsize i = 0; i < given; ++i) {
      const auto text = static_cast<jbyteArray>(env->GetObjectArrayElement(array, i));
      if (env->ExceptionCheck() || !IsGiven(env, text, "a stop string")) return false;
      const bool good = texts[i].Read(env, text);
      env->DeleteLocalRef(text);
      if (!good) return false;
      stops[i] = {texts[i].data(), texts[i].size()};
      ++n;
    }
    return true;
  }
};

struct GenerateInput {
  arn_generate_options options = ARN_GENERATE_OPTIONS_INIT;
  Stops ends;
  InInts eos;

  // Returns false if an exception is pending.
  bool Read(JNIEnv* env, jint max_tokens, jboolean ignore_eos, jobjectArray stops,
            jintArray extra_eos_ids) {
    if (max_tokens < 0) {
      Throw(env, ARN_BAD_ARGUMENT, "maxTokens is negative");
      return false;
    }
    if (!ends.Read(env, stops) || !eos.Read(env, extra_eos_ids)) return false;
    options.max_tokens = static_cast<uint32_t>(max_tokens);
    options.ignore_eos = ignore_eos == JNI_TRUE ? 1 : 0;
    options.stops = ends.stops;
    options.n_stops = ends.n;
    options.extra_eos_ids = eos.data();
    options.n_extra_eos_ids = eos.size();
    return true;
  }
};

}  // namespace arn::jni
