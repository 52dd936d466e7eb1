// Reads the energy that the device takes from its supply, where a counter or meter exists.
#pragma once

#include <cstdint>

#include "platform/os/system_file.h"

namespace arn {

enum class EnergySource : uint32_t {
  kNone = 0,
  kRapl = 1,           // CPU package counters (powercap)
  kHwmonEnergy = 2,    // counter on the board
  kHwmonPower = 3,     // power meter on the board
  kBatteryPower = 4,   // power of a battery, or its current times its voltage
  kBatteryEnergy = 5,  // remaining charge of a battery
};

// Adds up energy between Sample() calls. Counters miss nothing in between; power is integrated by
// the trapezoidal rule, except over gaps longer than kMaxGapNs. Implausible samples are not
// counted: a counter that jumps by more than kMaxMicrowatts allows, or a battery that is charging.
class EnergyMeter {
 public:
  static constexpr uint64_t kMaxGapNs = 2 * uint64_t{1000000000};
  static constexpr int64_t kMaxMicrowatts = int64_t{1000} * 1000 * 1000;
  static constexpr size_t kNameBytes = 32;

  // Selects the first readable source in the order of EnergySource. root: prepended to /sys, at
  // most kMaxSystemRoot including NUL (else no source). Allocates during the call.
  void Find(const char* root);
  EnergySource source() const { return source_; }
  // Returns the source's own name: "package-0", "ina226", "BAT0"; "" without one.
  const char* name() const { return name_; }

  // now_ns: MonotonicNs(), or a test's clock. Does not allocate.
  void Sample(uint64_t now_ns);
  // Restarts at zero with the next sample.
  void Reset();
  uint64_t microjoules() const { return energy_uj_; }
  // Returns the time covered by the energy count; less than elapsed if samples failed.
  uint64_t counted_ns() const { return counted_ns_; }
  // Returns the last power in microwatts, measured or from the last two samples; 0: unknown.
  uint64_t microwatts() const { return power_uw_; }

 private:
  static constexpr uint32_t kMaxCounters = 8;
  struct Counter {
    char path[72] = {};
    int64_t range_uj = 0;  // counter wraps around here; 0: does not wrap
    int64_t last_uj = 0;
    bool has_last = false;
  };

  bool FindRapl();
  bool FindHwmon(const char* file, EnergySource source);
  bool FindBattery();
  void AddCounter(const char* path, int64_t range_uj);
  void SampleCounters(uint64_t now_ns);
  bool ReadPower(int64_t* microwatts) const;
  void SamplePower(uint64_t now_ns);
  void SampleBatteryEnergy(uint64_t now_ns);
  void Count(uint64_t microjoules, uint64_t ns);

  char root_[kMaxSystemRoot] = {};
  EnergySource source_ = EnergySource::kNone;
  char name_[kNameBytes] = {};
  Counter counters_[kMaxCounters];
  uint32_t n_counters_ = 0;
  char power_[72] = {};    // file in microwatts; "": use current * voltage
  char current_[72] = {};  // microamperes
  char voltage_[72] = {};  // microvolts
  char status_[72] = {};   // battery status
  uint64_t energy_uj_ = 0, counted_ns_ = 0, power_uw_ = 0;
  uint64_t last_ns_ = 0;
  int64_t last_power_uw_ = 0;
  bool has_last_ = false;
};

}  // namespace arn
