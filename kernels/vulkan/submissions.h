// Submissions that are under way: in their order, each with a fence, and no more at a time than a
// device should be given.
#pragma once

#include <cstdint>

#include "kernels/vulkan/state.h"

namespace arn::vulkan {

class Submissions {
 public:
  // Multiplications in one submission at most: some tens of milliseconds on a small device, which
  // has to answer others too, and the longest that a cancelled run goes on. Two of that size may be
  // under way; smaller ones up to kFlights.
  static constexpr uint64_t kMaxWork = uint64_t{1} << 30;
  static constexpr uint32_t kMaxBuffers = 32;

  Submissions(State* state, Diag* diag) : s_(*state), diag_(diag) {}

  // Waits for earlier ones as far as need be. `work`: multiplications.
  Status Submit(const VkCommandBuffer* commands, uint32_t n, uint64_t work);
  // How many were made; the last one has this number.
  uint64_t n_made() const { return n_made_; }
  // Until that one is done, and all before it.
  Status WaitFor(uint64_t number);
  // What was submitted is waited for in any case, as the next run writes what it reads, but not
  // once the device has failed.
  Status WaitForAll() { return WaitFor(n_made_); }

 private:
  Status WaitForOne();
  Status Lost(Status status);

  State& s_;
  Diag* diag_;
  uint64_t n_made_ = 0, n_done_ = 0;
  uint64_t work_[kFlights] = {}, total_work_ = 0;  // of those under way
};

}  // namespace arn::vulkan
