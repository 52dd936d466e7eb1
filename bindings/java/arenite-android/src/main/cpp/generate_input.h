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

// Rows of log-probabilities, for Java's arrays of their ids and values.
struct LogprobRows {
  Buffer<arn_token_logprob> rows;
  jintArray ids = nullptr;
  jfloatArray values = nullptr;
  size_t width = 0;

  // n_top < 0: none. The arrays must have the same size.
  bool Read(JNIEnv* env, jint n_top, jintArray out_ids, jfloatArray out_values) {
    if (n_top < 0) return true;
    ids = out_ids;
    values = out_values;
    width = size_t{1} + static_cast<size_t>(n_top);
    return rows.Allocate(env, static_cast<size_t>(env->GetArrayLength(ids)));
  }
  // Returns false if an exception is pending.
  bool Write(JNIEnv* env, uint64_t n_tokens) const {
    if (ids == nullptr) return true;
    const auto n = static_cast<jsize>(n_tokens * width);
    for (jsize i = 0; i < n; ++i) {
      const jint id = rows.data()[i].id;
      env->SetIntArrayRegion(ids, i, 1, &id);
      env->SetFloatArrayRegion(values, i, 1, &rows.data()[i].logprob);
    }
    return !env->ExceptionCheck();
  }
};

struct GenerateInput {
  arn_generate_options options = ARN_GENERATE_OPTIONS_INIT;
  Stops ends;
  InInts eos;
  LogprobRows logprobs;

  // Returns false if an exception is pending.
  bool Read(JNIEnv* env, jint max_tokens, jboolean ignore_eos, jobjectArray stops,
            jintArray extra_eos_ids, jint n_top, jintArray logprob_ids,
            jfloatArray logprob_values) {
    if (max_tokens < 0) {
      Throw(env, ARN_BAD_ARGUMENT, "maxTokens is negative");
      return false;
    }
    if (!ends.Read(env, stops) || !eos.Read(env, extra_eos_ids) ||
        !logprobs.Read(env, n_top, logprob_ids, logprob_values)) {
      return false;
    }
    options.max_tokens = static_cast<uint32_t>(max_tokens);
    options.ignore_eos = ignore_eos == JNI_TRUE ? 1 : 0;
    options.stops = ends.stops;
    options.n_stops = ends.n;
    options.extra_eos_ids = eos.data();
    options.n_extra_eos_ids = eos.size();
    if (n_top >= 0) {
      options.logprobs = logprobs.rows.data();
      options.logprobs_capacity = logprobs.rows.size();
      options.n_top_logprobs = static_cast<uint32_t>(n_top);
    }
    return true;
  }
};

}  // namespace arn::jni
