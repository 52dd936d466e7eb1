#include "bindings/java/arenite-android/src/main/cpp/support.h"

#include <cstdio>
#include <cstring>

namespace arn::jni {

void ThrowOutOfMemory(JNIEnv* env) {
  if (env->ExceptionCheck()) return;
  const jclass type = env->FindClass("java/lang/OutOfMemoryError");
  if (type == nullptr) return;
  env->ThrowNew(type, "native memory");
  env->DeleteLocalRef(type);
}

// Passes the message as bytes: ThrowNew expects modified UTF-8, and an error may quote any text.
void Throw(JNIEnv* env, arn_status status, const char* message) {
  if (env->ExceptionCheck()) return;
  const jclass type = env->FindClass("org/arenite/AreniteException");
  if (type == nullptr) return;
  const jmethodID make = env->GetMethodID(type, "<init>", "(I[B)V");
  const jbyteArray text = make == nullptr ? nullptr : NewBytes(env, message, std::strlen(message));
  if (text != nullptr) {
    const jobject exception = env->NewObject(type, make, static_cast<jint>(status), text);
    if (!env->ExceptionCheck()) env->Throw(static_cast<jthrowable>(exception));
    env->DeleteLocalRef(exception);
    env->DeleteLocalRef(text);
  }
  env->DeleteLocalRef(type);
}

bool IsGiven(JNIEnv* env, jobject object, const char* what) {
  if (object != nullptr || env->ExceptionCheck()) return object != nullptr;
  const jclass type = env->FindClass("java/lang/NullPointerException");
  if (type == nullptr) return false;
  env->ThrowNew(type, what);
  env->DeleteLocalRef(type);
  return false;
}

bool IsNumber(JNIEnv* env, jint value, const char* what) {
  if (value < 0) Throw(env, ARN_BAD_ARGUMENT, what);
  return value >= 0;
}

bool Check(JNIEnv* env, arn_status status) {
  if (status != ARN_OK) Throw(env, status, arn_status_name(status));
  return status == ARN_OK;
}

bool Check(JNIEnv* env, const arn_session* session, arn_status status) {
  return status == ARN_OK || Check(env, arn_session_last_error(session), status);
}

bool Check(JNIEnv* env, const char* reason, arn_status status) {
  if (status != ARN_OK) Throw(env, status, reason[0] != '\0' ? reason : arn_status_name(status));
  return status == ARN_OK;
}

bool InBytes::Read(JNIEnv* env, jbyteArray array) {
  if (array == nullptr) return true;
  const jsize n = env->GetArrayLength(array);
  if (!Allocate(env, static_cast<size_t>(n))) return false;
  env->GetByteArrayRegion(array, 0, n, reinterpret_cast<jbyte*>(data()));
  return !env->ExceptionCheck();
}

bool InInts::Read(JNIEnv* env, jintArray array) {
  const jsize n = array == nullptr ? 0 : env->GetArrayLength(array);
  if (!Allocate(env, static_cast<size_t>(n))) return false;
  if (n > 0) env->GetIntArrayRegion(array, 0, n, reinterpret_cast<jint*>(data()));
  return !env->ExceptionCheck();
}

bool InFloats::Read(JNIEnv* env, jfloatArray array) {
  const jsize n = array == nullptr ? 0 : env->GetArrayLength(array);
  if (!Allocate(env, static_cast<size_t>(n))) return false;
  if (n > 0) env->GetFloatArrayRegion(array, 0, n, data());
  return !env->ExceptionCheck();
}

namespace {

bool IsArrayLength(JNIEnv* env, size_t n) {
  if (n <= INT32_MAX) return true;
  ThrowOutOfMemory(env);
  return false;
}

}  // namespace

jbyteArray NewBytes(JNIEnv* env, const void* data, size_t n) {
  if (!IsArrayLength(env, n)) return nullptr;
  const jbyteArray made = env->NewByteArray(static_cast<jsize>(n));
  if (made == nullptr || n == 0) return made;
  env->SetByteArrayRegion(made, 0, static_cast<jsize>(n), static_cast<const jbyte*>(data));
  return env->ExceptionCheck() ? nullptr : made;
}

jintArray NewInts(JNIEnv* env, const void* data, size_t n) {
  if (!IsArrayLength(env, n)) return nullptr;
  const jintArray made = env->NewIntArray(static_cast<jsize>(n));
  if (made == nullptr || n == 0) return made;
  env->SetIntArrayRegion(made, 0, static_cast<jsize>(n), static_cast<const jint*>(data));
  return env->ExceptionCheck() ? nullptr : made;
}

jfloatArray NewFloats(JNIEnv* env, const float* data, size_t n) {
  if (!IsArrayLength(env, n)) return nullptr;
  const jfloatArray made = env->NewFloatArray(static_cast<jsize>(n));
  if (made == nullptr || n == 0) return made;
  env->SetFloatArrayRegion(made, 0, static_cast<jsize>(n), data);
  return env->ExceptionCheck() ? nullptr : made;
}

jobject NewEnum(JNIEnv* env, const char* type, jint number) {
  char name[64] = "";       // of the class: the signature without L and ;
  char signature[96] = "";  // of its method
  std::snprintf(name, sizeof name, "%.*s", static_cast<int>(std::strlen(type)) - 2, type + 1);
  std::snprintf(signature, sizeof signature, "(I)%s", type);
  const jclass found = env->FindClass(name);
  const jmethodID of = found == nullptr ? nullptr : env->GetStaticMethodID(found, "of", signature);
  const jobject value = of == nullptr ? nullptr : env->CallStaticObjectMethod(found, of, number);
  env->DeleteLocalRef(found);
  return env->ExceptionCheck() ? nullptr : value;
}

jstring NewText(JNIEnv* env, const char* data, size_t n) {
  const jclass native = env->FindClass("org/arenite/Native");
  if (native == nullptr) return nullptr;
  const jmethodID decode = env->GetStaticMethodID(native, "text", "([B)Ljava/lang/String;");
  const jbyteArray bytes = decode == nullptr ? nullptr : NewBytes(env, data, n);
  jobject string = nullptr;
  if (bytes != nullptr) {
    string = env->CallStaticObjectMethod(native, decode, bytes);
    env->DeleteLocalRef(bytes);
  }
  env->DeleteLocalRef(native);
  return env->ExceptionCheck() ? nullptr : static_cast<jstring>(string);
}

}  // namespace arn::jni
