// Copies structs of the C API from and to Java objects, field by field.
#pragma once

#include <jni.h>

#include <cstddef>
#include <cstdint>

namespace arn::jni {

class Texts;
struct Lists;

enum class FieldKind : uint8_t {
  kBool,    // uint32_t, boolean
  kInt,     // uint32_t, int
  kSigned,  // int32_t, int
  kEnum,    // uint32_t, one of Java's enums
  kLong,    // uint64_t or int64_t, long
  kFloat,   // float
  kDouble,  // double
  kText,    // NUL-terminated UTF-8, String
  kChars,   // as kText, inside the struct; only set in Java
  kIds,     // a pointer to 32-bit numbers and their count, int[]
  kFloats,  // a pointer to floats and their count, float[]
  kCpus,    // a mask of ARN_CPU_WORDS words, int[] of CPU numbers; only set in Java
};

struct Field {
  const char* name;  // in Java
  FieldKind kind;
  size_t offset;                    // in the C struct
  size_t count_offset;              // kIds, kFloats: of the count, uint32_t
  const char* enum_type = nullptr;  // kEnum: its signature, "Lorg/arenite/KvType;"
};

// Sets the struct's fields from the object. `texts` owns the bytes that the struct's texts point
// to, `lists` the elements of its lists; each may be NULL if there are none, or if the caller reads
// them. Returns false if an exception is pending.
bool ReadFields(JNIEnv* env, jobject object, const Field* fields, size_t n_fields, void* out,
                Texts* texts, Lists* lists);
// Sets all of the object's fields from the struct. Returns false if an exception is pending.
bool WriteFields(JNIEnv* env, const void* from, const Field* fields, size_t n_fields,
                 jobject object);

template <size_t kCount>
bool ReadFields(JNIEnv* env, jobject object, const Field (&fields)[kCount], void* out,
                Texts* texts = nullptr, Lists* lists = nullptr) {
  return ReadFields(env, object, fields, kCount, out, texts, lists);
}
template <size_t kCount>
bool WriteFields(JNIEnv* env, const void* from, const Field (&fields)[kCount], jobject object) {
  return WriteFields(env, from, fields, kCount, object);
}

}  // namespace arn::jni
