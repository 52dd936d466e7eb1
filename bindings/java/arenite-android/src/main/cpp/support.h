// Helpers of the native methods. No C++ exceptions. Checks for a pending Java exception after every
// call that can raise one, so a result that is not NULL is valid.
#pragma once

#include <arenite/arenite.h>
#include <jni.h>

#include <cstdint>
#include <cstdlib>

// Includes the prototypes that `javac -h` generates, if present: a method whose declaration differs
// from Java's does not compile.
#if __has_include(<org_arenite_Native.h>)
#include <org_arenite_Native.h>
#endif

#define ARN_JNI(type, name) extern "C" JNIEXPORT type JNICALL Java_org_arenite_Native_##name

namespace arn::jni {

// Raises an AreniteException, unless an exception is pending already.
void Throw(JNIEnv* env, arn_status status, const char* message);
void ThrowOutOfMemory(JNIEnv* env);
// Returns false and raises an exception if the object is null, which JNI functions must not get.
bool IsGiven(JNIEnv* env, jobject object, const char* what);
// Checks a number of a sequence, layer or position, which the C API takes unsigned. Returns false
// and raises an exception with `what` if it is negative.
bool IsNumber(JNIEnv* env, jint value, const char* what);
// Returns true if the status is ARN_OK; else raises an exception with the status' name.
bool Check(JNIEnv* env, arn_status status);
// Same, with the session's own sentence.
bool Check(JNIEnv* env, const arn_session* session, arn_status status);
// Same, with the reason that the object of the call gave; "": the status' name.
bool Check(JNIEnv* env, const char* reason, arn_status status);

inline arn_model* ToModel(jlong handle) {
  return reinterpret_cast<arn_model*>(static_cast<intptr_t>(handle));
}
inline arn_session* ToSession(jlong handle) {
  return reinterpret_cast<arn_session*>(static_cast<intptr_t>(handle));
}
inline arn_adapter* ToAdapter(jlong handle) {
  return reinterpret_cast<arn_adapter*>(static_cast<intptr_t>(handle));
}
inline arn_chat* ToChat(jlong handle) {
  return reinterpret_cast<arn_chat*>(static_cast<intptr_t>(handle));
}
inline arn_embedder* ToEmbedder(jlong handle) {
  return reinterpret_cast<arn_embedder*>(static_cast<intptr_t>(handle));
}
inline arn_image_encoder* ToImageEncoder(jlong handle) {
  return reinterpret_cast<arn_image_encoder*>(static_cast<intptr_t>(handle));
}
inline arn_transcriber* ToTranscriber(jlong handle) {
  return reinterpret_cast<arn_transcriber*>(static_cast<intptr_t>(handle));
}
inline jlong ToHandle(const void* pointer) {
  return static_cast<jlong>(reinterpret_cast<intptr_t>(pointer));
}

// Receives the reason of failed calls that take no handle.
struct Error {
  char text[512] = "";
  // Returns true if the status is ARN_OK; else raises an exception with the reason.
  bool Check(JNIEnv* env, arn_status status) { return jni::Check(env, text, status); }
};

// Memory of the C heap: a failed allocation gives NULL.
template <typename T>
class Buffer {
 public:
  Buffer() = default;
  ~Buffer() { std::free(data_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  // Returns false if an exception is pending. Allocates at least one element, so data() is not
  // NULL.
  bool Allocate(JNIEnv* env, size_t size) {
    std::free(data_);
    size_ = 0;
    data_ = static_cast<T*>(std::calloc(size + 1, sizeof(T)));
    if (data_ == nullptr) {
      ThrowOutOfMemory(env);
      return false;
    }
    size_ = size;
    return true;
  }
  T* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  T* data_ = nullptr;
  size_t size_ = 0;
};

// Copy of a byte[] with a final NUL; NULL for null.
class InBytes : public Buffer<char> {
 public:
  bool Read(JNIEnv* env, jbyteArray array);
};
// Copies of several byte[].
class Texts {
 public:
  static constexpr size_t kMost = 8;
  // Returns NULL and raises an exception if there are too many.
  InBytes* Next(JNIEnv* env) {
    if (n_ < kMost) return &texts_[n_++];
    Throw(env, ARN_INTERNAL, "an object has too many strings");
    return nullptr;
  }

 private:
  InBytes texts_[kMost];
  size_t n_ = 0;
};
// Copy of an int[]; empty for null.
class InInts : public Buffer<int32_t> {
 public:
  bool Read(JNIEnv* env, jintArray array);
};
// Copy of a float[]; empty for null.
class InFloats : public Buffer<float> {
 public:
  bool Read(JNIEnv* env, jfloatArray array);
};
// Copies of the int[] and float[] fields of an object.
struct Lists {
  static constexpr size_t kMost = 16;
  InInts ids[kMost];
  InFloats floats[kMost];
};

// Return a new Java array; NULL if an exception is pending.
jbyteArray NewBytes(JNIEnv* env, const void* data, size_t n);
jintArray NewInts(JNIEnv* env, const void* data, size_t n);
jfloatArray NewFloats(JNIEnv* env, const float* data, size_t n);
// Returns the value of an enum with this number; `type`: "Lorg/arenite/KvType;". NULL if there is
// none, or if an exception is pending.
jobject NewEnum(JNIEnv* env, const char* type, jint number);
// Returns a text of UTF-8 bytes; NULL if an exception is pending.
jstring NewText(JNIEnv* env, const char* data, size_t n);

// Calls fill(data, capacity, &n) with a buffer of `first` bytes, and again with a larger one as
// long as it returns ARN_BUFFER_TOO_SMALL. Returns false if an exception is pending, raised by
// check(status).
template <typename T, typename Fill, typename CheckStatus>
bool Fetch(JNIEnv* env, size_t first, Buffer<T>* buffer, size_t* out_n, Fill fill,
           CheckStatus check) {
  size_t capacity = first;
  while (true) {
    if (!buffer->Allocate(env, capacity)) return false;
    const arn_status status = fill(buffer->data(), capacity, out_n);
    if (status != ARN_BUFFER_TOO_SMALL || *out_n <= capacity) return check(status);
    capacity = *out_n;
  }
}

}  // namespace arn::jni
