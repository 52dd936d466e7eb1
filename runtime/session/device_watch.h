// DeviceWatch: reads temperature and energy sensors of the device for a session.
#pragma once

#include <cstdint>

#include "platform/base/diag.h"
#include "platform/os/energy.h"
#include "platform/os/thermal.h"
#include "runtime/session/pacer.h"

namespace arn {

class DeviceWatch {
 public:
  struct Temperature {
    int32_t millicelsius = kNoTemperature;
    uint32_t zone = 0;  // index into zones()
  };

  // Finds the sensors. `root` is prepended to /sys. Uses only thermal zones whose type contains
  // `zone` (null: all). kUnsupported, with the reason, if a limit is set on a sensor that cannot be
  // read. Allocates.
  Status Open(const char* root, const char* zone, const PaceOptions& pace, Diag* diag);
  void Close();
  bool is_open() const { return is_open_; }

  // Reads the energy counter if the last reading is kSampleNs old. Call between runs and before
  // reading the meter.
  void Sample(uint64_t now_ns);
  // Restarts the energy count.
  void ResetEnergy(uint64_t now_ns);
  const EnergyMeter& energy() const { return energy_; }
  const ThermalZones& zones() const { return zones_; }
  // Returns the hottest readable zone. Cached for kSampleNs.
  Temperature Hottest(uint64_t now_ns);
  // Returns Android's thermal headroom; negative if unknown. Queried at most once per second.
  float Headroom(uint64_t now_ns);
  bool has_headroom() const { return headroom_.is_open(); }

  static constexpr uint64_t kSampleNs = 100 * 1000 * 1000;

 private:
  static constexpr uint64_t kHeadroomNs = 1100 * 1000 * 1000;

  bool is_open_ = false;
  EnergyMeter energy_;
  ThermalZones zones_;
  ThermalHeadroom headroom_;
  Temperature hottest_;
  float last_headroom_ = -1;
  // Times of the last readings; 0: never.
  uint64_t energy_ns_ = 0, hottest_ns_ = 0, headroom_ns_ = 0;
};

}  // namespace arn
