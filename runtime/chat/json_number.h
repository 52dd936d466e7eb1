// JsonNumber: reads a number of RFC 8259, section 6, character by character.
#pragma once

#include <cstdint>

namespace arn::chat {

class JsonNumber {
 public:
  // Returns false if the character may not come; the object is then of no use.
  bool Take(char c) {
    const bool is_digit = c >= '0' && c <= '9';
    switch (state_) {
      case State::kStart:
        if (c == '-') return Go(State::kMinus);
        [[fallthrough]];
      case State::kMinus: return GoIf(is_digit, c == '0' ? State::kZero : State::kWhole);
      case State::kWhole:
        if (is_digit) return true;
        [[fallthrough]];
      case State::kZero:
        if (c == '.') return Go(State::kPoint);
        return GoIf(c == 'e' || c == 'E', State::kE);
      case State::kPoint: return GoIf(is_digit, State::kFraction);
      case State::kFraction:
        if (is_digit) return true;
        return GoIf(c == 'e' || c == 'E', State::kE);
      case State::kE:
        if (c == '+' || c == '-') return Go(State::kSign);
        [[fallthrough]];
      case State::kSign:
      case State::kExponent: return GoIf(is_digit, State::kExponent);
    }
    return false;
  }
  bool IsComplete() const {
    return state_ == State::kZero || state_ == State::kWhole || state_ == State::kFraction ||
           state_ == State::kExponent;
  }

 private:
  // Says what came last.
  enum class State : uint8_t {
    kStart,
    kMinus,
    kZero,
    kWhole,
    kPoint,
    kFraction,
    kE,
    kSign,
    kExponent
  };

  bool Go(State state) {
    state_ = state;
    return true;
  }
  bool GoIf(bool may_come, State state) {
    if (may_come) state_ = state;
    return may_come;
  }

  State state_ = State::kStart;
};

}  // namespace arn::chat
