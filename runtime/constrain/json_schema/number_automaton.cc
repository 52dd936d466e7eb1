#include "runtime/constrain/json_schema/number_automaton.h"

#include <algorithm>

namespace arn::json_schema {
namespace {

using Kind = NumberCondition::Kind;

constexpr uint32_t kDot = 10, kMinus = 11, kSymbols = 12;

// Where in the spelling a state is.
enum Phase : uint32_t { kStart, kAfterMinus, kZero, kInteger, kAfterDot, kFraction, kLastIsZero };

// Comparison of the digits so far with those of the bound.
enum Order : uint32_t { kLess, kEqual, kGreater };

struct Multiple {
  uint64_t modulus = 0;  // the condition is a multiple of modulus * 10^-digits
  uint32_t digits = 0;
};

// State of all conditions: word 0 is phase and sign, then one word each.
//   bound:    position * 3 + order, the position up to the digits of the bound
//   multiple: position * modulus + remainder, the position counting digits after the point;
//             kDead if it cannot be a multiple any more
struct Key {
  uint32_t words[1 + kMaxNumberConditions];
};
constexpr uint32_t kDead = UINT32_MAX;

Phase PhaseOf(const Key& key) { return static_cast<Phase>(key.words[0] >> 1); }
bool IsNegative(const Key& key) { return (key.words[0] & 1) != 0; }

bool IsFraction(Phase phase) { return phase == kFraction || phase == kLastIsZero; }

bool IsMultiple(Kind kind) { return kind == Kind::kMultiple || kind == Kind::kNotMultiple; }
bool IsOfSpelling(Kind kind) { return kind == Kind::kNoFraction || kind == Kind::kFraction; }
bool IsBound(Kind kind) { return !IsMultiple(kind) && !IsOfSpelling(kind); }

class Builder {
 public:
  Builder(Span<const NumberCondition> conditions, bool is_shortest, Arena* arena)
      : conditions_(conditions), is_shortest_(is_shortest), arena_(arena) {}

  Status Run(Span<NumberState>* out) {
    *out = {};
    const uint64_t mark = arena_->mark();
    if (conditions_.size() > kMaxNumberConditions) return Status::kUnsupported;
    for (size_t i = 0; i < conditions_.size(); ++i) {
      if (IsMultiple(conditions_[i].kind))
        ARN_TRY(InitMultiple(conditions_[i].value, &multiples_[i]));
    }
    Key start = {};
    for (size_t i = 0; i < conditions_.size(); ++i) {
      if (IsBound(conditions_[i].kind)) start.words[1 + i] = kEqual;
    }
    ARN_TRY(Grow());
    uint32_t ignored = 0;
    ARN_TRY(Intern(start, &ignored));
    for (uint32_t s = 0; s < keys_.size(); ++s) {
      NumberState state;
      const Key key = keys_[s];
      state.is_end = IsEnd(key);
      for (uint32_t symbol = 0; symbol < kSymbols; ++symbol) {
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
    if (symbol == kMinus) {
      if (phase != kStart) return false;
      key->words[0] = kAfterMinus << 1 | 1;
      return true;
    }
    if (symbol == kDot) {
      if (phase != kZero && phase != kInteger) return false;
      SetPhase(kAfterDot, key);
      for (size_t i = 0; i < conditions_.size(); ++i) StartFraction(i, key);
      return true;
    }
    const bool is_first = phase == kStart || phase == kAfterMinus;
    if (phase == kZero) return false;
    const bool is_fraction = phase == kAfterDot || IsFraction(phase);
    if (is_fraction) {
      SetPhase(is_shortest_ && symbol == 0 ? kLastIsZero : kFraction, key);
    } else {
      SetPhase(is_first && symbol == 0 ? kZero : kInteger, key);
    }
    for (size_t i = 0; i < conditions_.size(); ++i) {
      uint32_t* const word = &key->words[1 + i];
      if (IsMultiple(conditions_[i].kind)) {
        *word = StepMultiple(multiples_[i], *word, symbol, is_fraction);
      } else if (IsBound(conditions_[i].kind)) {
        *word = StepBound(conditions_[i].value, *word, symbol, is_fraction);
      }
    }
    return true;
  }
  static void SetPhase(Phase phase, Key* key) {
    key->words[0] = static_cast<uint32_t>(phase) << 1 | (key->words[0] & 1);
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
    if (phase != kZero && phase != kInteger && phase != kFraction) return false;
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
    if (order == kEqual && position < bound.FractionDigits()) order = kLess;
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
    for (size_t i = 0; i <= conditions_.size(); ++i) {
      hash = (hash ^ key.words[i]) * 0x9E3779B97F4A7C15u;
      hash ^= hash >> 29;
    }
    for (size_t i = hash;; ++i) {
      uint32_t* const slot = &slots_[i & (slots_.size() - 1)];
      if (*slot == kNoState) return slot;
      if (std::memcmp(&keys_[*slot], &key, (1 + conditions_.size()) * sizeof(uint32_t)) == 0) {
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
    const char c = text.data[i];
    const uint32_t symbol = c == '.' ? kDot : c == '-' ? kMinus : static_cast<uint32_t>(c - '0');
    state = states[state].next[symbol];
    if (state == kNoState) return false;
  }
  return states[state].is_end;
}

}  // namespace arn::json_schema
