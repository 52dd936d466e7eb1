// org.arenite.Native: vectors of texts, and scores of pairs of texts.
#include <cstring>

#include "bindings/java/arenite-android/src/main/cpp/skill_fields.h"
#include "bindings/java/arenite-android/src/main/cpp/support.h"

using namespace arn::jni;  // NOLINT(google-build-using-namespace): the methods below are C

namespace {

// Texts of a byte[][] and their bytes.
class TextArray {
 public:
  // Returns false if an exception is pending.
  bool Read(JNIEnv* env, jobjectArray array) {
    if (!IsGiven(env, array, "the texts")) return false;
    const jsize n = env->GetArrayLength(array);
    if (!texts_.Allocate(env, static_cast<size_t>(n))) return false;
    size_t n_bytes = 0;
    for (jsize i = 0; i < n; ++i) {
      const auto text = static_cast<jbyteArray>(env->GetObjectArrayElement(array, i));
      if (env->ExceptionCheck() || !IsGiven(env, text, "a text")) return false;
      texts_.data()[i].bytes = static_cast<size_t>(env->GetArrayLength(text));
      n_bytes += texts_.data()[i].bytes;
      env->DeleteLocalRef(text);
    }
    if (!bytes_.Allocate(env, n_bytes)) return false;
    char* at = bytes_.data();
    for (jsize i = 0; i < n; ++i) {
      arn_text& to = texts_.data()[i];
      const auto text = static_cast<jbyteArray>(env->GetObjectArrayElement(array, i));
      env->GetByteArrayRegion(text, 0, static_cast<jsize>(to.bytes), reinterpret_cast<jbyte*>(at));
      if (env->ExceptionCheck()) return false;
      env->DeleteLocalRef(text);
      to.text = at;
      at += to.bytes;
    }
    return true;
  }
  const arn_text* data() const { return texts_.data(); }
  size_t size() const { return texts_.size(); }

 private:
  Buffer<arn_text> texts_;
  Buffer<char> bytes_;
};

// Returns the n_texts rows of `width` floats that `call(out, capacity)` computes.
template <typename Call>
jfloatArray Rows(JNIEnv* env, jlong embedder, size_t n_texts, jint width, Call call) {
  Buffer<float> out;
  if (!out.Allocate(env, n_texts * static_cast<size_t>(width))) return nullptr;
  const arn_status status = call(out.data(), out.size());
  return Check(env, arn_embedder_last_error(ToEmbedder(embedder)), status)
             ? NewFloats(env, out.data(), out.size())
             : nullptr;
}

}  // namespace

ARN_JNI(void, embedInfo)(JNIEnv* env, jclass, jlong model, jobject out) {
  arn_embed_info info = ARN_EMBED_INFO_INIT;
  if (Check(env, arn_embed_get_info(ToModel(model), &info))) {
    WriteFields(env, &info, kEmbedInfoFields, out);
  }
}

// Returns the name of a prompt, or its text. Null: there is no such prompt.
ARN_JNI(jbyteArray, embedPrompt)
(JNIEnv* env, jclass, jlong model, jint index, jboolean is_name) {
  const char* name = nullptr;
  const char* text = nullptr;
  const arn_status status =
      arn_embed_prompt(ToModel(model), static_cast<uint32_t>(index), &name, &text);
  if (status == ARN_NOT_FOUND || !Check(env, status)) return nullptr;
  const char* const chosen = is_name == JNI_TRUE ? name : text;
  return NewBytes(env, chosen, std::strlen(chosen));
}

ARN_JNI(void, embedPlan)(JNIEnv* env, jclass, jlong model, jobject options, jobject out) {
  arn_embed_options given = ARN_EMBED_OPTIONS_INIT;
  if (!ReadFields(env, options, kEmbedOptionsFields, &given)) return;
  arn_embed_plan_data plan = ARN_EMBED_PLAN_DATA_INIT;
  Error error;
  if (error.Check(env,
                  arn_embed_plan(ToModel(model), &given, error.text, sizeof error.text, &plan))) {
    WriteFields(env, &plan, kEmbedPlanFields, out);
  }
}

ARN_JNI(jlong, createEmbedder)(JNIEnv* env, jclass, jlong model, jobject options) {
  arn_embed_options given = ARN_EMBED_OPTIONS_INIT;
  if (!ReadFields(env, options, kEmbedOptionsFields, &given)) return 0;
  Error error;
  arn_embedder* embedder = nullptr;
  error.Check(env, arn_embedder_create(ToModel(model), &given, nullptr, 0, error.text,
                                       sizeof error.text, &embedder));
  return ToHandle(embedder);
}

ARN_JNI(void, destroyEmbedder)(JNIEnv*, jclass, jlong embedder) {
  arn_embedder_destroy(ToEmbedder(embedder));
}

ARN_JNI(void, cancelEmbedder)(JNIEnv*, jclass, jlong embedder) {
  arn_embedder_cancel(ToEmbedder(embedder));
}

ARN_JNI(jfloatArray, embed)
(JNIEnv* env, jclass, jlong embedder, jint width, jbyteArray prompt, jobjectArray texts) {
  InBytes before;
  TextArray given;
  if (!before.Read(env, prompt) || !given.Read(env, texts)) return nullptr;
  return Rows(env, embedder, given.size(), width, [&](float* out, size_t capacity) {
    return arn_embed(ToEmbedder(embedder), before.data(), given.data(), given.size(), out,
                     capacity);
  });
}

ARN_JNI(jfloatArray, embedIds)
(JNIEnv* env, jclass, jlong embedder, jint width, jintArray ids, jintArray lengths,
 jintArray first_lengths) {
  InInts all, counts, firsts;
  if (!all.Read(env, ids) || !counts.Read(env, lengths) || !firsts.Read(env, first_lengths)) {
    return nullptr;
  }
  static_assert(sizeof(int32_t) == sizeof(uint32_t));
  const auto* const first = reinterpret_cast<const uint32_t*>(firsts.data());
  return Rows(env, embedder, counts.size(), width, [&](float* out, size_t capacity) {
    return arn_embed_ids(ToEmbedder(embedder), all.data(), all.size(),
                         reinterpret_cast<const uint32_t*>(counts.data()),
                         first_lengths == nullptr ? nullptr : first, counts.size(), out, capacity);
  });
}

ARN_JNI(jfloatArray, rerank)
(JNIEnv* env, jclass, jlong embedder, jint width, jbyteArray instruction, jbyteArray query,
 jobjectArray documents) {
  InBytes task, asked;
  TextArray given;
  if (!IsGiven(env, query, "the query") || !task.Read(env, instruction) ||
      !asked.Read(env, query) || !given.Read(env, documents)) {
    return nullptr;
  }
  return Rows(env, embedder, given.size(), width, [&](float* out, size_t capacity) {
    return arn_rerank(ToEmbedder(embedder), task.data(), {asked.data(), asked.size()}, given.data(),
                      given.size(), out, capacity);
  });
}

ARN_JNI(void, embedCounts)(JNIEnv* env, jclass, jlong embedder, jobject out) {
  arn_embed_counts counts = ARN_EMBED_COUNTS_INIT;
  if (Check(env, arn_embedder_get_counts(ToEmbedder(embedder), &counts))) {
    WriteFields(env, &counts, kEmbedCountsFields, out);
  }
}
