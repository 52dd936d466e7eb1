// Detects sessions that cannot be created because this machine has no Vulkan.
#pragma once

#include <string>

namespace arn::test {

// `reason` is the message of arn_session_create. A model the backend refuses gives another one.
inline bool HasNoVulkan(const std::string& reason) {
  return reason.find("libvulkan.so.1, is missing") != std::string::npos ||
         reason.find("Vulkan: no driver") != std::string::npos ||
         reason.find("Vulkan: no device") != std::string::npos;
}

}  // namespace arn::test
