// Submissions in flight: in order, each with a fence, and limited so that the device stays
// responsive.
#pragma once

#include <cstdint>

#include "kernels/vulkan/replay/vulkan_state.h"

namespace arn::vulkan {

class Submissions {
 public:
  // Maximum multiplications per submission: tens of milliseconds on a small device. Bounds the
  // delay for other users of the device, and for cancellation. At most two submissions of this size
  // are in flight; smaller ones up to kFlights.
  static constexpr uint64_t kMaxWork = uint64_t{1} << 30;
  static constexpr uint32_t kMaxBuffers = 32;

  Submissions(State* state, Diag* diag) : s_(*state), diag_(diag) {}

  // Submits; waits for earlier submissions if the limits require it. `work`: multiplications.
  Status Submit(const VkCommandBuffer* commands, uint32_t n, uint64_t work);
  // Returns the number of submissions so far, which is also the number of the last one.
  uint64_t n_made() const { return n_made_; }
  // Waits for that submission and all before it.
  Status WaitFor(uint64_t number);
  // Call before the next run, which overwrites what the submissions read. Does not wait once the
  // device has failed.
  Status WaitForAll() { return WaitFor(n_made_); }

 private:
  Status WaitForOne();
  Status MarkLost(Status status);

  State& s_;
  Diag* diag_;
  uint64_t n_made_ = 0, n_done_ = 0;
  uint64_t work_[kFlights] = {}, total_work_ = 0;  // of those in flight
};

}  // namespace arn::vulkan
