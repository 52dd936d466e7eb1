// Lets an allocation of an arena fail, whichever it is, in the test programs that link this.
#pragma once

#include <cstdint>

namespace arn::test {

// While it lives, the n-th allocation of any arena (counted from 0) gives kOutOfMemory, and the
// others happen. One at a time.
class FailingAllocation {
 public:
  explicit FailingAllocation(uint64_t n);
  ~FailingAllocation();
  FailingAllocation(const FailingAllocation&) = delete;
  FailingAllocation& operator=(const FailingAllocation&) = delete;

  // False if there were no more than n.
  bool has_failed() const;
};

}  // namespace arn::test
