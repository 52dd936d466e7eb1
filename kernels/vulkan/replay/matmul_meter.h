// Measures matmuls on the session's device with its own weights. REQUIRES: called before the
// session's first run, because it overwrites the activations.
#pragma once

#include "kernels/vulkan/replay/vulkan_state.h"
#include "kernels/vulkan/tune/tune_matmuls.h"

namespace arn::vulkan {

class DeviceMeter final : public MatmulMeter {
 public:
  explicit DeviceMeter(State* state) : s_(*state) {}
  ~DeviceMeter() { Close(); }

  Status Open(Diag* diag);
  Status Measure(Span<const Dispatch> dispatches, uint32_t rows, uint64_t* ns, Diag* diag) override;
  uint64_t NowNs() override;

 private:
  void Close();
  Status RecordOnce(Span<const Dispatch> dispatches, uint32_t rows, VkPipeline pipeline,
                    Diag* diag);
  Status RunOnce(uint64_t* ns, Diag* diag);
  Status MeasureWith(VkPipeline pipeline, Span<const Dispatch> dispatches, uint32_t rows,
                     uint64_t* ns, Diag* diag);

  State& s_;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
  VkDescriptorPool descriptors_ = VK_NULL_HANDLE;
  VkDescriptorSet sets_[kMostTimed] = {};
  VkQueryPool times_ = VK_NULL_HANDLE;  // null: uses the host's clock
};

}  // namespace arn::vulkan
