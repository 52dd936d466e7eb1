// org.arenite.Native: images, and prompts with their embeddings.
#include "bindings/java/arenite-android/src/main/cpp/expand.h"
#include "bindings/java/arenite-android/src/main/cpp/prefill_listener.h"
#include "bindings/java/arenite-android/src/main/cpp/skill_fields.h"
#include "bindings/java/arenite-android/src/main/cpp/struct_fields.h"

using namespace arn::jni;  // NOLINT(google-build-using-namespace): the methods below are C

namespace {

constexpr size_t kChannels = 3;

// Rows of the float[][] of several images, one after the other.
class EmbeddingRows {
 public:
  // Returns false if an exception is pending.
  bool Read(JNIEnv* env, const arn_model* model, jobjectArray images) {
    arn_image_info info = ARN_IMAGE_INFO_INIT;
    if (!Check(env, arn_image_get_info(model, &info))) return false;
    const jsize n = env->GetArrayLength(images);
    size_t n_floats = 0;
    for (jsize i = 0; i < n; ++i) {
      const auto image = static_cast<jfloatArray>(env->GetObjectArrayElement(images, i));
      if (env->ExceptionCheck() || !IsGiven(env, image, "the embeddings of an image")) return false;
      const auto size = static_cast<size_t>(env->GetArrayLength(image));
      env->DeleteLocalRef(image);
      if (size % info.width != 0) {
        Throw(env, ARN_BAD_ARGUMENT, "the embeddings of an image are not whole rows");
        return false;
      }
      n_floats += size;
    }
    if (!rows_.Allocate(env, n_floats)) return false;
    float* at = rows_.data();
    for (jsize i = 0; i < n; ++i) {
      const auto image = static_cast<jfloatArray>(env->GetObjectArrayElement(images, i));
      const jsize size = env->GetArrayLength(image);
      env->GetFloatArrayRegion(image, 0, size, at);
      if (env->ExceptionCheck()) return false;
      env->DeleteLocalRef(image);
      at += size;
    }
    n_ = n_floats / info.width;
    return true;
  }
  const float* data() const { return rows_.data(); }
  size_t size() const { return n_; }

 private:
  Buffer<float> rows_;
  size_t n_ = 0;
};

// Returns the embeddings of an image. The sizes are those of arn_image.
jfloatArray Encode(JNIEnv* env, jlong model, jlong encoder, const uint8_t* pixels, jint width,
                   jint height, jlong stride) {
  const arn_image image = {pixels, static_cast<uint32_t>(width), static_cast<uint32_t>(height),
                           static_cast<uint64_t>(stride)};
  arn_image_info info = ARN_IMAGE_INFO_INIT;
  arn_image_layout layout = ARN_IMAGE_LAYOUT_INIT;
  Error error;
  if (!Check(env, arn_image_get_info(ToModel(model), &info)) ||
      !error.Check(env, arn_image_get_layout(ToModel(model), image.width, image.height, error.text,
                                             sizeof error.text, &layout))) {
    return nullptr;
  }
  Buffer<float> out;
  if (!out.Allocate(env, size_t{layout.n_embeddings} * info.width)) return nullptr;
  arn_image_encoder* const e = ToImageEncoder(encoder);
  uint32_t n = 0;
  const arn_status status = arn_image_encode(e, &image, out.data(), out.size(), &n);
  if (!Check(env, arn_image_encoder_last_error(e), status)) return nullptr;
  return NewFloats(env, out.data(), size_t{n} * info.width);
}

}  // namespace

ARN_JNI(void, imageInfo)(JNIEnv* env, jclass, jlong model, jobject out) {
  arn_image_info info = ARN_IMAGE_INFO_INIT;
  if (Check(env, arn_image_get_info(ToModel(model), &info))) {
    WriteFields(env, &info, kImageInfoFields, out);
  }
}

ARN_JNI(void, imageLayout)
(JNIEnv* env, jclass, jlong model, jint width, jint height, jobject out) {
  arn_image_layout layout = ARN_IMAGE_LAYOUT_INIT;
  Error error;
  if (error.Check(env, arn_image_get_layout(ToModel(model), static_cast<uint32_t>(width),
                                            static_cast<uint32_t>(height), error.text,
                                            sizeof error.text, &layout))) {
    WriteFields(env, &layout, kImageLayoutFields, out);
  }
}

ARN_JNI(jbyteArray, expandImages)
(JNIEnv* env, jclass, jlong model, jintArray sizes, jbyteArray prompt) {
  InInts given;
  InBytes text;
  Expanded expanded;
  if (!IsGiven(env, prompt, "the prompt") || !given.Read(env, sizes) || !text.Read(env, prompt) ||
      !expanded.Read(env, ToModel(model), given, text.data(), text.size(), nullptr, 0)) {
    return nullptr;
  }
  return NewBytes(env, expanded.text.data(), expanded.n);
}

ARN_JNI(void, imagePlan)(JNIEnv* env, jclass, jlong model, jobject options, jobject out) {
  arn_image_options given = ARN_IMAGE_OPTIONS_INIT;
  Texts texts;
  if (!ReadFields(env, options, kImageOptionsFields, &given, &texts)) return;
  arn_image_plan_data plan = ARN_IMAGE_PLAN_DATA_INIT;
  Error error;
  if (error.Check(env,
                  arn_image_plan(ToModel(model), &given, error.text, sizeof error.text, &plan))) {
    WriteFields(env, &plan, kImagePlanFields, out);
  }
}

ARN_JNI(jlong, createImageEncoder)(JNIEnv* env, jclass, jlong model, jobject options) {
  arn_image_options given = ARN_IMAGE_OPTIONS_INIT;
  Texts texts;
  if (!ReadFields(env, options, kImageOptionsFields, &given, &texts)) return 0;
  Error error;
  arn_image_encoder* encoder = nullptr;
  error.Check(env, arn_image_encoder_create(ToModel(model), &given, nullptr, 0, error.text,
                                            sizeof error.text, &encoder));
  return ToHandle(encoder);
}

ARN_JNI(void, imageBackend)(JNIEnv* env, jclass, jlong encoder, jobject out) {
  arn_backend_info info = ARN_BACKEND_INFO_INIT;
  if (Check(env, arn_image_encoder_backend(ToImageEncoder(encoder), &info))) {
    WriteFields(env, &info, kBackendInfoFields, out);
  }
}

ARN_JNI(void, destroyImageEncoder)(JNIEnv*, jclass, jlong encoder) {
  arn_image_encoder_destroy(ToImageEncoder(encoder));
}

ARN_JNI(void, cancelImageEncoder)(JNIEnv*, jclass, jlong encoder) {
  arn_image_encoder_cancel(ToImageEncoder(encoder));
}

// ---- pixels; the caller has checked that the array or buffer holds them -------------------------

ARN_JNI(jfloatArray, encodeRgb)
(JNIEnv* env, jclass, jlong model, jlong encoder, jbyteArray rgb, jint width, jint height,
 jlong stride) {
  InBytes pixels;
  if (!pixels.Read(env, rgb)) return nullptr;
  return Encode(env, model, encoder, reinterpret_cast<const uint8_t*>(pixels.data()), width, height,
                stride);
}

ARN_JNI(jfloatArray, encodeBuffer)
(JNIEnv* env, jclass, jlong model, jlong encoder, jobject direct, jint position, jint width,
 jint height, jlong stride) {
  const auto* const first = static_cast<const uint8_t*>(env->GetDirectBufferAddress(direct));
  return Encode(env, model, encoder, first + position, width, height, stride);
}

ARN_JNI(jfloatArray, encodeArgb)
(JNIEnv* env, jclass, jlong model, jlong encoder, jintArray argb, jint width, jint height) {
  constexpr jsize kPart = 1024;  // pixels at a time
  const auto n = static_cast<jsize>(jlong{width} * height);
  Buffer<uint8_t> rgb;
  if (!rgb.Allocate(env, kChannels * static_cast<size_t>(n))) return nullptr;
  uint8_t* at = rgb.data();
  jint part[kPart];
  for (jsize first = 0; first < n; first += kPart) {
    const jsize count = n - first < kPart ? n - first : kPart;
    env->GetIntArrayRegion(argb, first, count, part);
    if (env->ExceptionCheck()) return nullptr;
    for (jsize i = 0; i < count; ++i) {
      const auto pixel = static_cast<uint32_t>(part[i]);
      *at++ = static_cast<uint8_t>(pixel >> 16);
      *at++ = static_cast<uint8_t>(pixel >> 8);
      *at++ = static_cast<uint8_t>(pixel);
    }
  }
  return Encode(env, model, encoder, rgb.data(), width, height, 0);
}

ARN_JNI(void, imageCounts)(JNIEnv* env, jclass, jlong encoder, jobject out) {
  arn_image_counts counts = ARN_IMAGE_COUNTS_INIT;
  if (Check(env, arn_image_encoder_get_counts(ToImageEncoder(encoder), &counts))) {
    WriteFields(env, &counts, kImageCountsFields, out);
  }
}

// ---- prompts ------------------------------------------------------------------------------------

ARN_JNI(void, prefillImages)
(JNIEnv* env, jclass, jlong model, jlong session, jintArray ids, jobjectArray images,
 jobject listener) {
  InInts in;
  EmbeddingRows rows;
  if (!in.Read(env, ids) || !rows.Read(env, ToModel(model), images)) return;
  arn_session* const s = ToSession(session);
  const PrefillProgress progress(env, s, listener);
  if (env->ExceptionCheck()) return;
  Check(env, s, arn_session_prefill_embeddings(s, in.data(), in.size(), rows.data(), rows.size()));
}

ARN_JNI(jint, followImages)
(JNIEnv* env, jclass, jlong model, jlong session, jintArray ids, jobjectArray images,
 jobject listener) {
  InInts in;
  EmbeddingRows rows;
  if (!in.Read(env, ids) || !rows.Read(env, ToModel(model), images)) return 0;
  arn_session* const s = ToSession(session);
  const PrefillProgress progress(env, s, listener);
  if (env->ExceptionCheck()) return 0;
  uint32_t kept = 0;
  Check(env, s,
        arn_session_follow_embeddings(s, in.data(), in.size(), rows.data(), rows.size(), &kept));
  return static_cast<jint>(kept);
}
