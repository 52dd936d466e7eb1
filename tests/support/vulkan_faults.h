// Makes a Vulkan device fail on demand by replacing the submission functions in the backend's API
// table.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/vulkan/backend_vulkan.h"
#include "kernels/vulkan/device/device.h"
#include "kernels/vulkan/device/vk_api.h"

namespace arn::test {

// Returns the reason why Vulkan is unavailable; "" if it is available.
inline std::string NoVulkan() {
  vulkan::Device device;
  Diag diag;
  const Status status = device.Open(vulkan::DeviceChoice(), &diag);
  device.Close();
  return status == Status::kOk ? "" : diag.text();
}

enum class Fault : uint32_t {
  kSubmitLost,      // vkQueueSubmit returns VK_ERROR_DEVICE_LOST
  kSubmitNoMemory,  // vkQueueSubmit returns VK_ERROR_OUT_OF_DEVICE_MEMORY
  kFenceTimeout,    // the fence is never signalled
  kFenceLost,       // waiting for the fence returns VK_ERROR_DEVICE_LOST
};
inline constexpr uint32_t kFaultCount = 4;

// Shared by all states: a test has one failing device.
struct FaultPlan {
  Fault fault = Fault::kSubmitLost;
  uint32_t submits_left = UINT32_MAX;  // successful submissions before all fail
  uint32_t n_submits = 0;
  void* state = nullptr;
  PFN_vkQueueSubmit submit = nullptr;
  PFN_vkWaitForFences wait = nullptr;

  bool IsOfSubmit() const { return fault == Fault::kSubmitLost || fault == Fault::kSubmitNoMemory; }
  // Fails the submission after the next n, in the submit or in the wait.
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

// Makes the device of `state` fail as fault_plan specifies from now on.
inline void InstallFaults(void* state) {
  vulkan::Api* api = vulkan::ApiOf(state);
  fault_plan.state = state;
  fault_plan.submit = api->QueueSubmit;
  fault_plan.wait = api->WaitForFences;
  api->QueueSubmit = FaultySubmit;
  api->WaitForFences = FaultyWait;
}

}  // namespace arn::test
