#include "converter/tokenizer/shown_json.h"

#include "nlohmann/json.hpp"

namespace arn::convert {

std::string Shown(const nlohmann::json& value) {
  constexpr size_t kMost = 80;
  std::string text = value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (text.size() > kMost) text = text.substr(0, kMost - 3) + "...";
  return text;
}

}  // namespace arn::convert
