// Unicode data for unicode.cc: from utf8proc or, in libraries without normal forms, from PCRE2's
// internal tables (ARENITE_NORMAL_FORMS).
#pragma once

#include <cstdint>

namespace arn {

// General categories in utf8proc's order.
enum class Category : uint8_t {
  kCn,
  kLu,
  kLl,
  kLt,
  kLm,
  kLo,
  kMn,
  kMc,
  kMe,
  kNd,
  kNl,
  kNo,
  kPc,
  kPd,
  kPs,
  kPe,
  kPi,
  kPf,
  kPo,
  kSm,
  kSc,
  kSk,
  kSo,
  kZs,
  kZl,
  kZp,
  kCc,
  kCf,
  kCs,
  kCo,
};

Category CategoryOf(uint32_t c);
// Returns the simple lower case, or the character itself.
uint32_t LowercaseOf(uint32_t c);

}  // namespace arn
