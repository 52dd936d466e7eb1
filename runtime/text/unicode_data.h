// What unicode.cc asks of a table of all characters: utf8proc's, or, in libraries without normal
// forms, the one that PCRE2 has for its own use (ARENITE_NORMAL_FORMS).
#pragma once

#include <cstdint>

namespace arn {

// The general categories, in utf8proc's order.
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
// The simple lower case; the character itself where there is none.
uint32_t LowercaseOf(uint32_t c);

}  // namespace arn
