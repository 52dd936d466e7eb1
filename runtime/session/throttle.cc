#include "runtime/session/throttle.h"

#include "platform/os/clock.h"

namespace arn {

Status Throttle::Open(const SessionOptions& options, Diag* diag) {
  const PaceOptions& pace = options.pace;
  Pacer::World world;
  world.user = &watch_;
  world.now_ns = [](void*) { return MonotonicNs(); };
  world.sleep_ns = [](void*, uint64_t ns) { SleepNs(ns); };
  world.thermal = [](void* user) {
    DeviceWatch& watch = *static_cast<DeviceWatch*>(user);
    const uint64_t now = MonotonicNs();
    return ThermalState{watch.Hottest(now).millicelsius, watch.Headroom(now)};
  };
  pacer_.Init(pace, world);
  if (!options.sensors && pace.thermal_limit_mc == 0 && pace.thermal_headroom == 0) {
    return Status::kOk;
  }
  const char* root = options.system_root == nullptr ? "" : options.system_root;
  ARN_TRY(watch_.Open(root, options.thermal_zone, pace, diag));
  watch_.Sample(MonotonicNs());
  return Status::kOk;
}

Status Throttle::Begin(Span<const SessionPart> parts, const std::atomic<uint32_t>& cancel) {
  if (!is_on()) return Status::kOk;
  // A part with more than one token is a prompt chunk.
  uint32_t n_decoded = 0;
  for (const SessionPart& part : parts) {
    if (part.ids.size() == 1) ++n_decoded;
  }
  return pacer_.Begin(n_decoded, cancel);
}

void Throttle::End() {
  pacer_.End();
  SampleEnergy();
}

void Throttle::SampleEnergy() const {
  if (watch_.is_open()) watch_.Sample(MonotonicNs());
}

void Throttle::ResetStats() {
  pacer_.ResetStats();
  watch_.ResetEnergy(MonotonicNs());
}

DeviceWatch& Throttle::ReadWatch() const {
  watch_.Sample(MonotonicNs());
  return watch_;
}

}  // namespace arn
