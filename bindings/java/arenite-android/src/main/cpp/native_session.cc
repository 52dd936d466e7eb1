// org.arenite.Native: sessions.
#include "bindings/java/arenite-android/src/main/cpp/options.h"
#include "bindings/java/arenite-android/src/main/cpp/prefill_listener.h"
#include "bindings/java/arenite-android/src/main/cpp/support.h"

using namespace arn::jni;  // NOLINT(google-build-using-namespace): the methods below are C

namespace {

using IdsCall = arn_status (*)(arn_session*, const int32_t*, size_t);
using NumberCall = arn_status (*)(arn_session*, int32_t*);

void CallWithIds(JNIEnv* env, jlong session, jintArray ids, IdsCall call) {
  InInts in;
  if (!in.Read(env, ids)) return;
  Check(env, ToSession(session), call(ToSession(session), in.data(), in.size()));
}

jint CallForId(JNIEnv* env, jlong session, NumberCall call) {
  int32_t id = 0;
  Check(env, ToSession(session), call(ToSession(session), &id));
  return id;
}

arn_restore_options RestoreOptions(jint verify, jboolean constraints) {
  arn_restore_options options = ARN_RESTORE_OPTIONS_INIT;
  options.no_constraints = constraints == JNI_TRUE ? 0 : 1;
  options.verify = static_cast<uint32_t>(verify);
  return options;
}

}  // namespace

ARN_JNI(jlong, createSession)
(JNIEnv* env, jclass, jlong model, jobject options, jbyteArray device_folder, jlongArray adapters) {
  SessionOptions given;
  if (!given.Read(env, options)) return 0;
  Buffer<const arn_adapter*> list;
  const jsize n_adapters = env->GetArrayLength(adapters);
  if (!list.Allocate(env, static_cast<size_t>(n_adapters))) return 0;
  for (jsize i = 0; i < n_adapters; ++i) {
    jlong adapter = 0;
    env->GetLongArrayRegion(adapters, i, 1, &adapter);
    list.data()[i] = ToAdapter(adapter);
  }
  given.c.adapters = list.data();
  given.c.n_adapters = static_cast<uint32_t>(n_adapters);
  InBytes usual;
  if (!usual.Read(env, device_folder)) return 0;
  if (given.c.device_folder == nullptr) given.c.device_folder = usual.data();
  if (given.c.device_folder != nullptr && *given.c.device_folder == '\0') {
    given.c.device_folder = nullptr;
  }
  Error error;
  arn_session* session = nullptr;
  error.Check(env, arn_session_create(ToModel(model), &given.c, nullptr, 0, error.text,
                                      sizeof error.text, &session));
  return ToHandle(session);
}

ARN_JNI(void, destroySession)(JNIEnv*, jclass, jlong session) {
  arn_session_destroy(ToSession(session));
}

ARN_JNI(void, prefill)
(JNIEnv* env, jclass, jlong session, jintArray ids, jobject listener) {
  const PrefillProgress progress(env, ToSession(session), listener);
  if (env->ExceptionCheck()) return;
  CallWithIds(env, session, ids, arn_session_prefill);
}

ARN_JNI(jint, follow)
(JNIEnv* env, jclass, jlong session, jintArray ids, jobject listener) {
  InInts in;
  if (!in.Read(env, ids)) return 0;
  const PrefillProgress progress(env, ToSession(session), listener);
  if (env->ExceptionCheck()) return 0;
  uint32_t kept = 0;
  Check(env, ToSession(session),
        arn_session_follow(ToSession(session), in.data(), in.size(), &kept));
  return static_cast<jint>(kept);
}

ARN_JNI(void, usePrefix)(JNIEnv* env, jclass, jlong session) {
  Check(env, ToSession(session), arn_session_use_prefix(ToSession(session)));
}

ARN_JNI(void, encodeIds)(JNIEnv* env, jclass, jlong session, jintArray ids) {
  CallWithIds(env, session, ids, arn_session_encode_ids);
}

ARN_JNI(void, encodeFeatures)
(JNIEnv* env, jclass, jlong session, jfloatArray features, jint n_frames, jint width) {
  if (!IsGiven(env, features, "the features")) return;
  const jsize n = env->GetArrayLength(features);
  if (n_frames < 0 || width < 0 || jlong{n_frames} * width != n) {
    Throw(env, ARN_BAD_ARGUMENT, "the number of features is not a multiple of the width");
    return;
  }
  Buffer<float> values;
  if (!values.Allocate(env, static_cast<size_t>(n))) return;
  env->GetFloatArrayRegion(features, 0, n, values.data());
  if (env->ExceptionCheck()) return;
  Check(env, ToSession(session),
        arn_session_encode_features(ToSession(session), values.data(),
                                    static_cast<uint32_t>(n_frames), static_cast<uint32_t>(width)));
}

ARN_JNI(jint, decode)(JNIEnv* env, jclass, jlong session) {
  return CallForId(env, session, arn_session_decode);
}

ARN_JNI(jint, sample)(JNIEnv* env, jclass, jlong session) {
  return CallForId(env, session, arn_session_sample);
}

// Fills `top` with the most likely ids. Returns the log-probability of `id`, then theirs.
ARN_JNI(jfloatArray, logprobs)(JNIEnv* env, jclass, jlong session, jint id, jintArray top) {
  if (!IsGiven(env, top, "top")) return nullptr;
  const auto n = static_cast<size_t>(env->GetArrayLength(top));
  Buffer<arn_token_logprob> found;
  Buffer<int32_t> ids;
  Buffer<float> values;
  if (!found.Allocate(env, n) || !ids.Allocate(env, n) || !values.Allocate(env, n + 1)) {
    return nullptr;
  }
  const arn_status status = arn_session_logprobs(ToSession(session), id, static_cast<uint32_t>(n),
                                                 found.data(), values.data());
  if (!Check(env, ToSession(session), status)) return nullptr;
  for (size_t i = 0; i < n; ++i) {
    ids.data()[i] = found.data()[i].id;
    values.data()[i + 1] = found.data()[i].logprob;
  }
  env->SetIntArrayRegion(top, 0, static_cast<jsize>(n), reinterpret_cast<const jint*>(ids.data()));
  return NewFloats(env, values.data(), n + 1);
}

ARN_JNI(jfloatArray, logits)(JNIEnv* env, jclass, jlong session, jint vocab) {
  const float* logits = nullptr;
  if (!Check(env, ToSession(session), arn_session_logits(ToSession(session), &logits))) {
    return nullptr;
  }
  return NewFloats(env, logits, static_cast<size_t>(vocab));
}

ARN_JNI(jfloatArray, prefillLogits)
(JNIEnv* env, jclass, jlong session, jintArray ids, jint vocab) {
  InInts in;
  if (!in.Read(env, ids)) return nullptr;
  const float* logits = nullptr;
  if (!Check(env, ToSession(session),
             arn_session_prefill_logits(ToSession(session), in.data(), in.size(), &logits))) {
    return nullptr;
  }
  return NewFloats(env, logits, in.size() * static_cast<size_t>(vocab));
}

ARN_JNI(jintArray, tokens)(JNIEnv* env, jclass, jlong session) {
  const int32_t* ids = nullptr;
  uint32_t n = 0;
  if (!Check(env, ToSession(session), arn_session_tokens(ToSession(session), &ids, &n))) {
    return nullptr;
  }
  return NewInts(env, ids, n);
}

ARN_JNI(jint, length)(JNIEnv*, jclass, jlong session) {
  return static_cast<jint>(arn_session_length(ToSession(session)));
}

ARN_JNI(void, reset)(JNIEnv* env, jclass, jlong session) {
  Check(env, ToSession(session), arn_session_reset(ToSession(session)));
}

ARN_JNI(void, rewind)(JNIEnv* env, jclass, jlong session, jint position) {
  if (!IsNumber(env, position, "the position is negative")) return;
  Check(env, ToSession(session),
        arn_session_rewind(ToSession(session), static_cast<uint32_t>(position)));
}

ARN_JNI(jint, firstRewindPosition)(JNIEnv*, jclass, jlong session) {
  return static_cast<jint>(arn_session_first_rewind_position(ToSession(session)));
}

ARN_JNI(jint, resumePosition)(JNIEnv* env, jclass, jlong session, jint position) {
  if (!IsNumber(env, position, "the position is negative")) return 0;
  return static_cast<jint>(
      arn_session_resume_position(ToSession(session), static_cast<uint32_t>(position)));
}

ARN_JNI(void, mark)(JNIEnv* env, jclass, jlong session) {
  Check(env, ToSession(session), arn_session_mark(ToSession(session)));
}

ARN_JNI(jlong, trim)(JNIEnv* env, jclass, jlong session) {
  uint64_t bytes = 0;
  Check(env, ToSession(session), arn_session_trim(ToSession(session), &bytes));
  return static_cast<jlong>(bytes);
}

// ---- several sequences --------------------------------------------------------------------------

ARN_JNI(void, select)(JNIEnv* env, jclass, jlong session, jint sequence) {
  if (!IsNumber(env, sequence, "the sequence is negative")) return;
  Check(env, ToSession(session),
        arn_session_select(ToSession(session), static_cast<uint32_t>(sequence)));
}

ARN_JNI(jint, selected)(JNIEnv*, jclass, jlong session) {
  return static_cast<jint>(arn_session_selected(ToSession(session)));
}

ARN_JNI(void, fork)(JNIEnv* env, jclass, jlong session, jint from, jint to) {
  if (!IsNumber(env, from, "the sequence is negative") ||
      !IsNumber(env, to, "the sequence is negative")) {
    return;
  }
  Check(
      env, ToSession(session),
      arn_session_fork(ToSession(session), static_cast<uint32_t>(from), static_cast<uint32_t>(to)));
}

ARN_JNI(void, step)(JNIEnv* env, jclass, jlong session, jintArray sequences, jintArray ids) {
  InInts which, what;
  if (!which.Read(env, sequences) || !what.Read(env, ids)) return;
  if (which.size() != what.size()) {
    Throw(env, ARN_BAD_ARGUMENT, "the numbers of tokens and sequences differ");
    return;
  }
  Check(env, ToSession(session),
        arn_session_step(ToSession(session), reinterpret_cast<const uint32_t*>(which.data()),
                         what.data(), what.size()));
}

ARN_JNI(jintArray, decodeBatch)(JNIEnv* env, jclass, jlong session, jintArray sequences) {
  InInts which;
  Buffer<int32_t> ids;
  if (!which.Read(env, sequences) || !ids.Allocate(env, which.size())) return nullptr;
  const arn_status status =
      arn_session_decode_batch(ToSession(session), reinterpret_cast<const uint32_t*>(which.data()),
                               which.size(), ids.data());
  if (!Check(env, ToSession(session), status)) return nullptr;
  return NewInts(env, ids.data(), ids.size());
}

// ---- saving -------------------------------------------------------------------------------------

ARN_JNI(void, save)(JNIEnv* env, jclass, jlong session, jbyteArray path) {
  InBytes name;
  if (!name.Read(env, path)) return;
  Check(env, ToSession(session), arn_session_save(ToSession(session), name.data()));
}

ARN_JNI(jbyteArray, saveBytes)(JNIEnv* env, jclass, jlong session) {
  uint64_t n = 0;
  if (!Check(env, ToSession(session), arn_session_save_bytes(ToSession(session), &n))) {
    return nullptr;
  }
  Buffer<char> memory;
  if (n > INT32_MAX) {
    ThrowOutOfMemory(env);
    return nullptr;
  }
  if (!memory.Allocate(env, static_cast<size_t>(n))) return nullptr;
  if (!Check(env, ToSession(session),
             arn_session_save_memory(ToSession(session), memory.data(), n, &n))) {
    return nullptr;
  }
  return NewBytes(env, memory.data(), static_cast<size_t>(n));
}

ARN_JNI(void, restore)
(JNIEnv* env, jclass, jlong session, jbyteArray path, jint verify, jboolean constraints) {
  InBytes name;
  if (!name.Read(env, path)) return;
  const arn_restore_options options = RestoreOptions(verify, constraints);
  Check(env, ToSession(session), arn_session_restore(ToSession(session), name.data(), &options));
}

ARN_JNI(void, restoreBytes)
(JNIEnv* env, jclass, jlong session, jbyteArray data, jint verify, jboolean constraints) {
  InBytes bytes;
  if (!IsGiven(env, data, "the saved bytes") || !bytes.Read(env, data)) return;
  const arn_restore_options options = RestoreOptions(verify, constraints);
  Check(env, ToSession(session),
        arn_session_restore_memory(ToSession(session), bytes.data(), bytes.size(), &options));
}
