#include "platform/os/energy.h"

#include <cstdio>
#include <cstring>
#include <initializer_list>

namespace arn {
namespace {

constexpr uint64_t kNsPerSecond = 1000000000;
// Resolution of counters, independent of the sampling interval.
constexpr double kCounterStepUj = 1e6;
// Resolution of remaining battery charge, in microwatt-hours.
constexpr int64_t kMicrojoulesPerUwh = 3600;
constexpr int64_t kBatteryStepUwh = 1000 * 1000;

constexpr uint32_t kHwmonNumbers = 64;
constexpr uint32_t kMissesInARow = 8;

template <size_t kBytes>
bool Compose(char (&out)[kBytes], const char* folder, const char* name, const char* file) {
  const int n = std::snprintf(out, kBytes, "%s/%s/%s", folder, name, file);
  if (n > 0 && static_cast<size_t>(n) < kBytes) return true;
  out[0] = '\0';
  return false;
}

constexpr char kPowercap[] = "/sys/class/powercap";
constexpr char kHwmon[] = "/sys/class/hwmon";
constexpr char kSupplies[] = "/sys/class/power_supply";

// Meters of other parts: graphics cards, a network port's laser.
bool IsOfAnotherPart(const char* name) {
  for (const char* other : {"amdgpu", "radeon", "nouveau", "i915", "xe", "sfp"}) {
    if (std::strcmp(name, other) == 0) return true;
  }
  return false;
}

}  // namespace

void EnergyMeter::Find(const char* root) {
  *this = EnergyMeter();
  if (std::strlen(root) >= sizeof root_) return;
  std::strcpy(root_, root);
  if (FindRapl() || FindHwmon("energy1_input", EnergySource::kHwmonEnergy) ||
      FindHwmon("power1_input", EnergySource::kHwmonPower) || FindBattery()) {
    return;
  }
  source_ = EnergySource::kNone;
  name_[0] = '\0';
}

void EnergyMeter::AddCounter(const char* path, int64_t range_uj) {
  if (n_counters_ == kMaxCounters) return;
  Counter& counter = counters_[n_counters_++];
  std::strcpy(counter.path, path);
  counter.range_uj = range_uj;
}

// Uses package counters, which include their subdomains. Excludes "psys", which covers the whole
// board.
bool EnergyMeter::FindRapl() {
  for (uint32_t n = 0; n < kMaxCounters; ++n) {
    char zone[24], path[sizeof Counter::path], file[sizeof Counter::path], name[kNameBytes];
    std::snprintf(zone, sizeof zone, "intel-rapl:%u", n);
    if (!Compose(file, kPowercap, zone, "name") ||
        !ReadSystemText(root_, file, name, sizeof name) ||
        std::strncmp(name, "package", std::strlen("package")) != 0) {
      continue;
    }
    int64_t value = 0, range = 0;
    if (!Compose(path, kPowercap, zone, "energy_uj") || !ReadSystemNumber(root_, path, &value) ||
        value < 0) {
      continue;
    }
    if (Compose(file, kPowercap, zone, "max_energy_range_uj") &&
        (!ReadSystemNumber(root_, file, &range) || range < 0)) {
      range = 0;
    }
    if (n_counters_ == 0) std::strcpy(name_, name);
    AddCounter(path, range);
  }
  if (n_counters_ == 0) return false;
  source_ = EnergySource::kRapl;
  return true;
}

bool EnergyMeter::FindHwmon(const char* file, EnergySource source) {
  uint32_t misses = 0;
  for (uint32_t n = 0; n < kHwmonNumbers && misses < kMissesInARow; ++n) {
    char device[16], path[sizeof power_];
    std::snprintf(device, sizeof device, "hwmon%u", n);
    ++misses;
    if (!Compose(path, kHwmon, device, "name") ||
        !ReadSystemText(root_, path, name_, sizeof name_)) {
      continue;
    }
    misses = 0;
    int64_t value = 0;
    if (IsOfAnotherPart(name_) || !Compose(path, kHwmon, device, file) ||
        !ReadSystemNumber(root_, path, &value) || value < 0) {
      continue;
    }
    source_ = source;
    if (source == EnergySource::kHwmonEnergy) {
      AddCounter(path, 0);
    } else {
      std::strcpy(power_, path);
    }
    return true;
  }
  return false;
}

bool EnergyMeter::FindBattery() {
  ListSystemFolder(
      root_, kSupplies,
      [](void* user, const char* name) {
        auto& self = *static_cast<EnergyMeter*>(user);
        char type_file[sizeof power_], type[16];
        if (!Compose(type_file, kSupplies, name, "type") ||
            !ReadSystemText(self.root_, type_file, type, sizeof type) ||
            std::strcmp(type, "Battery") != 0) {
          return true;
        }
        const auto find = [&](char(&path)[sizeof power_], const char* file) {
          int64_t value = 0;
          const bool found =
              Compose(path, kSupplies, name, file) && ReadSystemNumber(self.root_, path, &value);
          if (!found) path[0] = '\0';
          return found;
        };
        if (find(self.power_, "power_now") ||
            (find(self.current_, "current_now") && find(self.voltage_, "voltage_now"))) {
          self.source_ = EnergySource::kBatteryPower;
        } else if (find(self.power_, "energy_now")) {
          self.source_ = EnergySource::kBatteryEnergy;
        } else {
          return true;
        }
        Compose(self.status_, kSupplies, name, "status");
        std::snprintf(self.name_, sizeof self.name_, "%.*s", static_cast<int>(kNameBytes - 1),
                      name);
        return false;
      },
      this);
  return source_ != EnergySource::kNone;
}

void EnergyMeter::Reset() {
  energy_uj_ = counted_ns_ = power_uw_ = 0;
  has_last_ = false;
  for (Counter& counter : counters_) counter.has_last = false;
}

void EnergyMeter::Count(uint64_t microjoules, uint64_t ns) {
  energy_uj_ += microjoules;
  counted_ns_ += ns;
  const double seconds = static_cast<double>(ns) / static_cast<double>(kNsPerSecond);
  power_uw_ = static_cast<uint64_t>(static_cast<double>(microjoules) / seconds);
}

void EnergyMeter::Sample(uint64_t now_ns) {
  if (has_last_ && now_ns <= last_ns_) return;
  switch (source_) {
    case EnergySource::kNone: return;
    case EnergySource::kRapl:
    case EnergySource::kHwmonEnergy: SampleCounters(now_ns); break;
    case EnergySource::kHwmonPower:
    case EnergySource::kBatteryPower: SamplePower(now_ns); break;
    case EnergySource::kBatteryEnergy: SampleBatteryEnergy(now_ns); break;
  }
  last_ns_ = now_ns;
}

void EnergyMeter::SampleCounters(uint64_t now_ns) {
  const uint64_t ns = now_ns - last_ns_;
  const double seconds = static_cast<double>(ns) / static_cast<double>(kNsPerSecond);
  const double most = static_cast<double>(kMaxMicrowatts) * seconds + kCounterStepUj;
  uint64_t sum = 0;
  bool all_counted = has_last_;
  for (uint32_t i = 0; i < n_counters_; ++i) {
    Counter& counter = counters_[i];
    int64_t now = 0;
    const bool is_read = ReadSystemNumber(root_, counter.path, &now) && now >= 0;
    int64_t step = now - counter.last_uj;
    if (step < 0 && counter.range_uj > 0 && counter.last_uj <= counter.range_uj) {
      step += counter.range_uj;
    }
    const bool counts =
        is_read && counter.has_last && step >= 0 && static_cast<double>(step) <= most;
    if (counts) sum += static_cast<uint64_t>(step);
    all_counted = all_counted && counts;
    counter.has_last = is_read;
    counter.last_uj = now;
  }
  if (all_counted) Count(sum, ns);
  has_last_ = true;
}

bool EnergyMeter::ReadPower(int64_t* microwatts) const {
  char status[16];
  // While the battery charges, its power says nothing about the consumption.
  if (status_[0] != '\0' && ReadSystemText(root_, status_, status, sizeof status) &&
      std::strcmp(status, "Discharging") != 0) {
    return false;
  }
  if (power_[0] != '\0') {
    if (!ReadSystemNumber(root_, power_, microwatts)) return false;
  } else {
    int64_t microamperes = 0, microvolts = 0;
    if (!ReadSystemNumber(root_, current_, &microamperes) ||
        !ReadSystemNumber(root_, voltage_, &microvolts) ||
        __builtin_mul_overflow(microamperes, microvolts, microwatts)) {
      return false;
    }
    *microwatts /= 1000000;
  }
  // The sign of a discharging battery differs between drivers.
  if (*microwatts < 0) *microwatts = -*microwatts;
  return *microwatts <= kMaxMicrowatts;
}

void EnergyMeter::SamplePower(uint64_t now_ns) {
  int64_t power = 0;
  if (!ReadPower(&power)) {
    has_last_ = false;
    power_uw_ = 0;
    return;
  }
  const uint64_t ns = now_ns - last_ns_;
  if (has_last_ && ns <= kMaxGapNs) {
    const auto mean = static_cast<double>(last_power_uw_ + power) / 2;
    Count(static_cast<uint64_t>(mean * static_cast<double>(ns) / static_cast<double>(kNsPerSecond)),
          ns);
  }
  power_uw_ = static_cast<uint64_t>(power);
  last_power_uw_ = power;
  has_last_ = true;
}

// Samples remaining charge in microwatt-hours, which falls in coarse steps.
void EnergyMeter::SampleBatteryEnergy(uint64_t now_ns) {
  Counter& left = counters_[0];
  int64_t now = 0;
  char status[16];
  const bool is_charged = ReadSystemText(root_, status_, status, sizeof status) &&
                          std::strcmp(status, "Discharging") != 0;
  if (is_charged || !ReadSystemNumber(root_, power_, &now) || now < 0) {
    has_last_ = false;
    return;
  }
  const int64_t used = left.last_uj - now;
  if (has_last_ && used >= 0 && used <= kBatteryStepUwh) {
    Count(static_cast<uint64_t>(used * kMicrojoulesPerUwh), now_ns - last_ns_);
    power_uw_ = 0;  // steps are too coarse for a power value
  }
  left.last_uj = now;
  has_last_ = true;
}

}  // namespace arn
