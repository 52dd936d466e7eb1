// --rope TYPE:FACTOR of both programs.
#pragma once

#include <string>

namespace arn::cli {

struct RopeOption {
  std::string type;  // "linear" or "yarn"
  double factor = 1.0;
};

// Reads "linear:2" or "yarn:4". Throws CLI::ValidationError.
RopeOption ParseRopeOption(const std::string& text);

}  // namespace arn::cli
