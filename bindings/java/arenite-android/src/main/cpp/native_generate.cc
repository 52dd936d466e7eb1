// org.arenite.Native: streaming generation, beam search, sampling, constraints,
// cancelling.
#include "bindings/java/arenite-android/src/main/cpp/generate_input.h"
#include "bindings/java/arenite-android/src/main/cpp/struct_fields.h"
#include "bindings/java/arenite-android/src/main/cpp/support.h"

using namespace arn::jni;  // NOLINT(google-build-using-namespace): the methods below are C

namespace {

// Receives the pieces of one generation. The C API calls back on the calling thread, so `env` is
// valid there.
struct Listener {
  JNIEnv* env;
  jobject object;
  jmethodID on_piece;
};

// An exception of the listener stays pending, ends the generation and propagates to the caller.
int32_t OnToken(void* user, int32_t id, const char* text, size_t text_bytes) {
  const auto* listener = static_cast<const Listener*>(user);
  JNIEnv* env = listener->env;
  if (env->ExceptionCheck()) return 1;
  const jbyteArray bytes = NewBytes(env, text, text_bytes);
  if (bytes == nullptr) return 1;
  const jboolean go_on = env->CallBooleanMethod(listener->object, listener->on_piece, id, bytes);
  if (env->ExceptionCheck()) return 1;
  env->DeleteLocalRef(bytes);
  return go_on == JNI_TRUE ? 0 : 1;
}

}  // namespace

ARN_JNI(void, setSampling)(JNIEnv* env, jclass, jlong session, jobject sampling) {
  arn_sampling given = ARN_SAMPLING_INIT;
  Lists lists;
  if (!ReadFields(env, sampling, kSamplingFields, &given, nullptr, &lists)) return;
  Check(env, ToSession(session), arn_session_set_sampling(ToSession(session), &given));
}

// Null `text`: none from now on.
ARN_JNI(void, setConstraint)
(JNIEnv* env, jclass, jlong session, jint kind, jbyteArray text, jboolean any_order,
 jboolean any_whitespace, jboolean choose_forced, jint first) {
  arn_session* const s = ToSession(session);
  if (text == nullptr) {
    Check(env, s, arn_session_set_constraint(s, nullptr));
    return;
  }
  InBytes bytes;
  if (!bytes.Read(env, text)) return;
  arn_constraint_options options = ARN_CONSTRAINT_OPTIONS_INIT;
  options.kind = static_cast<uint32_t>(kind);
  options.text = bytes.data();
  options.text_bytes = bytes.size();
  options.any_order = any_order == JNI_TRUE ? 1 : 0;
  options.any_whitespace = any_whitespace == JNI_TRUE ? 1 : 0;
  options.choose_forced = choose_forced == JNI_TRUE ? 1 : 0;
  options.first = static_cast<uint32_t>(first);
  Check(env, s, arn_session_set_constraint(s, &options));
}

ARN_JNI(void, constraintStats)(JNIEnv* env, jclass, jlong session, jobject out) {
  arn_constraint_stats_data stats = ARN_CONSTRAINT_STATS_INIT;
  if (!Check(env, ToSession(session), arn_session_constraint_stats(ToSession(session), &stats))) {
    return;
  }
  WriteFields(env, &stats, kConstraintStatsFields, out);
}

ARN_JNI(void, cancel)(JNIEnv*, jclass, jlong session) { arn_session_cancel(ToSession(session)); }

ARN_JNI(void, clearCancel)(JNIEnv*, jclass, jlong session) {
  arn_session_clear_cancel(ToSession(session));
}

ARN_JNI(jlong, randomSeed)(JNIEnv*, jclass) { return static_cast<jlong>(arn_random_seed()); }

ARN_JNI(void, generate)
(JNIEnv* env, jclass, jlong session, jint max_tokens, jboolean ignore_eos, jobjectArray stops,
 jintArray extra_eos_ids, jint n_top_logprobs, jintArray logprob_ids, jfloatArray logprobs,
 jobject listener, jobject out) {
  GenerateInput input;
  if (!input.Read(env, max_tokens, ignore_eos, stops, extra_eos_ids, n_top_logprobs, logprob_ids,
                  logprobs)) {
    return;
  }
  if (!IsGiven(env, listener, "the listener")) return;
  const jclass type = env->GetObjectClass(listener);
  const jmethodID on_piece = env->GetMethodID(type, "onPiece", "(I[B)Z");
  env->DeleteLocalRef(type);
  if (on_piece == nullptr) return;
  Listener to = {env, listener, on_piece};

  input.options.callback = OnToken;
  input.options.user = &to;
  arn_generate_result result = ARN_GENERATE_RESULT_INIT;
  const arn_status status = arn_session_generate(ToSession(session), &input.options, &result);
  if (env->ExceptionCheck()) return;
  if (WriteFields(env, &result, kGenerateResultFields, out) &&
      input.logprobs.Write(env, result.n_logprobs)) {
    Check(env, ToSession(session), status);
  }
}

ARN_JNI(jint, beamSearch)
(JNIEnv* env, jclass, jlong session, jobject options, jintArray extra_eos_ids) {
  arn_beam_options given = ARN_BEAM_OPTIONS_INIT;
  InInts eos;
  if (!ReadFields(env, options, kBeamOptionsFields, &given) || !eos.Read(env, extra_eos_ids)) {
    return 0;
  }
  given.extra_eos_ids = eos.data();
  given.n_extra_eos_ids = eos.size();
  arn_beam_result result = ARN_BEAM_RESULT_INIT;
  Check(env, ToSession(session), arn_session_beam_search(ToSession(session), &given, &result));
  return static_cast<jint>(result.n_sequences);
}

ARN_JNI(jintArray, beam)(JNIEnv* env, jclass, jlong session, jint index, jfloatArray out_score) {
  Buffer<int32_t> ids;
  size_t n = 0;
  float score = 0;
  const bool good = Fetch(
      env, 64, &ids, &n,
      [&](int32_t* out, size_t capacity, size_t* count) {
        return arn_session_beam(ToSession(session), static_cast<uint32_t>(index), out, capacity,
                                count, &score);
      },
      [&](arn_status status) { return Check(env, ToSession(session), status); });
  if (!good) return nullptr;
  env->SetFloatArrayRegion(out_score, 0, 1, &score);
  return env->ExceptionCheck() ? nullptr : NewInts(env, ids.data(), n);
}
