// The Vulkan loader, libvulkan.so.1. Opened once per process and never closed, and an instance of
// it is never destroyed, so that drivers stay loaded: some cannot be loaded any number of times.
// With NVIDIA's 580.159, vkCreateInstance returned VK_ERROR_INCOMPATIBLE_DRIVER after 13 to 30
// sessions one after the other.
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
