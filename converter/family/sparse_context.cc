#include "converter/family/sparse_context.h"

#include <algorithm>

#include "converter/base/error.h"
#include "nlohmann/json.hpp"

namespace arn::convert {

void LimitContext(const Family& family, ConfigReader* config, DecoderSpec* spec,
                  std::vector<std::string>* warnings) {
  if (family.only_layer_type != nullptr) {
    const nlohmann::json* types = config->Find("layer_types");
    const bool is_list = types == nullptr || types->is_array();
    if (!is_list || (types != nullptr && std::any_of(types->begin(), types->end(), [&](auto& type) {
                       return type != family.only_layer_type;
                     }))) {
      config->FailKey("layer_types", family.only_layer_type);
    }
  }
  if (family.sparse_tokens_key == nullptr) return;
  const uint32_t most =
      config->Count(family.sparse_tokens_key).value_or(family.default_sparse_tokens);
  if (most >= spec->max_context) return;
  warnings->push_back(
      Format("%s: %s %u: the context ends there, since attention to some of more "
             "tokens is not supported",
             config->label().c_str(), family.sparse_tokens_key, most));
  spec->max_context = most;
}

}  // namespace arn::convert
