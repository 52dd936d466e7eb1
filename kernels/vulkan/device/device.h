// A Vulkan device with one queue, and its capabilities.
#pragma once

#include <atomic>
#include <cstdint>

#include "kernels/vulkan/device/device_report.h"
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
  const char* name() const { return properties().deviceName; }
  const DeviceReport& report() const { return report_; }
  const VkPhysicalDeviceProperties& properties() const { return report_.properties; }
  bool uses_subgroups() const { return use_.subgroups; }
  // Invocations per subgroup; 0 if subgroups are not used.
  uint32_t subgroup_size() const { return use_.subgroups ? report_.subgroup_size : 0; }
  // True if a pipeline can require full subgroups. Otherwise subgroup_size() is only the size the
  // driver reports; some drivers run smaller subgroups.
  bool has_full_subgroups() const { return use_.full_subgroups; }
  // True if a pipeline can require subgroups of subgroup_size().
  bool has_sized_subgroups() const { return use_.sized_subgroups; }
  bool uses_dot() const { return use_.dot; }
  bool uses_half() const { return use_.half; }
  // Shapes of cooperative matrices, of int8 and of f16; empty if not used.
  CoopShape coop() const { return coop_; }
  CoopShape half_coop() const { return half_coop_; }
  // Valid bits of the queue's timestamps; 0: not supported.
  uint32_t timestamp_bits() const { return timestamp_bits_; }
  // Converts the difference of two timestamps.
  uint64_t TicksToNs(uint64_t ticks) const;
  bool is_unified() const { return use_.unified; }
  // Alignment of host memory that the device can read in place; 0: it cannot.
  uint64_t import_align() const { return use_.import_align; }
  uint32_t chunk_rows() const { return use_.chunk_rows; }
  // Avoid flags, of the quirks and of the choice.
  uint32_t avoided() const { return avoid_; }
  // The quirks that apply, for people; "" if there are none.
  const char* quirks() const { return quirks_; }
  uint64_t max_binding_bytes() const { return properties().limits.maxStorageBufferRange; }
  const VkPhysicalDeviceMemoryProperties& memory() const { return memory_; }
  const VkAllocationCallbacks* callbacks() const { return &callbacks_; }
  DriverAllocations* allocations() { return &allocations_; }

 private:
  Status LoadInstance(Diag* diag);
  Status ChoosePhysical(const DeviceChoice& choice, Diag* diag);
  // Returns null if the device can run this backend, else the missing feature.
  const char* Missing(const DeviceChoice& choice, VkPhysicalDevice physical,
                      const DeviceReport& report, uint32_t* family, uint32_t* timestamp_bits);
  Status Create(const DeviceChoice& choice, Diag* diag);
  // Lists the extensions of what is used (device_extensions.cc).
  struct ExtensionList;
  void ChooseExtensions(ExtensionList* list);
  void FindCoopShapes();

  Api api_;
  VkInstance instance_ = VK_NULL_HANDLE;
  VkPhysicalDevice physical_ = VK_NULL_HANDLE;
  VkDevice device_ = VK_NULL_HANDLE;
  VkQueue queue_ = VK_NULL_HANDLE;
  uint32_t family_ = 0, timestamp_bits_ = 0;
  DeviceReport report_;
  DeviceUse use_;
  uint32_t avoid_ = 0;
  char quirks_[512] = "";
  VkPhysicalDeviceMemoryProperties memory_ = {};
  CoopShape coop_, half_coop_;
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
