// Device temperature: the kernel's thermal zones and Android's thermal headroom.
#pragma once

#include <cstdint>

#include "platform/os/system_file.h"

namespace arn {

inline constexpr int32_t kNoTemperature = INT32_MIN;

// Zones under /sys/class/thermal. Does not allocate.
class ThermalZones {
 public:
  static constexpr uint32_t kMaxZones = 48;
  static constexpr size_t kNameBytes = 24;

  // Finds zones whose type contains `part` (null: all), at most the first kMaxZones. root:
  // prepended to /sys, at most kMaxSystemRoot including NUL (else none is found).
  void Find(const char* root, const char* part);
  uint32_t count() const { return count_; }
  // Returns the zone's type, cut to kNameBytes - 1 bytes.
  const char* name(uint32_t zone) const { return zones_[zone].name; }
  // Returns millidegrees Celsius, or kNoTemperature if the file cannot be read or the value is
  // implausible: below -40, above 200 degrees, or within 1 degree of 0, which dead sensors and
  // sensors with whole-degree resolution report.
  int32_t Read(uint32_t zone) const;

 private:
  struct Zone {
    uint16_t number = 0;
    char name[kNameBytes] = {};
  };
  Zone zones_[kMaxZones];
  uint32_t count_ = 0;
  char root_[kMaxSystemRoot] = {};
};

// Android's forecast of thermal headroom: 1 means severe throttling, 0 cool (API 31). Loaded from a
// shared library.
class ThermalHeadroom {
 public:
  // Returns the name of Android's library; null on other systems.
  static const char* SystemLibrary();
  // Returns false if there is no such library or it lacks the function; then Close() is not needed.
  bool Open(const char* library);
  void Close();
  bool is_open() const { return library_ != nullptr; }
  // Returns NaN if unknown. Call at most once per second.
  float Read() const;

 private:
  void* library_ = nullptr;
  void* manager_ = nullptr;
  float (*read_)(void* manager, int seconds) = nullptr;
  void (*release_)(void* manager) = nullptr;
};

}  // namespace arn
