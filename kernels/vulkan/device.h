// A Vulkan device with one queue, and what it can do.
#pragma once

#include <atomic>
#include <cstdint>

#include "kernels/vulkan/quirks.h"
#include "kernels/vulkan/vk_api.h"
#include "kernels/vulkan/vk_coop.h"
#include "platform/base/diag.h"
#include "platform/base/result.h"
#include "platform/base/status.h"

namespace arn::vulkan {

// How much a driver has asked our callbacks for. Counted, so that tests can see when.
struct DriverAllocations {
  std::atomic<uint64_t> n_calls{0};  // allocations ever made
  std::atomic<int64_t> n_live{0};    // and those that are still there
};

struct DeviceChoice {
  const char* name = nullptr;  // a number, or a part of the device's name; null: the first best
  bool passes_over_software = false;  // unless it is named
  // What tests choose; users have the defaults.
  uint32_t avoid = 0;  // Avoid, whatever the device has, but for kAvoidDevice
  Span<const Quirk> quirks = KnownQuirks();
};

class Device {
 public:
  // Storage buffers in a shader, what a binding may span, and a workgroup: what every device that
  // this backend serves has. Plans rest on them, not on the device's own limits.
  static constexpr uint32_t kMinStorageBuffers = 10;
  static constexpr uint64_t kMaxBindingBytes = uint64_t{1} << 27;
  static constexpr uint64_t kBindingAlign = 256;

  // kUnsupported: no loader, no device of that name, or one that lacks what is needed; the text
  // names it. kDevice: the driver failed. After a failure Close() may and should be called.
  Status Open(const DeviceChoice& choice, Diag* diag);
  void Close();

  const Api& api() const { return api_; }
  Api* mutable_api() { return &api_; }  // for tests
  VkDevice handle() const { return device_; }
  VkQueue queue() const { return queue_; }
  uint32_t queue_family() const { return family_; }
  const char* name() const { return properties_.deviceName; }
  const VkPhysicalDeviceProperties& properties() const { return properties_; }
  bool uses_subgroups() const { return uses_subgroups_; }
  // Invocations of a subgroup; 0 when they are not used.
  uint32_t subgroup_size() const { return uses_subgroups_ ? subgroup_size_ : 0; }
  bool uses_dot() const { return uses_dot_; }
  // Of cooperative matrices; none where they are not used.
  CoopShape coop() const { return coop_; }
  // Of the queue's timestamps; 0: it has none.
  uint32_t timestamp_bits() const { return timestamp_bits_; }
  bool is_unified() const { return is_unified_; }
  uint64_t max_binding_bytes() const { return properties_.limits.maxStorageBufferRange; }
  const VkPhysicalDeviceMemoryProperties& memory() const { return memory_; }
  const VkAllocationCallbacks* callbacks() const { return &callbacks_; }
  DriverAllocations* allocations() { return &allocations_; }

 private:
  Status LoadInstance(Diag* diag);
  Status ChoosePhysical(const DeviceChoice& choice, Diag* diag);
  // Whether the device can run this backend; otherwise what is missing.
  const char* Missing(const DeviceChoice& choice, VkPhysicalDevice physical, uint32_t* family,
                      uint32_t* timestamp_bits);
  Status Create(const DeviceChoice& choice, Diag* diag);
  // Those that are there and not avoided (device_extensions.cc).
  struct ExtensionList;
  void ChooseExtensions(uint32_t avoid, ExtensionList* list);
  CoopShape FindCoopShape() const;

  Api api_;
  void* library_ = nullptr;
  VkInstance instance_ = VK_NULL_HANDLE;
  VkPhysicalDevice physical_ = VK_NULL_HANDLE;
  VkDevice device_ = VK_NULL_HANDLE;
  VkQueue queue_ = VK_NULL_HANDLE;
  uint32_t family_ = 0, timestamp_bits_ = 0;
  VkPhysicalDeviceProperties properties_ = {};
  VkPhysicalDeviceMemoryProperties memory_ = {};
  CoopShape coop_;
  uint32_t subgroup_size_ = 0;
  bool uses_subgroups_ = false, uses_dot_ = false, is_unified_ = false;
  VkAllocationCallbacks callbacks_ = {};
  DriverAllocations allocations_;
};

// kOutOfMemory, kDeviceLost or kDevice, with the call's name.
Status FailedCall(const char* call, VkResult result, Diag* diag);

}  // namespace arn::vulkan

// Returns from the enclosing function when a Vulkan call did not succeed. `call`: Name(arguments).
#define ARN_VK(api, call, diag)                                     \
  do {                                                              \
    const VkResult arn_vk_result = (api).call;                      \
    if (arn_vk_result != VK_SUCCESS) {                              \
      return ::arn::vulkan::FailedCall(#call, arn_vk_result, diag); \
    }                                                               \
  } while (false)
