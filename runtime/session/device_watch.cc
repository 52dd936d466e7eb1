#include "runtime/session/device_watch.h"

namespace arn {
namespace {

// Returns true and updates *last_ns if the last reading is every_ns old.
bool IsDue(uint64_t now_ns, uint64_t every_ns, uint64_t* last_ns) {
  if (*last_ns != 0 && now_ns - *last_ns < every_ns) return false;
  *last_ns = now_ns;
  return true;
}

}  // namespace

Status DeviceWatch::Open(const char* root, const char* zone, const PaceOptions& pace, Diag* diag) {
  is_open_ = true;
  zones_.Find(root, zone);
  energy_.Find(root);
  headroom_.Open(ThermalHeadroom::SystemLibrary());
  Status status = Status::kOk;
  if (pace.thermal_limit_mc != 0 && Hottest(1).millicelsius == kNoTemperature) {
    status = diag->Fail(Status::kUnsupported,
                        "thermal_limit_mc: of the %u thermal zones %s%s%snone can be read",
                        zones_.count(), zone == nullptr ? "" : "with '",
                        zone == nullptr ? "" : zone, zone == nullptr ? "" : "' ");
  } else if (pace.thermal_headroom > 0 && !headroom_.is_open()) {
    status =
        diag->Fail(Status::kUnsupported,
                   "thermal_headroom: not available on this system (Android has it since API 31)");
  }
  hottest_ns_ = 0;
  if (status != Status::kOk) Close();
  return status;
}

void DeviceWatch::Close() {
  headroom_.Close();
  is_open_ = false;
}

void DeviceWatch::Sample(uint64_t now_ns) {
  if (is_open_ && IsDue(now_ns, kSampleNs, &energy_ns_)) energy_.Sample(now_ns);
}

void DeviceWatch::ResetEnergy(uint64_t now_ns) {
  energy_.Reset();
  energy_ns_ = 0;
  Sample(now_ns);
}

DeviceWatch::Temperature DeviceWatch::Hottest(uint64_t now_ns) {
  if (!IsDue(now_ns, kSampleNs, &hottest_ns_)) return hottest_;
  hottest_ = Temperature();
  for (uint32_t i = 0; i < zones_.count(); ++i) {
    const int32_t millicelsius = zones_.Read(i);
    if (millicelsius > hottest_.millicelsius) hottest_ = {millicelsius, i};
  }
  return hottest_;
}

float DeviceWatch::Headroom(uint64_t now_ns) {
  if (!headroom_.is_open()) return -1;
  if (IsDue(now_ns, kHeadroomNs, &headroom_ns_)) {
    const float headroom = headroom_.Read();
    last_headroom_ = headroom >= 0 ? headroom : -1;
  }
  return last_headroom_;
}

}  // namespace arn
