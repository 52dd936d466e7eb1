#include "kernels/vulkan/device/device.h"

#include <cstdlib>
#include <cstring>

#include "kernels/vulkan/device/device_extensions.h"
#include "kernels/vulkan/device/loader.h"
#include "platform/base/arith.h"

namespace arn::vulkan {
namespace {

// Stores the size before each block, for Reallocate.
constexpr size_t kHead = 64;

void* VKAPI_PTR Allocate(void* user, size_t bytes, size_t align, VkSystemAllocationScope) {
  auto* counts = static_cast<DriverAllocations*>(user);
  const size_t head = Max(kHead, align);
  void* block = nullptr;
  // lint:allow heap: requested by the driver, only while a session is created
  if (posix_memalign(&block, head, head + bytes) != 0) return nullptr;  // lint:allow heap: as above
  auto* out = static_cast<std::byte*>(block) + head;
  std::memcpy(out - sizeof(size_t), &bytes, sizeof bytes);
  std::memcpy(out - 2 * sizeof(size_t), &head, sizeof head);
  counts->n_calls.fetch_add(1, std::memory_order_relaxed);
  counts->n_live.fetch_add(1, std::memory_order_relaxed);
  return out;
}

void VKAPI_PTR Free(void* user, void* at) {
  if (at == nullptr) return;
  size_t head;
  std::memcpy(&head, static_cast<std::byte*>(at) - 2 * sizeof(size_t), sizeof head);
  static_cast<DriverAllocations*>(user)->n_live.fetch_sub(1, std::memory_order_relaxed);
  std::free(static_cast<std::byte*>(at) - head);  // lint:allow heap: from Allocate()
}

void* VKAPI_PTR Reallocate(void* user, void* at, size_t bytes, size_t align,
                           VkSystemAllocationScope scope) {
  if (at == nullptr) return Allocate(user, bytes, align, scope);
  if (bytes == 0) {
    Free(user, at);
    return nullptr;
  }
  size_t old;
  std::memcpy(&old, static_cast<std::byte*>(at) - sizeof(size_t), sizeof old);
  void* out = Allocate(user, bytes, align, scope);
  if (out == nullptr) return nullptr;
  std::memcpy(out, at, Min(old, bytes));
  Free(user, at);
  return out;
}

template <typename Function>
bool Find(Function* out, PFN_vkVoidFunction found) {
  *out = reinterpret_cast<Function>(found);
  return found != nullptr;
}

bool Contains(const char* text, const char* part) { return std::strstr(text, part) != nullptr; }

}  // namespace

Status CallError(const char* call, VkResult result, Diag* diag) {
  // Name without its arguments.
  const auto length = static_cast<int>(std::strcspn(call, "("));
  Status status = Status::kDevice;
  if (result == VK_ERROR_DEVICE_LOST) status = Status::kDeviceLost;
  if (result == VK_ERROR_OUT_OF_HOST_MEMORY || result == VK_ERROR_OUT_OF_DEVICE_MEMORY) {
    status = Status::kOutOfMemory;
  }
  return diag->Fail(status, "vk%.*s failed with VkResult %d", length, call, result);
}

Status Device::LoadInstance(Diag* diag) {
  ARN_TRY(OpenLoader(&api_.GetInstanceProcAddr, diag));
  const auto global = [&](const char* name) { return api_.GetInstanceProcAddr(nullptr, name); };
  uint32_t version = 0;
  if (!Find(&api_.CreateInstance, global("vkCreateInstance")) ||
      !Find(&api_.EnumerateInstanceVersion, global("vkEnumerateInstanceVersion")) ||
      api_.EnumerateInstanceVersion(&version) != VK_SUCCESS || version < VK_API_VERSION_1_1) {
    return diag->Fail(Status::kUnsupported, "Vulkan: the loader is older than version 1.1");
  }
  VkApplicationInfo application = {};
  application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
  application.pApplicationName = "arenite";
  application.apiVersion = VK_API_VERSION_1_1;
  VkInstanceCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  info.pApplicationInfo = &application;
  const VkResult created = api_.CreateInstance(&info, &callbacks_, &instance_);
  if (created != VK_SUCCESS) {
    return diag->Fail(Status::kUnsupported, "Vulkan: no driver could be opened (VkResult %d)",
                      created);
  }
  const char* missing = nullptr;
#define ARN_VK_FIND(name) \
  if (!Find(&api_.name, api_.GetInstanceProcAddr(instance_, "vk" #name))) missing = #name;
  ARN_VK_INSTANCE_FUNCTIONS(ARN_VK_FIND)
#undef ARN_VK_FIND
  if (missing != nullptr) {
    return diag->Fail(Status::kUnsupported, "Vulkan: the driver has no vk%s", missing);
  }
  KeepDriversLoaded(api_, info);
  return Status::kOk;
}

const char* Device::Missing(const DeviceChoice& choice, VkPhysicalDevice physical,
                            const DeviceReport& report, uint32_t* family,
                            uint32_t* timestamp_bits) {
  const VkPhysicalDeviceLimits& limits = report.properties.limits;
  if (report.properties.apiVersion < VK_API_VERSION_1_1) return "it has no Vulkan 1.1";
  if (limits.maxPerStageDescriptorStorageBuffers < kMinStorageBuffers) {
    return "it has no maxPerStageDescriptorStorageBuffers of 11";
  }
  if (limits.maxStorageBufferRange < kMaxBindingBytes)
    return "it has no maxStorageBufferRange of 2^27";
  if (limits.minStorageBufferOffsetAlignment > kBindingAlign) {
    return "it has no minStorageBufferOffsetAlignment of at most 256";
  }
  if (limits.maxComputeSharedMemorySize < kMinSharedMemory)
    return "it has no maxComputeSharedMemorySize of 16384";
  if (limits.maxComputeWorkGroupInvocations < 128)
    return "it has no maxComputeWorkGroupInvocations of 128";
  VkQueueFamilyProperties families[16];
  uint32_t n = 16;
  api_.GetPhysicalDeviceQueueFamilyProperties(physical, &n, families);
  for (*family = 0; *family < n; ++*family) {
    if ((families[*family].queueFlags & VK_QUEUE_COMPUTE_BIT) != 0) break;
  }
  if (*family >= n) return "it has no queue with VK_QUEUE_COMPUTE_BIT";
  *timestamp_bits = families[*family].timestampValidBits;
  const char* why = nullptr;
  (void)AvoidedOn(choice.quirks, report, &why);
  return why;
}

Status Device::ChoosePhysical(const DeviceChoice& choice, Diag* diag) {
  constexpr uint32_t kMost = 16;
  VkPhysicalDevice found[kMost];
  uint32_t n = kMost;
  const VkResult result = api_.EnumeratePhysicalDevices(instance_, &n, found);
  if ((result != VK_SUCCESS && result != VK_INCOMPLETE) || n == 0) {
    return diag->Fail(Status::kUnsupported, "Vulkan: no device was found (VkResult %d)", result);
  }
  // Among suitable devices of that name: discrete before integrated before software.
  const auto rank = [](VkPhysicalDeviceType type) {
    if (type == VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU) return 4;
    if (type == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU) return 3;
    if (type == VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU) return 2;
    return 1;
  };
  char* end = nullptr;
  const bool has_name = choice.name != nullptr && choice.name[0] != '\0';
  const unsigned long index = has_name ? std::strtoul(choice.name, &end, 10) : 0;
  const bool is_number = has_name && *end == '\0';
  int best = 0;
  for (uint32_t i = 0; i < n; ++i) {
    const DeviceReport report = ReportOf(api_, found[i]);
    const char* name = report.properties.deviceName;
    if (is_number ? i != index : has_name && !Contains(name, choice.name)) continue;
    uint32_t family = 0, timestamp_bits = 0;
    const char* missing = Missing(choice, found[i], report, &family, &timestamp_bits);
    if (choice.hardware_only && !has_name &&
        report.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU) {
      missing = "it is a software device, slower than the CPU backend; select it by name to use it";
    }
    if (missing != nullptr) {
      if (best == 0) {
        (void)diag->Fail(Status::kUnsupported, "Vulkan: %s cannot be used: %s", name, missing);
      }
      continue;
    }
    if (rank(report.properties.deviceType) <= best) continue;
    best = rank(report.properties.deviceType);
    physical_ = found[i];
    report_ = report;
    family_ = family;
    timestamp_bits_ = timestamp_bits;
  }
  if (best != 0) {
    diag->Clear();
    return Status::kOk;
  }
  if (diag->text()[0] != '\0') return Status::kUnsupported;
  return diag->Fail(Status::kUnsupported, "Vulkan: none of %u devices is named '%s'", n,
                    has_name ? choice.name : "");
}

Status Device::Create(const DeviceChoice& choice, Diag* diag) {
  const char* why = nullptr;
  avoid_ = choice.avoid | AvoidedOn(choice.quirks, report_, &why);
  use_ = UseOf(report_, avoid_);
  DescribeQuirks(choice.quirks, report_, quirks_, sizeof quirks_);
  api_.GetPhysicalDeviceMemoryProperties(physical_, &memory_);
  ExtensionList list;
  ChooseExtensions(&list);

  const float priority = 1.0f;
  VkDeviceQueueCreateInfo queue = {};
  queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  queue.queueFamilyIndex = family_;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  VkDeviceCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  info.pNext = list.features;
  info.enabledExtensionCount = list.n;
  info.ppEnabledExtensionNames = list.names;
  ARN_VK(api_, CreateDevice(physical_, &info, &callbacks_, &device_), diag);
  const char* missing = nullptr;
#define ARN_VK_FIND(name) \
  if (!Find(&api_.name, api_.GetDeviceProcAddr(device_, "vk" #name))) missing = #name;
  ARN_VK_DEVICE_FUNCTIONS(ARN_VK_FIND)
#undef ARN_VK_FIND
  if (missing != nullptr) {
    return diag->Fail(Status::kUnsupported, "Vulkan: %s has no vk%s", name(), missing);
  }
  if (use_.import_align != 0 &&
      !Find(&api_.GetMemoryHostPointerPropertiesEXT,
            api_.GetDeviceProcAddr(device_, "vkGetMemoryHostPointerPropertiesEXT"))) {
    use_.import_align = 0;
  }
  api_.GetDeviceQueue(device_, family_, 0, &queue_);
  return Status::kOk;
}

Status Device::Open(const DeviceChoice& choice, Diag* diag) {
  callbacks_.pUserData = &allocations_;
  callbacks_.pfnAllocation = Allocate;
  callbacks_.pfnReallocation = Reallocate;
  callbacks_.pfnFree = Free;
  ARN_TRY(LoadInstance(diag));
  ARN_TRY(ChoosePhysical(choice, diag));
  return Create(choice, diag);
}

void Device::Close() {
  if (device_ != VK_NULL_HANDLE && api_.DestroyDevice != nullptr) {
    api_.DestroyDevice(device_, &callbacks_);
  }
  if (instance_ != VK_NULL_HANDLE && api_.DestroyInstance != nullptr) {
    api_.DestroyInstance(instance_, &callbacks_);
  }
  device_ = VK_NULL_HANDLE;
  instance_ = VK_NULL_HANDLE;
}

uint64_t Device::TicksToNs(uint64_t ticks) const {
  const uint64_t mask = timestamp_bits_ >= 64 ? UINT64_MAX : (uint64_t{1} << timestamp_bits_) - 1;
  const double period = static_cast<double>(properties().limits.timestampPeriod);
  return static_cast<uint64_t>(static_cast<double>(ticks & mask) * period);
}

}  // namespace arn::vulkan
