// What the device takes from its supply, where a counter or a meter says so.
#pragma once

#include <cstdint>

#include "platform/os/system_file.h"

namespace arn {

enum class EnergySource : uint32_t {
  kNone = 0,
  kRapl = 1,           // counters of the CPU packages (powercap)
  kHwmonEnergy = 2,    // a counter on the board
  kHwmonPower = 3,     // a power meter on the board
  kBatteryPower = 4,   // a battery's power, or its current times its voltage
  kBatteryEnergy = 5,  // what is left in a battery
};

// Adds up energy from one Sample() to the next. A counter misses nothing in between; a power is
// taken to run straight from one sample to the next, and what lies further apart than kMaxGapNs is
// not counted. Neither is what cannot be: a counter that jumped by more than kMaxMicrowatts allow,
// a battery that is being charged.
class EnergyMeter {
 public:
  static constexpr uint64_t kMaxGapNs = 2 * uint64_t{1000000000};
  static constexpr int64_t kMaxMicrowatts = int64_t{1000} * 1000 * 1000;
  static constexpr size_t kNameBytes = 32;

  // Chooses the first source that can be read, in the order of EnergySource. root: before /sys, at
  // most kMaxSystemRoot with its NUL (else there is none). Allocates while it runs.
  void Find(const char* root);
  EnergySource source() const { return source_; }
  // The source's own name: "package-0", "ina226", "BAT0"; "" without one.
  const char* name() const { return name_; }

  // `now_ns`: of MonotonicNs(), or a test's. Allocates nothing.
  void Sample(uint64_t now_ns);
  // Begins at zero, at the next sample.
  void Reset();
  uint64_t microjoules() const { return energy_uj_; }
  // Of the time that was counted; less than what has passed when samples failed.
  uint64_t counted_ns() const { return counted_ns_; }
  // The last power in microwatts, measured or from the last two samples; 0: not known.
  uint64_t microwatts() const { return power_uw_; }

 private:
  static constexpr uint32_t kMaxCounters = 8;
  struct Counter {
    char path[72] = {};
    int64_t range_uj = 0;  // begins at 0 again there; 0: does not
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
  char power_[72] = {};    // a file of microwatts; "" when it is the product of the next two
  char current_[72] = {};  // microamperes
  char voltage_[72] = {};  // microvolts
  char status_[72] = {};   // of a battery
  uint64_t energy_uj_ = 0, counted_ns_ = 0, power_uw_ = 0;
  uint64_t last_ns_ = 0;
  int64_t last_power_uw_ = 0;
  bool has_last_ = false;
};

}  // namespace arn
