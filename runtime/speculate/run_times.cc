#include "runtime/speculate/run_times.h"

#include "platform/base/arith.h"

namespace arn {
namespace {

// Sets the weight of a new time in the mean, and its largest value relative to the mean: other
// processes may interrupt a run for any time.
constexpr double kTimeWeight = 0.125;
constexpr double kMostDeviation = 2.0;

}  // namespace

void RunTimes::Add(uint32_t rows, uint64_t ns) {
  const auto time = static_cast<double>(Max<uint64_t>(ns, 1));
  double& mean = ns_[rows];
  mean = mean == 0 ? time : mean + kTimeWeight * (Min(time, kMostDeviation * mean) - mean);
  most_ = Max(most_, rows);
  fewest_ = fewest_ == 0 ? rows : Min(fewest_, rows);
}

double RunTimes::Of(uint32_t rows) const {
  if (most_ == 0) return 0.0;
  const double least = ns_[fewest_];
  if (rows == fewest_) return least;
  if (fewest_ == most_) return 0.0;
  if (rows < fewest_) return least;
  uint32_t below = rows, above = rows;
  if (rows > most_) {
    below = fewest_;
    above = most_;
  } else {
    while (ns_[below] == 0) --below;
    while (ns_[above] == 0) ++above;
  }
  const double at_below = Max(least, ns_[below]), at_above = ns_[above];
  if (below == above) return at_below;
  const double slope = (at_above - at_below) / (above - below);
  return Max(at_below + slope * (static_cast<double>(rows) - below), least);
}

}  // namespace arn
