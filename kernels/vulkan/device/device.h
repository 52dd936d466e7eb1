// A Vulkan device with one queue, and its capabilities.
#pragma once

#include <atomic>
#include <cstdint>

#include "kernels/vulkan/device/quirks.h"
#include "kernels/vulkan/device/vk_api.h"
#include "kernels/vulkan/device/vk_coop.h"
#include "platform/base/diag.h"
#include "platform/base/result.h"
#include "platform/base/status.h"

namespace arn::vulkan {

// Allocations the driver made through our callbacks. Counted for tests.
struct DriverAllocations {
  std::atomic<uint64_t> n_calls{0};  // allocations in total
  std::atomic<int64_t> n_live{0};    // current allocations
};

struct DeviceChoice {
  const char* name = nullptr;  // device number or part of its name; null: the best device
  bool hardware_only = false;  // unless named
  // For tests; users keep the defaults.
  uint32_t avoid = 0;  // Avoid flags applied to any device; kAvoidDevice is ignored
  Span<const Quirk> quirks = KnownQuirks();
};

class Device {
 public:
  // Minimum limits of every device this backend supports: storage buffers per shader, and bytes and
  // alignment of a binding. Plans rely on these, not on the limits of the actual device.
  static constexpr uint32_t kMinStorageBuffers = 11;
  static constexpr uint64_t kMaxBindingBytes = uint64_t{1} << 27;
  // Shared memory of a workgroup that every device has, in bytes.
  static constexpr uint32_t kMinSharedMemory = 16384;
  static constexpr uint64_t kBindingAlign = 256;

  // Opens the device. Returns kUnsupported if there is no loader, no device of that name, or a
  // required feature is missing (named in the text); kDevice if the driver failed. Call Close()
  // even after a failure.
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
  // Invocations per subgroup; 0 if subgroups are not used.
  uint32_t subgroup_size() const { return uses_subgroups_ ? subgroup_size_ : 0; }
  // True if a pipeline can require full subgroups. Otherwise subgroup_size() is only the size the
  // driver reports; some drivers run smaller subgroups.
  bool has_full_subgroups() const { return has_full_subgroups_; }
  // True if a pipeline can require subgroups of subgroup_size().
  bool has_sized_subgroups() const { return has_sized_subgroups_; }
  bool uses_dot() const { return uses_dot_; }
  // Shape of cooperative matrices; empty if not used.
  CoopShape coop() const { return coop_; }
  // Valid bits of the queue's timestamps; 0: not supported.
  uint32_t timestamp_bits() const { return timestamp_bits_; }
  // Converts the difference of two timestamps.
  uint64_t TicksToNs(uint64_t ticks) const;
  bool is_unified() const { return is_unified_; }
  uint64_t max_binding_bytes() const { return properties_.limits.maxStorageBufferRange; }
  const VkPhysicalDeviceMemoryProperties& memory() const { return memory_; }
  const VkAllocationCallbacks* callbacks() const { return &callbacks_; }
  DriverAllocations* allocations() { return &allocations_; }

 private:
  Status LoadInstance(Diag* diag);
  Status ChoosePhysical(const DeviceChoice& choice, Diag* diag);
  // Returns null if the device can run this backend, else the missing feature.
  const char* Missing(const DeviceChoice& choice, VkPhysicalDevice physical, uint32_t* family,
                      uint32_t* timestamp_bits);
  Status Create(const DeviceChoice& choice, Diag* diag);
  // Selects the available extensions that are not avoided (device_extensions.cc).
  struct ExtensionList;
  void ChooseExtensions(uint32_t avoid, ExtensionList* list);
  void ChooseSubgroups(ExtensionList* list);
  CoopShape FindCoopShape() const;

  Api api_;
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
  bool has_full_subgroups_ = false, has_sized_subgroups_ = false;
  VkAllocationCallbacks callbacks_ = {};
  DriverAllocations allocations_;
};

// Returns kOutOfMemory, kDeviceLost or kDevice, with the name of the call.
Status CallError(const char* call, VkResult result, Diag* diag);

}  // namespace arn::vulkan

// Returns from the enclosing function if a Vulkan call fails. `call`: Name(arguments).
#define ARN_VK(api, call, diag)                                    \
  do {                                                             \
    const VkResult arn_vk_result = (api).call;                     \
    if (arn_vk_result != VK_SUCCESS) {                             \
      return ::arn::vulkan::CallError(#call, arn_vk_result, diag); \
    }                                                              \
  } while (false)
