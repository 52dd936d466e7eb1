// RunTimes: how long runs take by their rows, measured while a text is written.
#pragma once

#include <cstdint>

namespace arn {

inline constexpr uint32_t kMaxGuesses = 63;

class RunTimes {
 public:
  // A run of this many rows has taken this long. REQUIRES: rows is 1 to kMaxGuesses + 1.
  void Add(uint32_t rows, uint64_t ns);
  // Returns nanoseconds of a run of so many rows: the mean of those measured, or between the
  // nearest of them; beyond them along the line through the fewest and the most; no less than that
  // of the fewest; 0: fewer than two kinds of runs are known, and these rows are none of them.
  double Of(uint32_t rows) const;
  bool has(uint32_t rows) const { return ns_[rows] != 0; }
  double mean(uint32_t rows) const { return ns_[rows]; }
  uint32_t most() const { return most_; }  // rows

 private:
  double ns_[kMaxGuesses + 2] = {};  // mean by rows; 0: not measured
  uint32_t fewest_ = 0, most_ = 0;   // rows; 0: nothing is measured
};

}  // namespace arn
