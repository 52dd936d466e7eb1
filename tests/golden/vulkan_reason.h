// Whether a session could not be created because this machine has no Vulkan.
#pragma once

#include <string>

namespace arn::test {

// `reason`: what arn_session_create says. A model that the backend refuses is another one.
inline bool HasNoVulkan(const std::string& reason) {
  return reason.find("Vulkan: there is no loader") != std::string::npos ||
         reason.find("Vulkan: no driver") != std::string::npos ||
         reason.find("Vulkan: no device") != std::string::npos;
}

}  // namespace arn::test
