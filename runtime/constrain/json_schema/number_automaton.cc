#include "runtime/constrain/json_schema/number_automaton.h"

#include <algorithm>
#include <cstdlib>

#include "runtime/constrain/json_schema/number_multiple.h"

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

// State of all conditions: word 0 is phase and flags, then one word each.
//   bound:    position * 3 + order, the position up to the digits of the bound
//   multiple: as StepPlain() has it
// and then another one for each while an exponent may follow:
//   bound:    position * 3 + order, compared with the bound's own digits from the first
//   multiple: the remainder of the mantissa
// and, with multiples, one for MantissaDigits.
// Behind an e, a bound's word compares the exponent with the bound's, and the other one is the
// order of the mantissas; a multiple's word is its ExponentState, and the other one is 0.
struct Key {
  uint32_t words[2 + 2 * kMaxNumberConditions];
};

// Exponents with multiples make many states. Up to such divisors and so many states they are
// allowed.
constexpr uint64_t kMaxExponentModulus = 10;
constexpr uint32_t kMaxExponentStates = 1024;

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
  Builder(Span<const NumberCondition> conditions, bool is_shortest, bool has_exponents,
          Arena* arena)
      : conditions_(conditions),
        is_shortest_(is_shortest),
        has_exponents_(has_exponents),
        arena_(arena) {}

  Status Run(Span<NumberState>* out) {
    *out = {};
    const uint64_t mark = arena_->mark();
    if (conditions_.size() > kMaxNumberConditions) return Status::kUnsupported;
    for (size_t i = 0; i < conditions_.size(); ++i) {
      has_bounds_ = has_bounds_ || IsBound(conditions_[i].kind);
      if (!IsMultiple(conditions_[i].kind)) continue;
      counts_digits_ = has_exponents_;
      ARN_TRY(InitMultiple(conditions_[i].value,
                           has_exponents_ ? kMaxExponentModulus : kMaxNumberStates,
                           &multiples_[i]));
    }
    max_states_ = counts_digits_ ? kMaxExponentStates : kMaxNumberStates;
    n_words_ = 1 + (has_exponents_ ? 2 : 1) * static_cast<uint32_t>(conditions_.size()) +
               (counts_digits_ ? 1 : 0);
    Key start = {};
    for (size_t i = 0; i < conditions_.size(); ++i) {
      if (IsBound(conditions_[i].kind)) start.words[1 + i] = kEqual;
      if (has_exponents_ && IsBound(conditions_[i].kind)) *Mantissa(i, &start) = kEqual;
    }
    if (has_exponents_) start.words[0] |= kMayHaveExponent;
    ARN_TRY(Grow());
    uint32_t ignored = 0;
    ARN_TRY(Intern(start, &ignored));
    for (uint32_t s = 0; s < n_keys(); ++s) {
      NumberState state;
      Key key;
      std::memcpy(&key, KeyWords(s), n_words_ * sizeof(uint32_t));
      state.is_end = IsEnd(key);
      for (uint32_t symbol = 0; symbol < kNumberSymbols; ++symbol) {
        Key next = key;
        uint32_t number = kNoState;
        if (Step(symbol, &next)) ARN_TRY(Intern(next, &number));
        state.next[symbol] = static_cast<uint16_t>(number);
      }
      ARN_TRY(states_.Append(arena_, state));
    }
    return Trim(mark, out);
  }

 private:
  // Advances by a symbol; false if no number continues so.
  bool Step(uint32_t symbol, Key* key) const {
    const Phase phase = PhaseOf(*key);
    if (IsInExponent(phase)) return StepExponent(symbol, key);
    if (symbol == kMinus) {
      if (phase != kStart) return false;
      if (has_bounds_ || is_shortest_) key->words[0] |= kIsNegative;
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
      for (size_t i = 0; i < conditions_.size(); ++i) {
        if (!StartExponent(i, key)) return false;
      }
      if (counts_digits_) *MantissaWord(key) = 0;
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
    MantissaDigits digits = DigitsOf(key);
    const uint32_t n_zeros = digits.n_zeros;
    if (counts_digits_ && is_fraction && !digits.Add(symbol)) ExcludeExponent(key);
    if (PhaseOf(*key) == kInteger) ExcludeExponent(key);
    for (size_t i = 0; i < conditions_.size(); ++i) {
      uint32_t* const word = &key->words[1 + i];
      uint32_t* const mantissa = Has(*key, kMayHaveExponent) ? Mantissa(i, key) : nullptr;
      if (IsMultiple(conditions_[i].kind)) {
        *word = StepPlain(multiples_[i], *word, symbol, is_fraction);
        if (mantissa != nullptr) {
          *mantissa = json_schema::StepMantissa(multiples_[i], *mantissa, n_zeros, symbol);
        }
      } else if (IsBound(conditions_[i].kind)) {
        *word = StepBound(conditions_[i].value, *word, symbol, is_fraction);
        if (mantissa != nullptr) {
          *mantissa = StepMantissa(conditions_[i].value, *mantissa, symbol);
        }
      }
    }
    if (counts_digits_ && Has(*key, kMayHaveExponent)) {
      *MantissaWord(key) = digits.n_digits * (MantissaDigits::kMax + 2) + digits.n_zeros;
    }
    return true;
  }
  static void SetPhase(Phase phase, Key* key) {
    const uint32_t flags = key->words[0] & ((1u << kPhaseShift) - 1);
    key->words[0] = static_cast<uint32_t>(phase) << kPhaseShift | flags;
  }

  uint32_t* Mantissa(size_t i, Key* key) const { return &key->words[1 + conditions_.size() + i]; }
  uint32_t* MantissaWord(Key* key) const { return &key->words[n_words_ - 1]; }
  MantissaDigits DigitsOf(Key* key) const {
    if (!counts_digits_) return {};
    const uint32_t word = *MantissaWord(key);
    return {word / (MantissaDigits::kMax + 2), word % (MantissaDigits::kMax + 2)};
  }
  void ExcludeExponent(Key* key) const {
    if (!Has(*key, kMayHaveExponent)) return;
    key->words[0] &= ~kMayHaveExponent;
    for (size_t i = 0; i < conditions_.size(); ++i) *Mantissa(i, key) = 0;
    if (counts_digits_) *MantissaWord(key) = 0;
  }
  static uint32_t StepMantissa(const Decimal& bound, uint32_t word, uint32_t digit) {
    if (word % 3 != kEqual) return word;
    const uint32_t position = word / 3;
    const uint32_t other =
        position < bound.digits.size ? static_cast<uint32_t>(bound.digits.data[position] - '0') : 0;
    if (digit != other) return digit < other ? kLess : kGreater;
    return std::min(position + 1, static_cast<uint32_t>(bound.digits.size)) * 3 + kEqual;
  }
  bool StartExponent(size_t i, Key* key) const {
    uint32_t* const mantissa = Mantissa(i, key);
    if (IsMultiple(conditions_[i].kind)) {
      const ExponentState state =
          ExponentState::Start(multiples_[i], *mantissa, DigitsOf(key).n_digits);
      *mantissa = 0;
      return StoreExponent(i, state, key);
    }
    const bool is_part =
        *mantissa % 3 == kEqual && *mantissa / 3 < conditions_[i].value.digits.size;
    *mantissa = is_part ? static_cast<uint32_t>(kLess) : *mantissa % 3;
    key->words[1 + i] = kEqual;
    return true;
  }
  // Returns false if the condition cannot hold any more.
  bool StoreExponent(size_t i, const ExponentState& state, Key* key) const {
    using Verdict = ExponentState::Verdict;
    key->words[1 + i] = state.ToWord();
    return state.verdict == Verdict::kOpen ||
           (state.verdict == Verdict::kAlways) == (conditions_[i].kind == Kind::kMultiple);
  }
  bool StepExponent(uint32_t symbol, Key* key) const {
    const Phase phase = PhaseOf(*key);
    const bool is_sign = symbol == kMinus || symbol == kPlus;
    if (is_sign ? phase != kAfterE : symbol > 9) return false;
    if (symbol == kMinus) key->words[0] |= kHasNegativeExponent;
    const bool is_zero = symbol == 0 && phase != kExponent;
    SetPhase(is_sign ? kAfterSign : is_zero ? kExponentIsZero : kExponent, key);
    const bool is_negative = Has(*key, kHasNegativeExponent);
    for (size_t i = 0; i < conditions_.size(); ++i) {
      uint32_t* const word = &key->words[1 + i];
      if (IsMultiple(conditions_[i].kind)) {
        ExponentState state = ExponentState::FromWord(*word);
        if (phase == kAfterE) state.AddSign(is_negative);
        if (!is_sign) state.AddDigit(symbol, is_negative);
        if (!StoreExponent(i, state, key)) return false;
      } else if (!is_sign && !is_zero) {
        *word = StepBound(ExponentOf(conditions_[i].value).magnitude(), *word, symbol, false);
      }
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
    } else if (is_negative) {
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
      const bool is_multiple =
          IsInExponent(PhaseOf(key))
              ? ExponentState::FromWord(word).IsMultiple(Has(key, kHasNegativeExponent))
              : IsPlainMultiple(multiples_[i], word);
      return is_multiple == (condition.kind == Kind::kMultiple);
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

  Status Grow() {
    const uint32_t size = std::max<uint32_t>(256, static_cast<uint32_t>(slots_.size()) * 2);
    ARN_ASSIGN(slots_, arena_->AllocateArray<uint32_t>(size));
    for (uint32_t& slot : slots_) slot = kNoState;
    for (uint32_t s = 0; s < n_keys(); ++s) *FindSlot(KeyWords(s)) = s;
    return Status::kOk;
  }
  uint32_t n_keys() const { return words_.size() / n_words_; }
  const uint32_t* KeyWords(uint32_t i) const { return words_.begin() + i * n_words_; }
  uint32_t* FindSlot(const uint32_t* words) {
    uint64_t hash = 0;
    for (uint32_t i = 0; i < n_words_; ++i) {
      hash = (hash ^ words[i]) * 0x9E3779B97F4A7C15u;
      hash ^= hash >> 29;
    }
    for (size_t i = hash;; ++i) {
      uint32_t* const slot = &slots_[i & (slots_.size() - 1)];
      if (*slot == kNoState) return slot;
      if (std::memcmp(KeyWords(*slot), words, n_words_ * sizeof(uint32_t)) == 0) return slot;
    }
  }
  Status Intern(const Key& key, uint32_t* out) {
    uint32_t* const slot = FindSlot(key.words);
    *out = *slot;
    if (*slot != kNoState) return Status::kOk;
    if (n_keys() >= max_states_) return Status::kUnsupported;
    *out = *slot = n_keys();
    for (uint32_t i = 0; i < n_words_; ++i) ARN_TRY(words_.Append(arena_, key.words[i]));
    return n_keys() * 2 > slots_.size() ? Grow() : Status::kOk;
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
        for (const uint16_t next : states_[s].next) {
          is_alive = is_alive || (next != kNoState && numbers[next] != 0);
        }
        if (!is_alive) continue;
        numbers[s] = 1;
        changes = true;
      }
    }
    uint32_t n_alive = 0;
    for (uint32_t s = 0; s < n; ++s) numbers[s] = numbers[s] != 0 ? n_alive++ : uint32_t{kNoState};
    if (numbers[0] == kNoState) {
      arena_->Rewind(mark);
      return Status::kOk;
    }
    for (uint32_t s = 0; s < n; ++s) {
      if (numbers[s] == kNoState) continue;
      NumberState state = states_[s];
      for (uint16_t& next : state.next) {
        if (next != kNoState) next = static_cast<uint16_t>(numbers[next]);
      }
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
  const bool has_exponents_;
  bool has_bounds_ = false;
  bool counts_digits_ = false;  // exponents and multiples
  uint32_t max_states_ = 0;
  uint32_t n_words_ = 0;
  Arena* const arena_;
  Multiple multiples_[kMaxNumberConditions];
  List<uint32_t> words_;  // of the keys
  List<NumberState> states_;
  Span<uint32_t> slots_;
};

}  // namespace

Status BuildNumberAutomaton(Span<const NumberCondition> conditions, bool is_shortest, Arena* arena,
                            Span<NumberState>* out) {
  const bool is_by_spelling =
      std::any_of(conditions.begin(), conditions.end(),
                  [](const NumberCondition& condition) { return IsOfSpelling(condition.kind); });
  if (!is_shortest && !is_by_spelling) {
    const uint64_t mark = arena->mark();
    const Status status = Builder(conditions, false, /*has_exponents=*/true, arena).Run(out);
    if (status != Status::kUnsupported) return status;
    arena->Rewind(mark);
  }
  return Builder(conditions, is_shortest, /*has_exponents=*/false, arena).Run(out);
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
