// How warm the device is: the kernel's thermal zones, and Android's thermal headroom.
#pragma once

#include <cstdint>

#include "platform/os/system_file.h"

namespace arn {

inline constexpr int32_t kNoTemperature = INT32_MIN;

// The zones under /sys/class/thermal. Allocates nothing.
class ThermalZones {
 public:
  static constexpr uint32_t kMaxZones = 48;
  static constexpr size_t kNameBytes = 24;

  // Looks for zones whose type contains `part` (null: all). Of more than kMaxZones the first stay.
  // root: before /sys, at most kMaxSystemRoot with its NUL (else none is found).
  void Find(const char* root, const char* part);
  uint32_t count() const { return count_; }
  // The zone's type, cut to kNameBytes - 1 bytes.
  const char* name(uint32_t zone) const { return zones_[zone].name; }
  // Thousandths of a degree Celsius, or kNoTemperature: the file cannot be read (any more), or says
  // what no device has: less than -40, more than 200 degrees, or 0 within a degree, which is what
  // dead sensors and those in whole degrees say.
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

// Android's forecast of how far the device is from being throttled severely: 1 is there, 0 far
// away (API 31). Looked for in a shared library when it is opened.
class ThermalHeadroom {
 public:
  // What Android calls its library; null elsewhere.
  static const char* SystemLibrary();
  // False, and nothing to close, when there is no such library or it has no headroom.
  bool Open(const char* library);
  void Close();
  bool is_open() const { return library_ != nullptr; }
  // NaN when it is not known. To be asked no more than once a second.
  float Read() const;

 private:
  void* library_ = nullptr;
  void* manager_ = nullptr;
  float (*read_)(void* manager, int seconds) = nullptr;
  void (*release_)(void* manager) = nullptr;
};

}  // namespace arn
