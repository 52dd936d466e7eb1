// Commands of a dispatch, for recorded steps and for steps that are timed.
#pragma once

#include <cstdint>

#include "kernels/vulkan/replay/vulkan_state.h"

namespace arn::vulkan {

// Says what waits for the dispatches before a barrier.
enum class BarrierTo : uint8_t {
  kDispatch,
  kSegment,  // the first dispatch of a command buffer, and its grid
  kHost,     // reads once the fence is signalled
};
void AddBarrier(const Api& api, VkCommandBuffer commands, BarrierTo to);

// Creates a pool for n sets. The caller destroys it, which also frees its sets.
Status CreateSetPool(const State& state, uint32_t n, VkDescriptorPool* out, Diag* diag);
Status AllocateSet(const State& state, VkDescriptorPool pool, VkDescriptorSet* out, Diag* diag);
// Creates a pool for n timestamps, which the caller destroys.
Status CreateTimes(const State& state, uint32_t n, VkQueryPool* out, Diag* diag);

// Binds what a dispatch needs but for its grid.
void BindDispatch(const State& state, const Dispatch& dispatch, VkPipeline pipeline,
                  VkDescriptorSet set, VkCommandBuffer commands);
// Binds and dispatches. index: of the dispatch in the program, and of its grid.
void RecordDispatch(const State& state, const Dispatch& dispatch, uint32_t index,
                    VkPipeline pipeline, VkDescriptorSet set, VkCommandBuffer commands);

}  // namespace arn::vulkan
