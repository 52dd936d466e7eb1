// org.arenite.Native: inspection of a session's KV cache, its backend and counters, and the
// machine.
#include "bindings/java/arenite-android/src/main/cpp/struct_fields.h"
#include "bindings/java/arenite-android/src/main/cpp/support.h"

using namespace arn::jni;  // NOLINT(google-build-using-namespace): the methods below are C

ARN_JNI(void, kvLayer)(JNIEnv* env, jclass, jlong session, jint layer, jobject out) {
  if (!IsNumber(env, layer, "the layer is negative")) return;
  arn_kv_layer_info info = ARN_KV_LAYER_INFO_INIT;
  if (Check(env, ToSession(session),
            arn_session_kv_layer(ToSession(session), static_cast<uint32_t>(layer), &info))) {
    WriteFields(env, &info, kKvLayerFields, out);
  }
}

ARN_JNI(jfloatArray, readKv)
(JNIEnv* env, jclass, jlong session, jint layer, jint first, jint n, jboolean keys) {
  if (!IsNumber(env, layer, "the layer is negative") ||
      !IsNumber(env, first, "the first position is negative") ||
      !IsNumber(env, n, "the number of tokens is negative")) {
    return nullptr;
  }
  arn_session* const s = ToSession(session);
  arn_kv_layer_info info = ARN_KV_LAYER_INFO_INIT;
  if (!Check(env, s, arn_session_kv_layer(s, static_cast<uint32_t>(layer), &info))) return nullptr;
  // Limits the buffer to the sequence's length; the call below refuses positions beyond it.
  const uint32_t most = arn_session_length(s);
  const size_t rows = static_cast<uint32_t>(n) < most ? static_cast<uint32_t>(n) : most;
  Buffer<float> values;
  if (!values.Allocate(env, rows * info.n_kv_heads * info.head_dim)) return nullptr;
  float* const read = values.data();
  const bool is_keys = keys == JNI_TRUE;
  if (!Check(env, s,
             arn_session_read_kv(s, static_cast<uint32_t>(layer), static_cast<uint32_t>(first),
                                 static_cast<uint32_t>(n), is_keys ? read : nullptr,
                                 is_keys ? nullptr : read))) {
    return nullptr;
  }
  return NewFloats(env, read, values.size());
}

ARN_JNI(void, backend)(JNIEnv* env, jclass, jlong session, jobject out) {
  arn_backend_info info = ARN_BACKEND_INFO_INIT;
  if (Check(env, ToSession(session), arn_session_backend(ToSession(session), &info))) {
    WriteFields(env, &info, kBackendInfoFields, out);
  }
}

ARN_JNI(void, cpus)(JNIEnv* env, jclass, jlong session, jobject out) {
  arn_session_cpus_data cpus = ARN_SESSION_CPUS_INIT;
  if (Check(env, ToSession(session), arn_session_cpus(ToSession(session), &cpus))) {
    WriteFields(env, &cpus, kSessionCpusFields, out);
  }
}

ARN_JNI(void, thermalZone)(JNIEnv* env, jclass, jlong session, jint index, jobject out) {
  arn_thermal_zone zone = ARN_THERMAL_ZONE_INIT;
  if (Check(env, ToSession(session),
            arn_session_thermal_zone(ToSession(session), static_cast<uint32_t>(index), &zone))) {
    WriteFields(env, &zone, kThermalZoneFields, out);
  }
}

// Returns false if there is no such cluster or an exception is pending.
ARN_JNI(jboolean, cpuCluster)(JNIEnv* env, jclass, jint index, jobject out) {
  arn_cpu_cluster cluster = ARN_CPU_CLUSTER_INIT;
  const arn_status status = arn_cpu_cluster_at(nullptr, static_cast<uint32_t>(index), &cluster);
  if (status == ARN_NOT_FOUND || !Check(env, status)) return JNI_FALSE;
  return WriteFields(env, &cluster, kCpuClusterFields, out) ? JNI_TRUE : JNI_FALSE;
}

// ---- counters -----------------------------------------------------------------------------------

ARN_JNI(void, stats)(JNIEnv* env, jclass, jlong session, jobject out) {
  arn_session_stats_data stats = ARN_SESSION_STATS_INIT;
  if (Check(env, ToSession(session), arn_session_stats(ToSession(session), &stats))) {
    WriteFields(env, &stats, kStatsFields, out);
  }
}

ARN_JNI(void, resetStats)(JNIEnv* env, jclass, jlong session) {
  Check(env, ToSession(session), arn_session_reset_stats(ToSession(session)));
}
