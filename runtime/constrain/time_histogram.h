// Histogram of durations in fixed memory: percentiles to within a sixteenth.
#pragma once

#include <cstdint>

#include "platform/base/arith.h"

namespace arn {

class TimeHistogram {
 public:
  void Add(uint64_t ns) {
    ++counts_[BucketOf(ns)];
    ++n_;
    max_ns_ = Max(max_ns_, ns);
  }
  uint64_t count() const { return n_; }
  uint64_t max_ns() const { return max_ns_; }
  // Returns the upper bound of the bucket that holds the given share, 0 to 1, of the durations.
  uint64_t PercentileNs(double share) const {
    const auto wanted = static_cast<uint64_t>(share * static_cast<double>(n_));
    uint64_t seen = 0;
    for (uint32_t i = 0; i < kBuckets; ++i) {
      seen += counts_[i];
      if (counts_[i] != 0 && seen >= wanted) return Min(UpperBound(i), max_ns_);
    }
    return max_ns_;
  }

 private:
  static constexpr uint32_t kLog2Parts = 4;  // of each power of two
  static constexpr uint32_t kParts = 1u << kLog2Parts;
  static constexpr uint32_t kPowers = 40;  // 18 minutes; longer ones share the last bucket
  static constexpr uint32_t kBuckets = kParts * (kPowers - kLog2Parts + 1);

  static uint32_t BucketOf(uint64_t ns) {
    if (ns < kParts) return static_cast<uint32_t>(ns);
    uint32_t power = kLog2Parts;
    while (power + 1 < kPowers && ns >> (power + 1) != 0) ++power;
    const uint64_t part = (ns >> (power - kLog2Parts)) - kParts;
    return (power - kLog2Parts + 1) * kParts +
           static_cast<uint32_t>(Min<uint64_t>(part, kParts - 1));
  }
  static uint64_t UpperBound(uint32_t bucket) {
    if (bucket < kParts) return bucket;
    const uint32_t power = bucket / kParts - 1;
    return ((uint64_t{kParts} + bucket % kParts + 1) << power) - 1;
  }

  uint64_t n_ = 0;
  uint64_t max_ns_ = 0;
  uint32_t counts_[kBuckets] = {};
};

}  // namespace arn
