// org.arenite.Native: adapters.
#include "bindings/java/arenite-android/src/main/cpp/support.h"

using namespace arn::jni;  // NOLINT(google-build-using-namespace): the methods below are C

namespace {

constexpr size_t kAdapterKeyBytes = 32;

}  // namespace

ARN_JNI(jlong, openAdapter)
(JNIEnv* env, jclass, jlong model, jbyteArray path, jbyteArray public_key) {
  InBytes name, key;
  if (!name.Read(env, path) || !key.Read(env, public_key)) return 0;
  arn_adapter_options options = ARN_ADAPTER_OPTIONS_INIT;
  if (public_key != nullptr) {
    if (key.size() != kAdapterKeyBytes) {
      Throw(env, ARN_BAD_ARGUMENT, "the public key must have 32 bytes");
      return 0;
    }
    options.public_key = reinterpret_cast<const uint8_t*>(key.data());
  }
  Error error;
  arn_adapter* adapter = nullptr;
  error.Check(env, arn_adapter_open(ToModel(model), name.data(), &options, error.text,
                                    sizeof error.text, &adapter));
  return ToHandle(adapter);
}

ARN_JNI(void, closeAdapter)(JNIEnv*, jclass, jlong adapter) {
  arn_adapter_close(ToAdapter(adapter));
}

ARN_JNI(void, setAdapters)
(JNIEnv* env, jclass, jlong session, jintArray indices, jfloatArray scales) {
  InInts in;
  InFloats factors;
  if (!in.Read(env, indices) || !factors.Read(env, scales)) return;
  static_assert(sizeof(int32_t) == sizeof(uint32_t));
  Check(env, ToSession(session),
        arn_session_set_adapters(ToSession(session), reinterpret_cast<const uint32_t*>(in.data()),
                                 factors.data(), in.size()));
}
