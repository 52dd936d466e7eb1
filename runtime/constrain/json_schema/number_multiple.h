// Tells whether a number is a multiple of m * 10^-k, digit by digit.
//
// Plain spellings keep the remainder. Behind an exponent the number is M * 10^(e - f): f digits
// follow the point in the mantissa, of which the last is not 0, and M is the mantissa without the
// point. 10 does not divide M, so the number is a multiple if and only if e is at least
// f - k + t, where t is the least count of zeros behind M that make it a multiple of m.
#pragma once

#include <cstdint>

#include "platform/base/status.h"
#include "runtime/constrain/json_schema/decimal.h"

namespace arn::json_schema {

struct Multiple {
  uint64_t modulus = 0;  // m
  uint32_t digits = 0;   // k
};

// kUnsupported: m is larger than max_modulus.
Status InitMultiple(const Decimal& value, uint64_t max_modulus, Multiple* out);

// State of a plain spelling: position * modulus + remainder, the position counting digits behind
// the point; kNoMultiple if it cannot be a multiple any more. Starts with 0.
inline constexpr uint32_t kNoMultiple = UINT32_MAX;
uint32_t StepPlain(const Multiple& multiple, uint32_t state, uint32_t digit, bool is_fraction);
bool IsPlainMultiple(const Multiple& multiple, uint32_t state);

// Digits of a mantissa behind the point: those up to the last that is not 0, and the zeros behind.
struct MantissaDigits {
  static constexpr uint32_t kMax = 4;
  uint32_t n_digits = 0;
  uint32_t n_zeros = 0;  // one too many stands for more

  // Returns false if there are more than kMax.
  bool Add(uint32_t digit);
};
// Remainder of the mantissa up to its last digit that is not 0, behind which `n_zeros` came.
uint32_t StepMantissa(const Multiple& multiple, uint32_t remainder, uint32_t n_zeros,
                      uint32_t digit);

// Compares an exponent, digit by digit, with the least one of a multiple.
struct ExponentState {
  enum class Verdict : uint8_t { kOpen, kAlways, kNever };
  Verdict verdict = Verdict::kOpen;
  int32_t least = 0;       // kOpen: a multiple has at least this exponent
  uint32_t magnitude = 0;  // kOpen: of the exponent so far, at most one more than that of `least`

  static ExponentState Start(const Multiple& multiple, uint32_t remainder, uint32_t n_digits);
  void AddSign(bool is_negative);
  // The sign was added: an exponent without one is positive.
  void AddDigit(uint32_t digit, bool is_negative);
  bool IsMultiple(bool is_negative) const;

  uint32_t ToWord() const;
  static ExponentState FromWord(uint32_t word);
};

}  // namespace arn::json_schema
