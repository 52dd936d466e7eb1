#include "runtime/constrain/json_schema/number_automaton.h"

#include <algorithm>
#include <cstdlib>

namespace arn::json_schema {
namespace {

using Kind = NumberCondition::Kind;

constexpr uint32_t kDot = NumberSymbol('.'), kMinus = NumberSymbol('-'), kPlus = NumberSymbol('+'),
                   kE = NumberSymbol('e');

// Where in the spelling a state is. kOneDigit: an integer part of one digit that is not 0.
enum Phase : uint32_t {
  kStart,
  kAfterMinus,
  kZero,
  kOneDigit,
  kInteger,
  kAfterDot,
  kFraction,
  kLastIsZero,
  kAfterE,
  kAfterSign,
  kExponentIsZero,  // of its digits, those so far
  kExponent
};

// Comparison of the digits so far with those of the bound.
enum Order : uint32_t { kLess, kEqual, kGreater };

struct Multiple {
  uint64_t modulus = 0;  // the condition is a multiple of modulus * 10^-digits
  uint32_t digits = 0;
};

// State of all conditions: word 0 is phase and flags, then one word each.
//   bound:    position * 3 + order, the position up to the digits of the bound
//   multiple: position * modulus + remainder, the position counting digits after the point;
//             kDead if it cannot be a multiple any more
// and then another one for each bound while an exponent may follow:
//   mantissa: position * 3 + order, compared with the bound's own digits from the first
// Behind an e, a bound's word compares the exponent with the bound's, and the other one is the
// order of the mantissas.
struct Key {
  uint32_t words[1 + 2 * kMaxNumberConditions];
};
constexpr uint32_t kDead = UINT32_MAX;

// Flags of word 0.
constexpr uint32_t kIsNegative = 1, kHasNegativeExponent = 2, kMayHaveExponent = 4;
constexpr uint32_t kPhaseShift = 3;

Phase PhaseOf(const Key& key) { return static_cast<Phase>(key.words[0] >> kPhaseShift); }
bool Has(const Key& key, uint32_t flag) { return (key.words[0] & flag) != 0; }
bool IsNegative(const Key& key) { return Has(key, kIsNegative); }

bool IsFraction(Phase phase) { return phase == kFraction || phase == kLastIsZero; }
bool IsInExponent(Phase phase) { return phase >= kAfterE; }

bool IsMultiple(Kind kind) { return kind == Kind::kMultiple || kind == Kind::kNotMultiple; }
bool IsOfSpelling(Kind kind) { return kind == Kind::kNoFraction || kind == Kind::kFraction; }
bool IsBound(Kind kind) { return !IsMultiple(kind) && !IsOfSpelling(kind); }

class Builder {
 public:
  Builder(Span<const NumberCondition> conditions, bool is_shortest, Arena* arena)
      : conditions_(conditions),
        is_shortest_(is_shortest),
        has_exponents_(!is_shortest),
        arena_(arena) {}

  Status Run(Span<NumberState>* out) {
    *out = {};
    const uint64_t mark = arena_->mark();
    if (conditions_.size() > kMaxNumberConditions) return Status::kUnsupported;
    for (size_t i = 0; i < conditions_.size(); ++i) {
      if (IsMultiple(conditions_[i].kind))
        ARN_TRY(InitMultiple(conditions_[i].value, &multiples_[i]));
      has_exponents_ = has_exponents_ && IsBound(conditions_[i].kind);
    }
    n_words_ = 1 + (has_exponents_ ? 2 : 1) * conditions_.size();
    Key start = {};
    for (size_t i = 0; i < conditions_.size(); ++i) {
      if (IsBound(conditions_[i].kind)) start.words[1 + i] = kEqual;
      if (has_exponents_) *Mantissa(i, &start) = kEqual;
    }
    if (has_exponents_) start.words[0] |= kMayHaveExponent;
    ARN_TRY(Grow());
    uint32_t ignored = 0;
    ARN_TRY(Intern(start, &ignored));
    for (uint32_t s = 0; s < keys_.size(); ++s) {
      NumberState state;
      const Key key = keys_[s];
      state.is_end = IsEnd(key);
      for (uint32_t symbol = 0; symbol < kNumberSymbols; ++symbol) {
        Key next = key;
        state.next[symbol] = kNoState;
        if (Step(symbol, &next)) ARN_TRY(Intern(next, &state.next[symbol]));
      }
      ARN_TRY(states_.Append(arena_, state));
    }
    return Trim(mark, out);
  }

 private:
  // The divisor as an integer and a power of ten.
  static Status InitMultiple(const Decimal& value, Multiple* out) {
    out->digits = value.FractionDigits();
    for (uint32_t i = 0; i < value.IntegerDigits() + out->digits; ++i) {
      const char digit = i < value.IntegerDigits() ? value.IntegerDigit(i)
                                                   : value.FractionDigit(i - value.IntegerDigits());
      out->modulus = out->modulus * 10 + static_cast<uint64_t>(digit - '0');
      if (out->modulus > kMaxNumberStates) return Status::kUnsupported;
    }
    return Status::kOk;
  }

  // Advances by a symbol; false if no number continues so.
  bool Step(uint32_t symbol, Key* key) const {
    const Phase phase = PhaseOf(*key);
    if (IsInExponent(phase)) return StepExponent(symbol, key);
    if (symbol == kMinus) {
      if (phase != kStart) return false;
      key->words[0] |= kIsNegative;
      SetPhase(kAfterMinus, key);
      return true;
    }
    if (symbol == kDot) {
      if (phase != kZero && phase != kOneDigit && phase != kInteger) return false;
      if (phase == kZero) ExcludeExponent(key);
      SetPhase(kAfterDot, key);
      for (size_t i = 0; i < conditions_.size(); ++i) StartFraction(i, key);
      return true;
    }
    if (symbol == kE) {
      if (!Has(*key, kMayHaveExponent) || (phase != kOneDigit && phase != kFraction)) return false;
      SetPhase(kAfterE, key);
      key->words[0] &= ~kMayHaveExponent;
      for (size_t i = 0; i < conditions_.size(); ++i) StartExponent(i, key);
      return true;
    }
    if (symbol == kPlus) return false;
    const bool is_first = phase == kStart || phase == kAfterMinus;
    if (phase == kZero) return false;
    const bool is_fraction = phase == kAfterDot || IsFraction(phase);
    if (is_fraction) {
      SetPhase(is_shortest_ && symbol == 0 ? kLastIsZero : kFraction, key);
    } else {
      SetPhase(!is_first ? kInteger : symbol == 0 ? kZero : kOneDigit, key);
    }
    for (size_t i = 0; i < conditions_.size(); ++i) {
      uint32_t* const word = &key->words[1 + i];
      if (IsMultiple(conditions_[i].kind)) {
        *word = StepMultiple(multiples_[i], *word, symbol, is_fraction);
      } else if (IsBound(conditions_[i].kind)) {
        *word = StepBound(conditions_[i].value, *word, symbol, is_fraction);
      }
      if (Has(*key, kMayHaveExponent)) {
        uint32_t* const mantissa = Mantissa(i, key);
        *mantissa = StepMantissa(conditions_[i].value, *mantissa, symbol);
      }
    }
    if (PhaseOf(*key) == kInteger) ExcludeExponent(key);
    return true;
  }
  static void SetPhase(Phase phase, Key* key) {
    const uint32_t flags = key->words[0] & ((1u << kPhaseShift) - 1);
    key->words[0] = static_cast<uint32_t>(phase) << kPhaseShift | flags;
  }

  uint32_t* Mantissa(size_t i, Key* key) const { return &key->words[1 + conditions_.size() + i]; }
  void ExcludeExponent(Key* key) const {
    if (!Has(*key, kMayHaveExponent)) return;
    key->words[0] &= ~kMayHaveExponent;
    for (size_t i = 0; i < conditions_.size(); ++i) *Mantissa(i, key) = 0;
  }
  static uint32_t StepMantissa(const Decimal& bound, uint32_t word, uint32_t digit) {
    if (word % 3 != kEqual) return word;
    const uint32_t position = word / 3;
    const uint32_t other =
        position < bound.digits.size ? static_cast<uint32_t>(bound.digits.data[position] - '0') : 0;
    if (digit != other) return digit < other ? kLess : kGreater;
    return std::min(position + 1, static_cast<uint32_t>(bound.digits.size)) * 3 + kEqual;
  }
  void StartExponent(size_t i, Key* key) const {
    uint32_t* const mantissa = Mantissa(i, key);
    const bool is_part =
        *mantissa % 3 == kEqual && *mantissa / 3 < conditions_[i].value.digits.size;
    *mantissa = is_part ? static_cast<uint32_t>(kLess) : *mantissa % 3;
    key->words[1 + i] = kEqual;
  }
  bool StepExponent(uint32_t symbol, Key* key) const {
    const Phase phase = PhaseOf(*key);
    if (symbol == kMinus || symbol == kPlus) {
      if (phase != kAfterE) return false;
      SetPhase(kAfterSign, key);
      if (symbol == kMinus) key->words[0] |= kHasNegativeExponent;
      return true;
    }
    if (symbol > 9) return false;
    if (symbol == 0 && phase != kExponent) {
      SetPhase(kExponentIsZero, key);
      return true;
    }
    SetPhase(kExponent, key);
    for (size_t i = 0; i < conditions_.size(); ++i) {
      uint32_t* const word = &key->words[1 + i];
      *word = StepBound(ExponentOf(conditions_[i].value).magnitude(), *word, symbol, false);
    }
    return true;
  }

  // The exponent of a number that is written with one digit before the point.
  struct Exponent {
    bool is_negative;
    uint32_t n_digits;  // 0 has none
    char digits[5];

    Decimal magnitude() const {
      Decimal value;
      value.digits = {digits, n_digits};
      value.point = static_cast<int32_t>(n_digits);
      return value;
    }
  };
  static Exponent ExponentOf(const Decimal& value) {
    const int32_t exponent = value.point - 1;
    Exponent out = {exponent < 0, 0, {}};
    for (uint32_t rest = static_cast<uint32_t>(std::abs(exponent)); rest != 0; rest /= 10) {
      out.digits[out.n_digits++] = static_cast<char>('0' + rest % 10);
    }
    std::reverse(out.digits, out.digits + out.n_digits);
    return out;
  }
  // Order of the magnitudes of the number and of a bound that is not 0, behind an exponent.
  uint32_t ScientificOrder(size_t i, const Key& key) const {
    const Exponent bound = ExponentOf(conditions_[i].value);
    const bool is_zero = PhaseOf(key) == kExponentIsZero;
    const uint32_t word = key.words[1 + i];
    uint32_t order =
        is_zero ? (bound.n_digits > 0 ? kLess : kEqual) : IntegerOrder(bound.magnitude(), word);
    const bool is_negative = !is_zero && Has(key, kHasNegativeExponent);
    if (is_negative != bound.is_negative) {
      order = is_negative ? kLess : kGreater;
    } else if (is_negative || bound.is_negative) {
      order = kGreater - order;
    }
    return order != kEqual ? order : key.words[1 + conditions_.size() + i];
  }

  static uint32_t StepBound(const Decimal& bound, uint32_t word, uint32_t digit, bool is_fraction) {
    uint32_t position = word / 3, order = word % 3;
    if (is_fraction) {
      if (order != kEqual) return order;
      const uint32_t other = static_cast<uint32_t>(bound.FractionDigit(position) - '0');
      if (digit != other) return digit < other ? kLess : kGreater;
      return std::min(position + 1, bound.FractionDigits()) * 3 + order;
    }
    if (position >= bound.IntegerDigits()) return position * 3 + kGreater;
    const uint32_t other = static_cast<uint32_t>(bound.IntegerDigit(position) - '0');
    if (order == kEqual && digit != other) order = digit < other ? kLess : kGreater;
    return (position + 1) * 3 + order;
  }
  // Order of magnitudes when the integer part is complete.
  static uint32_t IntegerOrder(const Decimal& bound, uint32_t word) {
    return word / 3 < bound.IntegerDigits() ? static_cast<uint32_t>(kLess) : word % 3;
  }

  static uint32_t StepMultiple(const Multiple& multiple, uint32_t word, uint32_t digit,
                               bool is_fraction) {
    if (word == kDead) return kDead;
    const uint64_t modulus = multiple.modulus;
    uint64_t position = word / modulus, remainder = word % modulus;
    if (is_fraction) {
      if (position == multiple.digits) return digit == 0 ? word : kDead;
      ++position;
    }
    remainder = (remainder * 10 + digit) % modulus;
    return static_cast<uint32_t>(position * modulus + remainder);
  }

  void StartFraction(size_t i, Key* key) const {
    if (!IsBound(conditions_[i].kind)) return;  // position 0 so far
    uint32_t* const word = &key->words[1 + i];
    *word = IntegerOrder(conditions_[i].value, *word);
  }

  bool IsEnd(const Key& key) const {
    const Phase phase = PhaseOf(key);
    const bool is_whole = phase == kZero || phase == kOneDigit || phase == kInteger ||
                          phase == kFraction || phase == kExponentIsZero || phase == kExponent;
    if (!is_whole) return false;
    if (is_shortest_ && phase == kZero && IsNegative(key)) return false;
    for (size_t i = 0; i < conditions_.size(); ++i) {
      if (!Holds(i, key, phase == kFraction)) return false;
    }
    return true;
  }

  bool Holds(size_t i, const Key& key, bool is_fraction) const {
    const NumberCondition& condition = conditions_[i];
    const uint32_t word = key.words[1 + i];
    if (IsOfSpelling(condition.kind)) return is_fraction == (condition.kind == Kind::kFraction);
    if (IsMultiple(condition.kind)) {
      return IsMultipleAtEnd(multiples_[i], word) == (condition.kind == Kind::kMultiple);
    }
    const Decimal& bound = condition.value;
    uint32_t order = is_fraction ? word % 3 : IntegerOrder(bound, word);
    const uint32_t position = is_fraction ? word / 3 : 0;
    if (IsInExponent(PhaseOf(key))) {
      order = bound.is_zero() ? static_cast<uint32_t>(kGreater) : ScientificOrder(i, key);
    } else if (order == kEqual && position < bound.FractionDigits()) {
      order = kLess;
    }
    // From magnitudes to numbers. -0 equals 0.
    const bool is_zero = bound.is_zero() && order == kEqual;
    if (!is_zero && IsNegative(key) != bound.is_negative) {
      order = IsNegative(key) ? kLess : kGreater;
    } else if (IsNegative(key)) {
      order = kGreater - order;
    }
    switch (condition.kind) {
      case Kind::kLess: return order == kLess;
      case Kind::kLessOrEqual: return order != kGreater;
      case Kind::kGreater: return order == kGreater;
      case Kind::kGreaterOrEqual: return order != kLess;
      case Kind::kNotEqual:
      case Kind::kMultiple:
      case Kind::kNotMultiple:
      case Kind::kNoFraction:
      case Kind::kFraction: break;
    }
    return order != kEqual;
  }

  static bool IsMultipleAtEnd(const Multiple& multiple, uint32_t word) {
    if (word == kDead) return false;
    uint64_t remainder = word % multiple.modulus;
    for (uint64_t i = word / multiple.modulus; i < multiple.digits; ++i) {
      remainder = remainder * 10 % multiple.modulus;
    }
    return remainder == 0;
  }

  Status Grow() {
    const uint32_t size = std::max<uint32_t>(256, static_cast<uint32_t>(slots_.size()) * 2);
    ARN_ASSIGN(slots_, arena_->AllocateArray<uint32_t>(size));
    for (uint32_t& slot : slots_) slot = kNoState;
    for (uint32_t s = 0; s < keys_.size(); ++s) *FindSlot(keys_[s]) = s;
    return Status::kOk;
  }
  uint32_t* FindSlot(const Key& key) {
    uint64_t hash = 0;
    for (size_t i = 0; i < n_words_; ++i) {
      hash = (hash ^ key.words[i]) * 0x9E3779B97F4A7C15u;
      hash ^= hash >> 29;
    }
    for (size_t i = hash;; ++i) {
      uint32_t* const slot = &slots_[i & (slots_.size() - 1)];
      if (*slot == kNoState) return slot;
      if (std::memcmp(&keys_[*slot], &key, n_words_ * sizeof(uint32_t)) == 0) {
        return slot;
      }
    }
  }
  Status Intern(const Key& key, uint32_t* out) {
    uint32_t* const slot = FindSlot(key);
    *out = *slot;
    if (*slot != kNoState) return Status::kOk;
    if (keys_.size() >= kMaxNumberStates) return Status::kUnsupported;
    *out = *slot = keys_.size();
    ARN_TRY(keys_.Append(arena_, key));
    return keys_.size() * 2 > slots_.size() ? Grow() : Status::kOk;
  }

  // Drops the states from which no end can be reached, and numbers the others in order. Of the
  // arena since `mark`, only they remain.
  Status Trim(uint64_t mark, Span<NumberState>* out) {
    const uint32_t n = states_.size();
    ARN_ASSIGN(Span<uint32_t> numbers, arena_->AllocateArray<uint32_t>(n));
    // States are numbered as found, so that most paths lead to larger numbers: few rounds.
    for (bool changes = true; changes;) {
      changes = false;
      for (uint32_t s = n; s-- > 0;) {
        if (numbers[s] != 0) continue;
        bool is_alive = states_[s].is_end;
        for (const uint32_t next : states_[s].next) {
          is_alive = is_alive || (next != kNoState && numbers[next] != 0);
        }
        if (!is_alive) continue;
        numbers[s] = 1;
        changes = true;
      }
    }
    uint32_t n_alive = 0;
    for (uint32_t s = 0; s < n; ++s) numbers[s] = numbers[s] != 0 ? n_alive++ : kNoState;
    if (n == 0 || numbers[0] == kNoState) {
      arena_->Rewind(mark);
      return Status::kOk;
    }
    for (uint32_t s = 0; s < n; ++s) {
      if (numbers[s] == kNoState) continue;
      NumberState state = states_[s];
      for (uint32_t& next : state.next) next = next == kNoState ? kNoState : numbers[next];
      states_[numbers[s]] = state;
    }
    arena_->Rewind(mark);
    ARN_ASSIGN(void* memory, arena_->Allocate(n_alive * sizeof(NumberState), alignof(NumberState)));
    std::memmove(memory, states_.begin(), n_alive * sizeof(NumberState));
    *out = {static_cast<NumberState*>(memory), n_alive};
    return Status::kOk;
  }

  const Span<const NumberCondition> conditions_;
  const bool is_shortest_;
  bool has_exponents_;
  size_t n_words_ = 0;
  Arena* const arena_;
  Multiple multiples_[kMaxNumberConditions];
  List<Key> keys_;
  List<NumberState> states_;
  Span<uint32_t> slots_;
};

}  // namespace

Status BuildNumberAutomaton(Span<const NumberCondition> conditions, bool is_shortest, Arena* arena,
                            Span<NumberState>* out) {
  return Builder(conditions, is_shortest, arena).Run(out);
}

bool Matches(Span<const NumberState> states, StringView text) {
  if (states.empty()) return false;
  uint32_t state = 0;
  for (size_t i = 0; i < text.size; ++i) {
    state = states[state].next[NumberSymbol(static_cast<uint8_t>(text.data[i]))];
    if (state == kNoState) return false;
  }
  return states[state].is_end;
}

}  // namespace arn::json_schema
