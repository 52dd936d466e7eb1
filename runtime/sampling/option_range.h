// OptionRange: the values that a scalar of options.def may have. For the runtime's checks and the
// converter's.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>

namespace arn {

struct OptionRange {
  enum class Kind : uint8_t { kAny, kAtLeast, kAbove, kWithin, kAboveUpTo, kFromBelow };
  Kind kind = Kind::kAny;
  double low = 0, high = 0;

  // False for NaN and infinity.
  bool Has(double value) const {
    if (!std::isfinite(value)) return false;
    switch (kind) {
      case Kind::kAny: return true;
      case Kind::kAtLeast: return value >= low;
      case Kind::kAbove: return value > low;
      case Kind::kWithin: return value >= low && value <= high;
      case Kind::kAboveUpTo: return value > low && value <= high;
      case Kind::kFromBelow: return value >= low && value < high;
    }
    return false;
  }
  // Writes what fits after "expected" in a message, NUL-terminated: "above 0 and at most 1".
  void Describe(char* out, size_t capacity) const {
    switch (kind) {
      case Kind::kAny: std::snprintf(out, capacity, "a number"); break;
      case Kind::kAtLeast: std::snprintf(out, capacity, "%g or more", low); break;
      case Kind::kAbove: std::snprintf(out, capacity, "above %g", low); break;
      case Kind::kWithin: std::snprintf(out, capacity, "%g to %g", low, high); break;
      case Kind::kAboveUpTo:
        std::snprintf(out, capacity, "above %g and at most %g", low, high);
        break;
      case Kind::kFromBelow:
        std::snprintf(out, capacity, "%g or more and below %g", low, high);
        break;
    }
  }
};

// As written in options.def.
constexpr OptionRange Any() { return {}; }
constexpr OptionRange AtLeast(double low) { return {OptionRange::Kind::kAtLeast, low, 0}; }
constexpr OptionRange Above(double low) { return {OptionRange::Kind::kAbove, low, 0}; }
constexpr OptionRange Within(double low, double high) {
  return {OptionRange::Kind::kWithin, low, high};
}
constexpr OptionRange AboveUpTo(double low, double high) {
  return {OptionRange::Kind::kAboveUpTo, low, high};
}
constexpr OptionRange FromBelow(double low, double high) {
  return {OptionRange::Kind::kFromBelow, low, high};
}

}  // namespace arn
