#include "runtime/constrain/json_schema/number_multiple.h"

#include <algorithm>

namespace arn::json_schema {

Status InitMultiple(const Decimal& value, uint64_t max_modulus, Multiple* out) {
  out->digits = value.FractionDigits();
  for (uint32_t i = 0; i < value.IntegerDigits() + out->digits; ++i) {
    const char digit = i < value.IntegerDigits() ? value.IntegerDigit(i)
                                                 : value.FractionDigit(i - value.IntegerDigits());
    out->modulus = out->modulus * 10 + static_cast<uint64_t>(digit - '0');
    if (out->modulus > max_modulus) return Status::kUnsupported;
  }
  return Status::kOk;
}

uint32_t StepPlain(const Multiple& multiple, uint32_t state, uint32_t digit, bool is_fraction) {
  if (state == kNoMultiple) return kNoMultiple;
  const uint64_t modulus = multiple.modulus;
  uint64_t position = state / modulus, remainder = state % modulus;
  if (is_fraction) {
    if (position == multiple.digits) return digit == 0 ? state : kNoMultiple;
    ++position;
  }
  remainder = (remainder * 10 + digit) % modulus;
  return static_cast<uint32_t>(position * modulus + remainder);
}

bool IsPlainMultiple(const Multiple& multiple, uint32_t state) {
  if (state == kNoMultiple) return false;
  uint64_t remainder = state % multiple.modulus;
  for (uint64_t i = state / multiple.modulus; i < multiple.digits; ++i) {
    remainder = remainder * 10 % multiple.modulus;
  }
  return remainder == 0;
}

bool MantissaDigits::Add(uint32_t digit) {
  if (digit == 0) {
    n_zeros = std::min(n_zeros + 1, kMax - n_digits + 1);
    return true;
  }
  if (n_digits + n_zeros + 1 > kMax) return false;
  n_digits += n_zeros + 1;
  n_zeros = 0;
  return true;
}

uint32_t StepMantissa(const Multiple& multiple, uint32_t remainder, uint32_t n_zeros,
                      uint32_t digit) {
  if (digit == 0) return remainder;
  uint64_t next = remainder;
  for (uint32_t i = 0; i <= n_zeros; ++i) next = next * 10 % multiple.modulus;
  return static_cast<uint32_t>((next + digit) % multiple.modulus);
}

ExponentState ExponentState::Start(const Multiple& multiple, uint32_t remainder,
                                   uint32_t n_digits) {
  ExponentState state;
  state.least = static_cast<int32_t>(n_digits) - static_cast<int32_t>(multiple.digits);
  uint64_t rest = remainder;
  // Stops: the modulus has fewer factors 2 and 5 than bits.
  for (uint32_t n = 0; n < 64 && rest != 0; ++n) {
    rest = rest * 10 % multiple.modulus;
    ++state.least;
  }
  if (rest != 0) state = {Verdict::kNever, 0, 0};
  return state;
}

void ExponentState::AddSign(bool is_negative) {
  if (verdict != Verdict::kOpen) return;
  if (is_negative && least > 0) *this = {Verdict::kNever, 0, 0};
  if (!is_negative && least <= 0) *this = {Verdict::kAlways, 0, 0};
}

void ExponentState::AddDigit(uint32_t digit, bool is_negative) {
  if (verdict != Verdict::kOpen) return;
  const auto limit = static_cast<uint32_t>(is_negative ? -least : least);
  magnitude = std::min(magnitude * 10 + digit, limit + 1);
  if (is_negative && magnitude > limit) *this = {Verdict::kNever, 0, 0};
  if (!is_negative && magnitude >= limit) *this = {Verdict::kAlways, 0, 0};
}

bool ExponentState::IsMultiple(bool is_negative) const {
  // Negative exponents that became too small are kNever.
  return verdict == Verdict::kAlways || (verdict == Verdict::kOpen && is_negative);
}

// Packs them; `least` lies between -kMaxDigits and a hundred, so the magnitude fits too.
uint32_t ExponentState::ToWord() const {
  return static_cast<uint32_t>(verdict) << 30 | magnitude << 15 |
         static_cast<uint32_t>(least + (1 << 14));
}

ExponentState ExponentState::FromWord(uint32_t word) {
  ExponentState state;
  state.verdict = static_cast<Verdict>(word >> 30);
  state.magnitude = word >> 15 & 0x7FFF;
  state.least = static_cast<int32_t>(word & 0x7FFF) - (1 << 14);
  return state;
}

}  // namespace arn::json_schema
