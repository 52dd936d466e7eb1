#include "bindings/java/arenite-android/src/main/cpp/structs.h"

#include <cstdio>
#include <cstring>

#include "bindings/java/arenite-android/src/main/cpp/support.h"

namespace arn::jni {
namespace {

template <typename T>
T At(const void* base, size_t offset) {
  T value;
  std::memcpy(&value, static_cast<const char*>(base) + offset, sizeof value);
  return value;
}

template <typename T>
void Put(void* base, size_t offset, T value) {
  std::memcpy(static_cast<char*>(base) + offset, &value, sizeof value);
}

const char* Signature(const Field& field) {
  switch (field.kind) {
    case FieldKind::kBool: return "Z";
    case FieldKind::kInt:
    case FieldKind::kSigned: return "I";
    case FieldKind::kEnum: return field.enum_type;
    case FieldKind::kLong: return "J";
    case FieldKind::kFloat: return "F";
    case FieldKind::kDouble: return "D";
    case FieldKind::kText:
    case FieldKind::kChars: return "Ljava/lang/String;";
    case FieldKind::kIds:
    case FieldKind::kCpus: return "[I";
    case FieldKind::kFloats: return "[F";
  }
  return "";
}

// Refuses negative values: Java's ints are signed, the options' are not.
bool ReadInt(JNIEnv* env, const Field& field, jint value, void* out) {
  if (value < 0) {
    char text[96];
    std::snprintf(text, sizeof text, "%s is %d, expected 0 or more", field.name, value);
    Throw(env, ARN_BAD_ARGUMENT, text);
    return false;
  }
  Put(out, field.offset, static_cast<uint32_t>(value));
  return true;
}

// Reads a Java string; `texts` owns the bytes. null becomes NULL.
bool ReadText(JNIEnv* env, jobject object, jfieldID id, Texts* texts, const char** out) {
  const jobject string = env->GetObjectField(object, id);
  *out = nullptr;
  if (string == nullptr) return true;
  const jclass native = env->FindClass("org/arenite/Native");
  if (native == nullptr) return false;
  const jmethodID encode = env->GetStaticMethodID(native, "utf8", "(Ljava/lang/String;)[B");
  if (encode == nullptr) return false;
  const auto bytes = static_cast<jbyteArray>(env->CallStaticObjectMethod(native, encode, string));
  if (env->ExceptionCheck()) return false;
  InBytes* text = texts->Next(env);
  if (text == nullptr || !text->Read(env, bytes)) return false;
  *out = text->data();
  env->DeleteLocalRef(bytes);
  env->DeleteLocalRef(native);
  env->DeleteLocalRef(string);
  return true;
}

// Writes UTF-8 to a Java string with Java's own decoder: JNI's functions expect modified UTF-8.
bool WriteText(JNIEnv* env, jobject object, jfieldID id, const char* text) {
  const jstring string = NewText(env, text, text == nullptr ? 0 : std::strlen(text));
  if (string == nullptr) return false;
  env->SetObjectField(object, id, string);
  env->DeleteLocalRef(string);
  return !env->ExceptionCheck();
}

// Reads an int[] or float[] field into list i of `lists`. null is an empty list.
bool ReadList(JNIEnv* env, jobject object, jfieldID id, const Field& field, size_t i, Lists* lists,
              void* out) {
  const jobject array = env->GetObjectField(object, id);
  size_t n = 0;
  const void* data = nullptr;
  if (field.kind == FieldKind::kIds) {
    if (!lists->ids[i].Read(env, static_cast<jintArray>(array))) return false;
    n = lists->ids[i].size();
    data = lists->ids[i].data();
  } else {
    if (!lists->floats[i].Read(env, static_cast<jfloatArray>(array))) return false;
    n = lists->floats[i].size();
    data = lists->floats[i].data();
  }
  Put(out, field.offset, data);
  Put(out, field.count_offset, static_cast<uint32_t>(n));
  env->DeleteLocalRef(array);
  return true;
}

bool WriteIds(JNIEnv* env, jobject object, jfieldID id, const void* ids, uint32_t n) {
  const jintArray array = NewInts(env, ids, n);
  if (array == nullptr) return false;
  env->SetObjectField(object, id, array);
  env->DeleteLocalRef(array);
  return true;
}

bool WriteCpus(JNIEnv* env, jobject object, jfieldID id, const void* mask) {
  constexpr uint32_t kWordBits = 64;
  int32_t cpus[ARN_CPU_WORDS * kWordBits];
  uint32_t n = 0;
  for (uint32_t cpu = 0; cpu < ARN_CPU_WORDS * kWordBits; ++cpu) {
    const auto word = At<uint64_t>(mask, cpu / kWordBits * sizeof(uint64_t));
    if ((word >> cpu % kWordBits & 1) != 0) cpus[n++] = static_cast<int32_t>(cpu);
  }
  return WriteIds(env, object, id, cpus, n);
}

bool ReadEnum(JNIEnv* env, jobject object, jfieldID id, const Field& field, void* out) {
  const jobject value = env->GetObjectField(object, id);
  if (!IsGiven(env, value, field.name)) return false;
  const jclass type = env->GetObjectClass(value);
  const jfieldID number = env->GetFieldID(type, "number", "I");
  env->DeleteLocalRef(type);
  if (number == nullptr) return false;
  Put(out, field.offset, static_cast<uint32_t>(env->GetIntField(value, number)));
  env->DeleteLocalRef(value);
  return true;
}

bool WriteEnum(JNIEnv* env, jobject object, jfieldID id, const Field& field, jint number) {
  const jobject value = NewEnum(env, field.enum_type, number);
  if (env->ExceptionCheck()) return false;
  env->SetObjectField(object, id, value);
  env->DeleteLocalRef(value);
  return !env->ExceptionCheck();
}

}  // namespace

bool ReadFields(JNIEnv* env, jobject object, const Field* fields, size_t n_fields, void* out,
                Texts* texts, Lists* lists) {
  if (!IsGiven(env, object, "the options")) return false;
  size_t n_lists = 0;
  const jclass type = env->GetObjectClass(object);
  for (size_t i = 0; i < n_fields; ++i) {
    const Field& field = fields[i];
    const jfieldID id = env->GetFieldID(type, field.name, Signature(field));
    if (id == nullptr) return false;
    switch (field.kind) {
      case FieldKind::kBool:
        Put<uint32_t>(out, field.offset, env->GetBooleanField(object, id) == JNI_TRUE ? 1 : 0);
        break;
      case FieldKind::kInt:
        if (!ReadInt(env, field, env->GetIntField(object, id), out)) return false;
        break;
      case FieldKind::kSigned: Put(out, field.offset, env->GetIntField(object, id)); break;
      case FieldKind::kEnum:
        if (!ReadEnum(env, object, id, field, out)) return false;
        break;
      case FieldKind::kLong: Put(out, field.offset, env->GetLongField(object, id)); break;
      case FieldKind::kFloat: Put(out, field.offset, env->GetFloatField(object, id)); break;
      case FieldKind::kDouble: Put(out, field.offset, env->GetDoubleField(object, id)); break;
      case FieldKind::kText: {
        const char* text = nullptr;
        if (!ReadText(env, object, id, texts, &text)) return false;
        Put(out, field.offset, text);
        break;
      }
      case FieldKind::kIds:
      case FieldKind::kFloats:
        if (lists == nullptr) break;
        if (n_lists == Lists::kMost) {
          Throw(env, ARN_INTERNAL, "an object has too many lists");
          return false;
        }
        if (!ReadList(env, object, id, field, n_lists++, lists, out)) return false;
        break;
      case FieldKind::kChars:
      case FieldKind::kCpus: break;
    }
  }
  env->DeleteLocalRef(type);
  return true;
}

bool WriteFields(JNIEnv* env, const void* from, const Field* fields, size_t n_fields,
                 jobject object) {
  const jclass type = env->GetObjectClass(object);
  bool good = true;
  for (size_t i = 0; good && i < n_fields; ++i) {
    const Field& field = fields[i];
    const jfieldID id = env->GetFieldID(type, field.name, Signature(field));
    if (id == nullptr) {
      good = false;
      break;
    }
    switch (field.kind) {
      case FieldKind::kBool:
        env->SetBooleanField(object, id,
                             At<uint32_t>(from, field.offset) != 0 ? JNI_TRUE : JNI_FALSE);
        break;
      case FieldKind::kInt:
      case FieldKind::kSigned: env->SetIntField(object, id, At<jint>(from, field.offset)); break;
      case FieldKind::kEnum:
        good = WriteEnum(env, object, id, field, At<jint>(from, field.offset));
        break;
      case FieldKind::kLong: env->SetLongField(object, id, At<jlong>(from, field.offset)); break;
      case FieldKind::kFloat: env->SetFloatField(object, id, At<float>(from, field.offset)); break;
      case FieldKind::kDouble:
        env->SetDoubleField(object, id, At<double>(from, field.offset));
        break;
      case FieldKind::kChars:
        good = WriteText(env, object, id, static_cast<const char*>(from) + field.offset);
        break;
      case FieldKind::kText:
        good = WriteText(env, object, id, At<const char*>(from, field.offset));
        break;
      case FieldKind::kIds:
        good = WriteIds(env, object, id, At<const void*>(from, field.offset),
                        At<uint32_t>(from, field.count_offset));
        break;
      case FieldKind::kFloats: {
        const jfloatArray array = NewFloats(env, At<const float*>(from, field.offset),
                                            At<uint32_t>(from, field.count_offset));
        good = array != nullptr;
        if (good) env->SetObjectField(object, id, array);
        env->DeleteLocalRef(array);
        break;
      }
      case FieldKind::kCpus:
        good = WriteCpus(env, object, id, static_cast<const char*>(from) + field.offset);
        break;
    }
  }
  env->DeleteLocalRef(type);
  return good;
}

}  // namespace arn::jni
