// Copies structs of the C API from and to Java objects, field by field.
#pragma once

#include <jni.h>

#include <cstddef>
#include <cstdint>

namespace arn::jni {

class Texts;

enum class FieldKind : uint8_t {
  kBool,    // uint32_t, boolean
  kInt,     // uint32_t, int
  kSigned,  // int32_t, int
  kLong,    // uint64_t or int64_t, long
  kFloat,   // float
  kDouble,  // double
  kText,    // NUL-terminated UTF-8, String
  kChars,   // as kText, inside the struct; only set in Java
  kIds,     // a pointer to 32-bit numbers and their count, int[]; only set in Java
  kCpus,    // a mask of ARN_CPU_WORDS words, int[] of CPU numbers; only set in Java
};

struct Field {
  const char* name;  // in Java
  FieldKind kind;
  size_t offset;        // in the C struct
  size_t count_offset;  // kIds: of the count, uint32_t
};

// Sets the struct's fields from the object. `texts` owns the bytes that the struct's texts point
// to; may be NULL if there are none. Returns false if an exception is pending.
bool ReadFields(JNIEnv* env, jobject object, const Field* fields, size_t n_fields, void* out,
                Texts* texts);
// Sets all of the object's fields from the struct. Returns false if an exception is pending.
bool WriteFields(JNIEnv* env, const void* from, const Field* fields, size_t n_fields,
                 jobject object);

template <size_t kCount>
bool ReadFields(JNIEnv* env, jobject object, const Field (&fields)[kCount], void* out,
                Texts* texts = nullptr) {
  return ReadFields(env, object, fields, kCount, out, texts);
}
template <size_t kCount>
bool WriteFields(JNIEnv* env, const void* from, const Field (&fields)[kCount], jobject object) {
  return WriteFields(env, from, fields, kCount, object);
}

}  // namespace arn::jni
