#include "tools/cli/rope_option.h"

#include <cstdlib>

#include "CLI/CLI.hpp"

namespace arn::cli {

RopeOption ParseRopeOption(const std::string& text) {
  const size_t colon = text.find(':');
  RopeOption rope;
  rope.type = text.substr(0, colon);
  char* end = nullptr;
  if (colon != std::string::npos) rope.factor = std::strtod(text.c_str() + colon + 1, &end);
  const bool is_type = rope.type == "linear" || rope.type == "yarn";
  if (!is_type || end == nullptr || *end != '\0' || !(rope.factor > 1 && rope.factor <= 1024)) {
    throw CLI::ValidationError(
        "--rope: " + text +
        ": expected linear:FACTOR or yarn:FACTOR, with a factor above 1, such as yarn:4");
  }
  return rope;
}

}  // namespace arn::cli
