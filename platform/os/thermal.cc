#include "platform/os/thermal.h"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

#include "platform/os/dynamic_library.h"

namespace arn {
namespace {

// Zone numbers may have gaps.
constexpr uint32_t kZoneNumbers = 256;
constexpr uint32_t kMissesInARow = 16;

constexpr int64_t kColdest = -40 * 1000;
constexpr int64_t kHottest = 200 * 1000;
constexpr int64_t kDegree = 1000;

}  // namespace

void ThermalZones::Find(const char* root, const char* part) {
  count_ = 0;
  if (std::strlen(root) >= sizeof root_) return;
  std::strcpy(root_, root);
  uint32_t misses = 0;
  for (uint32_t n = 0; n < kZoneNumbers && misses < kMissesInARow && count_ < kMaxZones; ++n) {
    char path[kMaxSystemPath];
    std::snprintf(path, sizeof path, "/sys/class/thermal/thermal_zone%u/type", n);
    char type[64];
    ++misses;
    if (!ReadSystemText(root_, path, type, sizeof type)) continue;
    misses = 0;
    if (part != nullptr && std::strstr(type, part) == nullptr) continue;
    Zone& zone = zones_[count_++];
    zone.number = static_cast<uint16_t>(n);
    std::snprintf(zone.name, sizeof zone.name, "%.*s", static_cast<int>(kNameBytes - 1), type);
  }
}

int32_t ThermalZones::Read(uint32_t zone) const {
  char path[kMaxSystemPath];
  std::snprintf(path, sizeof path, "/sys/class/thermal/thermal_zone%u/temp", zones_[zone].number);
  int64_t value = 0;
  if (!ReadSystemNumber(root_, path, &value)) return kNoTemperature;
  if (value < kColdest || value > kHottest) return kNoTemperature;
  if (value > -kDegree && value < kDegree) return kNoTemperature;
  return static_cast<int32_t>(value);
}

const char* ThermalHeadroom::SystemLibrary() {
#if defined(__ANDROID__)
  return "libandroid.so";
#else
  return nullptr;
#endif
}

bool ThermalHeadroom::Open(const char* library) {
  Close();
  if (library == nullptr) return false;
  library_ = OpenLibrary(library);
  if (library_ == nullptr) return false;
  const auto acquire =
      reinterpret_cast<void* (*)()>(FindSymbol(library_, "AThermal_acquireManager"));
  release_ = reinterpret_cast<void (*)(void*)>(FindSymbol(library_, "AThermal_releaseManager"));
  read_ =
      reinterpret_cast<float (*)(void*, int)>(FindSymbol(library_, "AThermal_getThermalHeadroom"));
  if (acquire != nullptr && release_ != nullptr && read_ != nullptr) manager_ = acquire();
  if (manager_ != nullptr) return true;
  Close();
  return false;
}

void ThermalHeadroom::Close() {
  if (manager_ != nullptr) release_(manager_);
  CloseLibrary(library_);
  *this = ThermalHeadroom();
}

float ThermalHeadroom::Read() const {
  constexpr float kUnknown = std::numeric_limits<float>::quiet_NaN();
  if (manager_ == nullptr) return kUnknown;
  const float headroom = read_(manager_, 0);
  return headroom >= 0 && std::isfinite(headroom) ? headroom : kUnknown;
}

}  // namespace arn
