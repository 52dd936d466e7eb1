#include "kernels/vulkan/device/buffer.h"

#include "platform/base/arith.h"
#include "platform/os/backing_file.h"

namespace arn::vulkan {
namespace {

constexpr VkMemoryPropertyFlags kHost =
    VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;

// Returns the first memory type with all of `flags`; UINT32_MAX if there is none.
uint32_t TypeWith(const Device& device, uint32_t allowed, VkMemoryPropertyFlags flags) {
  const VkPhysicalDeviceMemoryProperties& memory = device.memory();
  for (uint32_t i = 0; i < memory.memoryTypeCount; ++i) {
    const bool has_all = (memory.memoryTypes[i].propertyFlags & flags) == flags;
    if ((allowed >> i & 1) != 0 && has_all) return i;
  }
  return UINT32_MAX;
}

bool IsOnDevice(BufferUse use) { return use == BufferUse::kDevice || use == BufferUse::kShared; }

// Returns the best memory type for a use, from an ordered list of preferences.
uint32_t ChooseType(const Device& device, BufferUse use, uint32_t allowed) {
  VkMemoryPropertyFlags wishes[4] = {};
  uint32_t n = 0;
  if (IsOnDevice(use)) {
    constexpr VkMemoryPropertyFlags kSeen = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | kHost;
    if (device.is_unified() && use == BufferUse::kShared) {
      wishes[n++] = kSeen | VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
    }
    if (device.is_unified()) wishes[n++] = kSeen;
    wishes[n++] = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
    wishes[n++] = 0;
  } else {
    if (use == BufferUse::kToHost || use == BufferUse::kStaging) {
      wishes[n++] = kHost | VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
    }
    wishes[n++] = kHost;
  }
  for (uint32_t i = 0; i < n; ++i) {
    const uint32_t type = TypeWith(device, allowed, wishes[i]);
    if (type != UINT32_MAX) return type;
  }
  return UINT32_MAX;
}

}  // namespace

Status CreateBuffer(const Device& device, BufferUse use, uint64_t bytes, Buffer* out, Diag* diag) {
  const Api& api = device.api();
  *out = Buffer();
  out->bytes = Max<uint64_t>(AlignUp(bytes, Device::kBindingAlign), Device::kBindingAlign);
  VkBufferCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  info.size = out->bytes;
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
               VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  if (use == BufferUse::kFromHost) info.usage |= VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT;
  ARN_VK(api, CreateBuffer(device.handle(), &info, device.callbacks(), &out->handle), diag);
  VkMemoryRequirements needs = {};
  api.GetBufferMemoryRequirements(device.handle(), out->handle, &needs);
  const uint32_t type = ChooseType(device, use, needs.memoryTypeBits);
  if (type == UINT32_MAX) {
    return diag->Fail(Status::kUnsupported, "Vulkan: %s has no host-visible memory", device.name());
  }
  VkMemoryAllocateInfo allocate = {};
  allocate.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  allocate.allocationSize = needs.size;
  allocate.memoryTypeIndex = type;
  const VkResult result =
      api.AllocateMemory(device.handle(), &allocate, device.callbacks(), &out->memory);
  if (result != VK_SUCCESS) {
    return diag->Fail(Status::kOutOfMemory,
                      "Vulkan: %s could not allocate %llu bytes (VkResult %d)", device.name(),
                      static_cast<unsigned long long>(needs.size), result);
  }
  ARN_VK(api, BindBufferMemory(device.handle(), out->handle, out->memory, 0), diag);
  const VkMemoryPropertyFlags flags = device.memory().memoryTypes[type].propertyFlags;
  const bool is_mapped = !IsOnDevice(use) || (device.is_unified() && (flags & kHost) == kHost);
  if (!is_mapped) return Status::kOk;
  void* mapped = nullptr;
  ARN_VK(api, MapMemory(device.handle(), out->memory, 0, VK_WHOLE_SIZE, 0, &mapped), diag);
  out->mapped = static_cast<std::byte*>(mapped);
  out->is_cached = (flags & VK_MEMORY_PROPERTY_HOST_CACHED_BIT) != 0;
  return Status::kOk;
}

namespace {

constexpr VkExternalMemoryHandleTypeFlagBits kHostMemory =
    VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT;

VkResult Import(const Device& device, const std::byte* pages, uint64_t bytes, Buffer* out) {
  const Api& api = device.api();
  // The device only reads it.
  void* const at = const_cast<std::byte*>(pages);
  VkMemoryHostPointerPropertiesEXT host = {};
  host.sType = VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT;
  VkResult result = api.GetMemoryHostPointerPropertiesEXT(device.handle(), kHostMemory, at, &host);
  if (result != VK_SUCCESS) return result;
  VkExternalMemoryBufferCreateInfo external = {};
  external.sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO;
  external.handleTypes = kHostMemory;
  VkBufferCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  info.pNext = &external;
  info.size = out->bytes;
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
  result = api.CreateBuffer(device.handle(), &info, device.callbacks(), &out->handle);
  if (result != VK_SUCCESS) return result;
  VkMemoryRequirements needs = {};
  api.GetBufferMemoryRequirements(device.handle(), out->handle, &needs);
  // Needs coherent memory: what the host wrote is in its caches.
  const uint32_t type = TypeWith(device, needs.memoryTypeBits & host.memoryTypeBits, kHost);
  if (type == UINT32_MAX || needs.size > bytes) return VK_ERROR_INVALID_EXTERNAL_HANDLE;
  VkImportMemoryHostPointerInfoEXT import = {};
  import.sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT;
  import.handleType = kHostMemory;
  import.pHostPointer = at;
  VkMemoryAllocateInfo allocate = {};
  allocate.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  allocate.pNext = &import;
  allocate.allocationSize = bytes;
  allocate.memoryTypeIndex = type;
  result = api.AllocateMemory(device.handle(), &allocate, device.callbacks(), &out->memory);
  if (result != VK_SUCCESS) return result;
  return api.BindBufferMemory(device.handle(), out->handle, out->memory, 0);
}

}  // namespace

bool ImportBuffer(const Device& device, const std::byte* pages, uint64_t bytes, uint64_t readable,
                  Buffer* out) {
  *out = Buffer();
  const uint64_t align = device.import_align();
  if (align == 0 || reinterpret_cast<uintptr_t>(pages) % align != 0) return false;
  // Units are whole, and may end behind the file but not behind its last page.
  const uint64_t whole = AlignUp(bytes, align);
  if (whole > AlignUp(readable, OsPageBytes())) return false;
  out->bytes = AlignUp(bytes, Device::kBindingAlign);
  if (out->bytes > whole || Import(device, pages, whole, out) != VK_SUCCESS) {
    DestroyBuffer(device, out);
    return false;
  }
  out->pages = pages;
  out->is_imported = true;
  return true;
}

void DestroyBuffer(const Device& device, Buffer* buffer) {
  if (buffer->handle != VK_NULL_HANDLE) {
    device.api().DestroyBuffer(device.handle(), buffer->handle, device.callbacks());
  }
  if (buffer->memory != VK_NULL_HANDLE) {
    device.api().FreeMemory(device.handle(), buffer->memory, device.callbacks());
  }
  *buffer = Buffer();
}

}  // namespace arn::vulkan
