// DeviceWatch: what a session can say of the device that it runs on: heat and energy.
#pragma once

#include <cstdint>

#include "platform/base/diag.h"
#include "platform/os/energy.h"
#include "platform/os/heat.h"
#include "runtime/session/pacer.h"

namespace arn {

class DeviceWatch {
 public:
  struct Temperature {
    int32_t millicelsius = kNoTemperature;
    uint32_t zone = 0;  // of zones()
  };

  // Looks for what there is. `root` before /sys; zones whose type contains `zone` (null: all).
  // kUnsupported, with the reason, when a limit is set on what cannot be read. Allocates.
  Status Open(const char* root, const char* zone, const PaceOptions& pace, Diag* diag);
  void Close();
  bool is_open() const { return is_open_; }

  // Between two runs, and before a look: reads the energy if it has not been read for kSampleNs.
  void Sample(uint64_t now_ns);
  // Counts from now on.
  void ResetEnergy(uint64_t now_ns);
  const EnergyMeter& energy() const { return energy_; }
  const ThermalZones& zones() const { return zones_; }
  // Of the zones that can be read now the hottest. Read anew when the last time is kSampleNs ago.
  Temperature Hottest(uint64_t now_ns);
  // Less than 0: not known. Android is asked once a second at most.
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
  // When something was read last; 0: never.
  uint64_t energy_ns_ = 0, hottest_ns_ = 0, headroom_ns_ = 0;
};

}  // namespace arn
