// Implements arenite/device.h.
#include <cstring>

#include "platform/os/clock.h"
#include "runtime/api/handles.h"

using namespace arn;       // NOLINT(google-build-using-namespace): the entry points below are C
using namespace arn::api;  // NOLINT(google-build-using-namespace)

namespace arn::api {
namespace {

static_assert(ARN_CPU_WORDS == CpuMask::kWords);
static_assert(ARN_NO_TEMPERATURE == kNoTemperature);
static_assert(sizeof(arn_thermal_zone::name) == ThermalZones::kNameBytes);

void CopyCpus(const CpuMask& cpus, uint64_t (&out)[ARN_CPU_WORDS]) {
  for (uint32_t i = 0; i < CpuMask::kWords; ++i) out[i] = cpus.word(i);
}

}  // namespace
}  // namespace arn::api

extern "C" {

arn_status arn_cpu_cluster_at(const char* system_root, uint32_t index,
                              arn_cpu_cluster* out_cluster) {
  if (out_cluster == nullptr) return ARN_BAD_ARGUMENT;
  const char* root = system_root == nullptr ? "" : system_root;
  CpuCluster clusters[kMaxCpuClusters];
  if (index >= ReadCpuClusters(root, ReadTopology(root), clusters)) return ARN_NOT_FOUND;
  const CpuCluster& cluster = clusters[index];
  arn_cpu_cluster out = ARN_CPU_CLUSTER_INIT;
  CopyCpus(cluster.cpus, out.cpus);
  out.n_cpus = cluster.cpus.count();
  out.capacity = cluster.capacity;
  out.max_khz = cluster.max_khz;
  out.is_performance = cluster.is_performance ? 1 : 0;
  return ToC(WriteStruct(out, out_cluster));
}

arn_status arn_session_cpus(const arn_session* session, arn_session_cpus_data* out_cpus) {
  if (session == nullptr) return ARN_BAD_ARGUMENT;
  const Session& s = *ToSession(session);
  const ThreadCpus now = s.executor().ReadCpus();
  arn_session_cpus_data out = ARN_SESSION_CPUS_INIT;
  if (s.plan().keeps_cpus) CopyCpus(s.plan().cpus, out.wanted);
  CopyCpus(now.cpus, out.applied);
  out.n_threads = now.n_threads;
  const bool is_kept = now.are_alike && now.cpus == s.plan().cpus;
  out.is_as_wanted = !s.plan().keeps_cpus || is_kept ? 1 : 0;
  return ToC(WriteStruct(out, out_cpus));
}

arn_status arn_session_thermal_zone(const arn_session* session, uint32_t index,
                                    arn_thermal_zone* out_zone) {
  if (session == nullptr || out_zone == nullptr) return ARN_BAD_ARGUMENT;
  const DeviceWatch& watch = ToSession(session)->throttle().ReadWatch();
  if (!watch.is_open() || index >= watch.zones().count()) return ARN_NOT_FOUND;
  arn_thermal_zone out = ARN_THERMAL_ZONE_INIT;
  out.millicelsius = watch.zones().Read(index);
  std::memcpy(out.name, watch.zones().name(index), sizeof out.name);
  return ToC(WriteStruct(out, out_zone));
}

}  // extern "C"
