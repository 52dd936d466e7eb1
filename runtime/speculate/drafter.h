// Drafter: proposes the next tokens of a text.
#pragma once

#include <cstdint>

#include "platform/base/span.h"

namespace arn {

// Kinds of guesses, each right about equally often: found by a match of up to 2, 4, 8, 16 and more
// tokens, or made by a model.
inline constexpr uint32_t kMatchKinds = 5, kModelKind = kMatchKinds, kGuessKinds = kModelKind + 1;

// Describes what a drafter can propose, before it works for it. Times in nanoseconds; 0: none, or
// not known.
struct Offer {
  uint32_t n = 0;  // guesses at most
  uint32_t kind = 0;
  uint64_t guess_ns = 0;    // of each guess
  uint64_t reading_ns = 0;  // of the text that it has not read yet, once
};

struct Proposal {
  uint32_t n = 0;  // guesses
  uint64_t guesses_ns = 0;
  uint64_t reading_ns = 0;
};

class Drafter {
 public:
  // Says what it can propose after `ids`, at most `most` guesses.
  virtual Offer Look(Span<const int32_t> ids, uint32_t most) = 0;
  // Writes guesses of the tokens after `ids` to `out`, or fewer if it fails. REQUIRES: the last
  // call was Look(ids), and its result has n of out.size() or more.
  virtual Proposal Propose(Span<const int32_t> ids, Span<int32_t> out) = 0;

 protected:
  ~Drafter() = default;
};

}  // namespace arn
