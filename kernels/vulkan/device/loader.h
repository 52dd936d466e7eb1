// The Vulkan loader, libvulkan.so.1. Opened once per process and never closed, and an instance of
// it is never destroyed, so that drivers stay loaded: some can be loaded a few times only. With
// NVIDIA's 580.159, the 31st vkCreateInstance of a process that closed the library each time
// returned VK_ERROR_INCOMPATIBLE_DRIVER; with it open, 120 of 120 succeeded.
// Decision 0020.
#pragma once

#include "kernels/vulkan/device/vk_api.h"
#include "platform/base/diag.h"
#include "platform/base/status.h"

namespace arn::vulkan {

// Any thread may call both functions.

// Finds vkGetInstanceProcAddr. Returns kUnsupported if there is no loader.
Status OpenLoader(PFN_vkGetInstanceProcAddr* out, Diag* diag);

// Keeps the drivers loaded for the rest of the process. REQUIRES: an instance of `api` exists. If
// another one cannot be created, drivers may be unloaded with that of the caller.
void KeepDriversLoaded(const Api& api, const VkInstanceCreateInfo& info);

}  // namespace arn::vulkan
