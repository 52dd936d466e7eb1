#include "kernels/vulkan/device/loader.h"

#include <atomic>
#include <cstring>

#include "platform/os/dynamic_library.h"

namespace arn::vulkan {
namespace {

std::atomic<void*> g_library{nullptr};
// Created without the callbacks of a session, which it outlives.
std::atomic<VkInstance> g_kept{VK_NULL_HANDLE};

}  // namespace

Status OpenLoader(PFN_vkGetInstanceProcAddr* out, Diag* diag) {
  void* library = g_library.load(std::memory_order_acquire);
  for (const char* name : {"libvulkan.so.1", "libvulkan.so"}) {
    if (library == nullptr) library = OpenLibrary(name);
  }
  if (library == nullptr) {
    return diag->Fail(Status::kUnsupported, "Vulkan: the loader, libvulkan.so.1, is missing");
  }
  // Two threads that open it at once get handles of the same library.
  g_library.store(library, std::memory_order_release);
  void* entry = FindSymbol(library, "vkGetInstanceProcAddr");
  if (entry == nullptr) {
    return diag->Fail(Status::kUnsupported, "Vulkan: libvulkan.so.1 has no vkGetInstanceProcAddr");
  }
  std::memcpy(out, &entry, sizeof entry);
  return Status::kOk;
}

void KeepDriversLoaded(const Api& api, const VkInstanceCreateInfo& info) {
  if (g_kept.load(std::memory_order_acquire) != VK_NULL_HANDLE) return;
  VkInstance kept = VK_NULL_HANDLE, none = VK_NULL_HANDLE;
  if (api.CreateInstance(&info, nullptr, &kept) != VK_SUCCESS) return;
  if (!g_kept.compare_exchange_strong(none, kept)) api.DestroyInstance(kept, nullptr);
}

}  // namespace arn::vulkan
