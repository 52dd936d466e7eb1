// What the native methods share. No exception of C++ is thrown here; those of Java are checked for
// after every call that can leave one, and what is not NULL then can be relied upon.
#pragma once

#include <arenite/arenite.h>
#include <jni.h>

#include <cstdint>
#include <cstdlib>

// The prototypes that `javac -h` writes, where the build makes them: a method that Java declares
// otherwise does not compile then.
#if __has_include(<org_arenite_Native.h>)
#include <org_arenite_Native.h>
#endif

#define ARN_JNI(type, name) extern "C" JNIEXPORT type JNICALL Java_org_arenite_Native_##name

namespace arn::jni {

// Leaves an AreniteException pending; one that is pending already stays.
void Throw(JNIEnv* env, arn_status status, const char* message);
void ThrowOutOfMemory(JNIEnv* env);
// False when the object is null, which the functions of JNI must not see; then an exception that
// says so is pending.
bool IsGiven(JNIEnv* env, jobject object, const char* what);
// Numbers of sequences, layers, positions: arguments of the C API have no signs. False: an
// exception that says `what` is pending.
bool IsNumber(JNIEnv* env, jint value, const char* what);
// True when the status is ARN_OK; else an exception with the status' name is pending.
bool Check(JNIEnv* env, arn_status status);
// The same with the session's own sentence.
bool Check(JNIEnv* env, const arn_session* session, arn_status status);

inline arn_model* ToModel(jlong handle) {
  return reinterpret_cast<arn_model*>(static_cast<intptr_t>(handle));
}
inline arn_session* ToSession(jlong handle) {
  return reinterpret_cast<arn_session*>(static_cast<intptr_t>(handle));
}
inline arn_chat* ToChat(jlong handle) {
  return reinterpret_cast<arn_chat*>(static_cast<intptr_t>(handle));
}
inline jlong ToHandle(const void* pointer) {
  return static_cast<jlong>(reinterpret_cast<intptr_t>(pointer));
}

// Where calls without a handle write their reason to.
struct Error {
  char text[512] = "";
  // True when the status is ARN_OK; else an exception with the reason is pending.
  bool Check(JNIEnv* env, arn_status status) {
    if (status != ARN_OK) Throw(env, status, text[0] != '\0' ? text : arn_status_name(status));
    return status == ARN_OK;
  }
};

// Memory of the C heap, so that a failure is a NULL.
template <typename T>
class Buffer {
 public:
  Buffer() = default;
  ~Buffer() { std::free(data_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  // False: an exception is pending. At least one element is there, so that data() is not NULL.
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

// A copy of a byte[] with a NUL behind it, or NULL for null.
class InBytes : public Buffer<char> {
 public:
  bool Read(JNIEnv* env, jbyteArray array);
};
// Copies of a few byte[], one after the other.
class Texts {
 public:
  static constexpr size_t kMost = 8;
  // NULL: there are too many, and an exception is pending.
  InBytes* Next(JNIEnv* env) {
    if (n_ < kMost) return &texts_[n_++];
    Throw(env, ARN_INTERNAL, "an object has more texts than there is room for");
    return nullptr;
  }

 private:
  InBytes texts_[kMost];
  size_t n_ = 0;
};
// A copy of an int[]; null is empty.
class InInts : public Buffer<int32_t> {
 public:
  bool Read(JNIEnv* env, jintArray array);
};

// New arrays of Java; NULL: an exception is pending.
jbyteArray NewBytes(JNIEnv* env, const void* data, size_t n);
jintArray NewInts(JNIEnv* env, const void* data, size_t n);
jfloatArray NewFloats(JNIEnv* env, const float* data, size_t n);

// Calls fill(data, capacity, &n) with a buffer of `first` bytes, and again with a larger one while
// it says ARN_BUFFER_TOO_SMALL. False: an exception is pending; check(status) has left it.
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
