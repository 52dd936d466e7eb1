// bench --count: what a GPU would do, and the time that its limits allow, without the GPU.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/arenite/model.h"

namespace arn::tool {

struct CountRequest {
  std::vector<std::string> profiles;
  std::vector<uint32_t> prefills, depths;
  bool decodes = true;
  bool json = false;
};
int BenchCount(const Model& model, arn_session_options options, const CountRequest& request);

}  // namespace arn::tool
