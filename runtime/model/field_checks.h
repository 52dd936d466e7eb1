// Range checks for numbers in a bundle. Errors name the field.
#pragma once

#include <cinttypes>
#include <cmath>
#include <cstdint>

#include "platform/base/diag.h"
#include "platform/base/status.h"

namespace arn {

inline constexpr uint32_t kMaxContext = 1u << 24;
inline constexpr float kMaxRopeFactor = 1024.0f;

inline Status CheckRange(const char* field, uint64_t value, uint64_t low, uint64_t high,
                         Diag* diag) {
  if (value >= low && value <= high) return Status::kOk;
  return diag->Fail(Status::kBadBundle, "model.%s is %" PRIu64 ", expected %" PRIu64 "..%" PRIu64,
                    field, value, low, high);
}

inline Status CheckFinite(const char* field, float value, Diag* diag) {
  if (std::isfinite(value)) return Status::kOk;
  return diag->Fail(Status::kBadBundle, "model.%s is not a finite number", field);
}

inline Status CheckFloatRange(const char* field, float value, float low, float high, Diag* diag) {
  if (value >= low && value <= high) return Status::kOk;
  return diag->Fail(Status::kBadBundle, "model.%s is %g, expected %g..%g", field,
                    static_cast<double>(value), static_cast<double>(low),
                    static_cast<double>(high));
}

inline Status CheckEpsilon(const char* field, float value, Diag* diag) {
  return CheckFloatRange(field, value, 0.0f, 1.0f, diag);
}

inline Status CheckSoftcap(const char* field, float value, Diag* diag) {
  if (std::isfinite(value) && value >= 0.0f) return Status::kOk;
  return diag->Fail(Status::kBadBundle, "model.%s is %g, expected 0 or a positive number", field,
                    static_cast<double>(value));
}

}  // namespace arn
