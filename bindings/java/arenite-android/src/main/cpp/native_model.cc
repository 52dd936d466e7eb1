// org.arenite.Native: models, tokenizers, plans.
#include "bindings/java/arenite-android/src/main/cpp/options.h"
#include "bindings/java/arenite-android/src/main/cpp/struct_fields.h"
#include "bindings/java/arenite-android/src/main/cpp/support.h"

using namespace arn::jni;  // NOLINT(google-build-using-namespace): the methods below are C

namespace {

constexpr size_t kKeyBytes = 32;

// Model options that own the bytes of the key.
struct ModelOptions {
  arn_model_options c = ARN_MODEL_OPTIONS_INIT;
  InBytes key;

  // Returns false if an exception is pending.
  bool Read(JNIEnv* env, jint verify_hashes, jbyteArray public_key, jint residency) {
    c.verify_hashes = static_cast<uint32_t>(verify_hashes);
    c.residency = static_cast<uint32_t>(residency);
    if (!key.Read(env, public_key)) return false;
    if (public_key != nullptr && key.size() != kKeyBytes) {
      Throw(env, ARN_BAD_ARGUMENT, "the public key does not have 32 bytes");
      return false;
    }
    c.public_key = reinterpret_cast<const uint8_t*>(key.data());
    return true;
  }
};

// Runs `call` on the detokenizer state in the array. REQUIRES: the array has the state's size.
template <typename Call>
jbyteArray Detokenize(JNIEnv* env, const arn_model* model, jintArray state, Call call) {
  constexpr jsize kWords = sizeof(arn_detokenizer) / sizeof(jint);
  arn_detokenizer c = {};
  auto* const words = reinterpret_cast<jint*>(c.state);
  env->GetIntArrayRegion(state, 0, kWords, words);
  Buffer<char> text;
  size_t n = 0;
  const bool good = Fetch(
      env, arn_detokenizer_piece_bytes(model), &text, &n,
      [&](char* out, size_t capacity, size_t* count) { return call(&c, out, capacity, count); },
      [&](arn_status status) { return Check(env, status); });
  if (!good) return nullptr;
  env->SetIntArrayRegion(state, 0, kWords, words);
  return NewBytes(env, text.data(), n);
}

// Source of a bundle's bytes. The C API calls back on the calling thread.
struct Reader {
  JNIEnv* env;
  jobject object;
  jmethodID read;
};

// An exception of the reader stays pending and propagates to the caller that opens the bundle.
int ReadBundle(void* user, uint64_t offset, void* out, size_t bytes) {
  const auto* reader = static_cast<const Reader*>(user);
  JNIEnv* env = reader->env;
  const auto n = static_cast<jsize>(bytes);  // at most 4 MiB
  const jbyteArray array = env->NewByteArray(n);
  if (array == nullptr) return 1;
  env->CallVoidMethod(reader->object, reader->read, static_cast<jlong>(offset), array);
  if (env->ExceptionCheck()) return 1;
  env->GetByteArrayRegion(array, 0, n, static_cast<jbyte*>(out));
  env->DeleteLocalRef(array);
  return 0;
}

}  // namespace

ARN_JNI(jint, version)(JNIEnv*, jclass) { return static_cast<jint>(arn_version()); }

ARN_JNI(jlong, openPath)
(JNIEnv* env, jclass, jbyteArray path, jint verify_hashes, jbyteArray public_key, jint residency) {
  InBytes name;
  ModelOptions options;
  if (!name.Read(env, path) || !options.Read(env, verify_hashes, public_key, residency)) return 0;
  Error error;
  arn_model* model = nullptr;
  error.Check(env, arn_model_open(name.data(), &options.c, error.text, sizeof error.text, &model));
  return ToHandle(model);
}

ARN_JNI(jlong, openFd)
(JNIEnv* env, jclass, jint fd, jlong offset, jlong bytes, jint verify_hashes, jbyteArray public_key,
 jint residency) {
  ModelOptions options;
  if (!options.Read(env, verify_hashes, public_key, residency)) return 0;
  if (offset < 0 || bytes < 0) {
    Throw(env, ARN_BAD_ARGUMENT, "the offset or the length of the bundle is negative");
    return 0;
  }
  Error error;
  arn_model* model = nullptr;
  error.Check(env,
              arn_model_open_fd(fd, static_cast<uint64_t>(offset), static_cast<uint64_t>(bytes),
                                &options.c, error.text, sizeof error.text, &model));
  return ToHandle(model);
}

ARN_JNI(jlong, openReader)
(JNIEnv* env, jclass, jobject object, jlong bytes, jint verify_hashes, jbyteArray public_key) {
  ModelOptions options;
  if (!IsGiven(env, object, "the reader")) return 0;
  if (!options.Read(env, verify_hashes, public_key, ARN_RESIDENCY_MAPPED)) return 0;
  if (bytes < 0) {
    Throw(env, ARN_BAD_ARGUMENT, "the length of the bundle is negative");
    return 0;
  }
  const jclass type = env->GetObjectClass(object);
  Reader from = {env, object, env->GetMethodID(type, "read", "(J[B)V")};
  env->DeleteLocalRef(type);
  if (from.read == nullptr) return 0;
  arn_reader reader = ARN_READER_INIT;
  reader.bytes = static_cast<uint64_t>(bytes);
  reader.user = &from;
  reader.read = ReadBundle;
  Error error;
  arn_model* model = nullptr;
  error.Check(env,
              arn_model_open_reader(&reader, &options.c, error.text, sizeof error.text, &model));
  return ToHandle(model);
}

ARN_JNI(void, closeModel)(JNIEnv*, jclass, jlong model) { arn_model_close(ToModel(model)); }

ARN_JNI(void, modelInfo)(JNIEnv* env, jclass, jlong model, jobject out) {
  arn_model_info info = ARN_MODEL_INFO_INIT;
  if (Check(env, arn_model_get_info(ToModel(model), &info))) {
    WriteFields(env, &info, kModelInfoFields, out);
  }
}

ARN_JNI(void, modelSampling)(JNIEnv* env, jclass, jlong model, jobject out) {
  arn_sampling sampling = ARN_SAMPLING_INIT;
  if (Check(env, arn_model_sampling(ToModel(model), &sampling))) {
    WriteFields(env, &sampling, kSamplingFields, out);
  }
}

ARN_JNI(void, modelResidency)(JNIEnv* env, jclass, jlong model, jobject out) {
  arn_residency residency = ARN_RESIDENCY_INIT;
  if (Check(env, arn_model_get_residency(ToModel(model), &residency))) {
    WriteFields(env, &residency, kResidencyInfoFields, out);
  }
}

ARN_JNI(jintArray, modelPrefix)(JNIEnv* env, jclass, jlong model) {
  const int32_t* ids = nullptr;
  uint32_t n = 0;
  const arn_status status = arn_model_prefix(ToModel(model), &ids, &n);
  if (status != ARN_NOT_FOUND && !Check(env, status)) return nullptr;
  return NewInts(env, ids, n);
}

ARN_JNI(jintArray, tokenize)
(JNIEnv* env, jclass, jlong model, jbyteArray text, jboolean special, jboolean plain) {
  InBytes in;
  if (!IsGiven(env, text, "the text") || !in.Read(env, text)) return nullptr;
  uint32_t flags = ARN_TOKENIZE_DEFAULT;
  if (special != JNI_TRUE) flags |= ARN_TOKENIZE_NO_SPECIAL;
  if (plain == JNI_TRUE) flags |= ARN_TOKENIZE_PLAIN;
  Buffer<int32_t> ids;
  size_t n = 0;
  const bool good = Fetch(
      env, in.size() + 16, &ids, &n,
      [&](int32_t* out, size_t capacity, size_t* count) {
        return arn_tokenize(ToModel(model), in.data(), in.size(), flags, nullptr, 0, out, capacity,
                            count);
      },
      [&](arn_status status) { return Check(env, status); });
  return good ? NewInts(env, ids.data(), n) : nullptr;
}

ARN_JNI(jbyteArray, detokenize)
(JNIEnv* env, jclass, jlong model, jintArray ids, jboolean skip_special) {
  InInts in;
  if (!in.Read(env, ids)) return nullptr;
  const uint32_t flags =
      skip_special == JNI_TRUE ? ARN_DETOKENIZE_SKIP_SPECIAL : ARN_DETOKENIZE_DEFAULT;
  Buffer<char> text;
  size_t n = 0;
  const bool good = Fetch(
      env, 16 * in.size() + 64, &text, &n,
      [&](char* out, size_t capacity, size_t* count) {
        return arn_detokenize(ToModel(model), in.data(), in.size(), flags, out, capacity, count);
      },
      [&](arn_status status) { return Check(env, status); });
  return good ? NewBytes(env, text.data(), n) : nullptr;
}

ARN_JNI(jbyteArray, detokenizerNext)
(JNIEnv* env, jclass, jlong model, jintArray state, jint id, jboolean skip_special) {
  const uint32_t flags =
      skip_special == JNI_TRUE ? ARN_DETOKENIZE_SKIP_SPECIAL : ARN_DETOKENIZE_DEFAULT;
  return Detokenize(env, ToModel(model), state,
                    [&](arn_detokenizer* c, char* out, size_t capacity, size_t* count) {
                      return arn_detokenizer_next(ToModel(model), c, id, flags, out, capacity,
                                                  count);
                    });
}

ARN_JNI(jbyteArray, detokenizerEnd)(JNIEnv* env, jclass, jlong model, jintArray state) {
  return Detokenize(env, ToModel(model), state,
                    [&](arn_detokenizer* c, char* out, size_t capacity, size_t* count) {
                      return arn_detokenizer_end(ToModel(model), c, out, capacity, count);
                    });
}

ARN_JNI(jbyteArray, tokenText)(JNIEnv* env, jclass, jlong model, jint id) {
  const char* text = nullptr;
  size_t n = 0;
  if (!Check(env, arn_token_text(ToModel(model), id, &text, &n))) return nullptr;
  return NewBytes(env, text, n);
}

ARN_JNI(void, plan)
(JNIEnv* env, jclass, jlong model, jobject options, jobject out) {
  SessionOptions given;
  if (!given.Read(env, options)) return;
  arn_memory_plan plan = ARN_MEMORY_PLAN_INIT;
  Error error;
  if (error.Check(
          env, arn_session_plan(ToModel(model), &given.c, error.text, sizeof error.text, &plan))) {
    WriteFields(env, &plan, kMemoryPlanFields, out);
  }
}

ARN_JNI(void, planGroup)
(JNIEnv* env, jclass, jlong model, jobject options, jint index, jobject out) {
  SessionOptions given;
  if (!given.Read(env, options)) return;
  arn_kv_group_info group = ARN_KV_GROUP_INFO_INIT;
  Error error;
  if (error.Check(env,
                  arn_session_plan_group(ToModel(model), &given.c, static_cast<uint32_t>(index),
                                         error.text, sizeof error.text, &group))) {
    WriteFields(env, &group, kKvGroupFields, out);
  }
}
