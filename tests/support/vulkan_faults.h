// A Vulkan device that fails when a test wants it to: the functions that a submission rests on are
// replaced in the backend's own table.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/vulkan/backend_vulkan.h"
#include "kernels/vulkan/device.h"
#include "kernels/vulkan/vk_api.h"

namespace arn::test {

// Why there is no Vulkan here; "" when there is.
inline std::string NoVulkan() {
  vulkan::Device device;
  Diag diag;
  const Status status = device.Open(vulkan::DeviceChoice(), &diag);
  device.Close();
  return status == Status::kOk ? "" : diag.text();
}

enum class Fault : uint32_t {
  kSubmitLost,      // the submission is refused: VK_ERROR_DEVICE_LOST
  kSubmitNoMemory,  // VK_ERROR_OUT_OF_DEVICE_MEMORY
  kFenceTimeout,    // what was submitted is never done
  kFenceLost,       // VK_ERROR_DEVICE_LOST while it is waited for
};
inline constexpr uint32_t kFaultCount = 4;

// One for all states: a test has one device that fails.
struct FaultPlan {
  Fault fault = Fault::kSubmitLost;
  uint32_t submits_left = UINT32_MAX;  // that still succeed; then all fail
  uint32_t n_submits = 0;
  void* state = nullptr;
  PFN_vkQueueSubmit submit = nullptr;
  PFN_vkWaitForFences wait = nullptr;

  bool IsOfSubmit() const { return fault == Fault::kSubmitLost || fault == Fault::kSubmitNoMemory; }
  // The submission after n more: to make it, or to wait for it.
  void FailAt(Fault how, uint32_t n) {
    fault = how;
    submits_left = IsOfSubmit() ? n : n + 1;
  }
  bool Fails(bool at_submit) const { return submits_left == 0 && IsOfSubmit() == at_submit; }
};
inline FaultPlan fault_plan;

inline VkResult VKAPI_CALL FaultySubmit(VkQueue queue, uint32_t n, const VkSubmitInfo* infos,
                                        VkFence fence) {
  FaultPlan& plan = fault_plan;
  if (plan.Fails(true)) {
    return plan.fault == Fault::kSubmitLost ? VK_ERROR_DEVICE_LOST : VK_ERROR_OUT_OF_DEVICE_MEMORY;
  }
  if (plan.submits_left != 0 && plan.submits_left != UINT32_MAX) --plan.submits_left;
  ++plan.n_submits;
  return plan.submit(queue, n, infos, fence);
}

inline VkResult VKAPI_CALL FaultyWait(VkDevice device, uint32_t n, const VkFence* fences,
                                      VkBool32 all, uint64_t timeout) {
  const VkResult result = fault_plan.wait(device, n, fences, all, timeout);
  if (!fault_plan.Fails(false)) return result;
  return fault_plan.fault == Fault::kFenceTimeout ? VK_TIMEOUT : VK_ERROR_DEVICE_LOST;
}

// From now on the state's device fails as fault_plan says.
inline void InstallFaults(void* state) {
  vulkan::Api* api = vulkan::ApiOf(state);
  fault_plan.state = state;
  fault_plan.submit = api->QueueSubmit;
  fault_plan.wait = api->WaitForFences;
  api->QueueSubmit = FaultySubmit;
  api->WaitForFences = FaultyWait;
}

}  // namespace arn::test
