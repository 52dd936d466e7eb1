#include "converter/gguf/gguf_keys.h"

#include <algorithm>

#include "nlohmann/json.hpp"

namespace arn::convert {

std::optional<uint32_t> GgufKeys::Count(const char* name) {
  const nlohmann::json* value = metadata_->Find(Key(name));
  if (value == nullptr || !value->is_array()) {
    if (value != nullptr && *value == 0) return std::nullopt;
    return metadata_->Count(Key(name));
  }
  const bool is_one =
      !value->empty() && std::all_of(value->begin(), value->end(),
                                     [&](const nlohmann::json& v) { return v == (*value)[0]; });
  if (!is_one || !(*value)[0].is_number_integer() || (*value)[0] <= 0 || (*value)[0] > INT32_MAX) {
    Fail(name, "one number for all layers");
  }
  return (*value)[0].get<uint32_t>();
}

uint32_t GgufKeys::Required(const char* name) {
  const std::optional<uint32_t> count = Count(name);
  if (!count) Fail(name, "a whole number above 0");
  return *count;
}

uint32_t GgufKeys::Blocks() {
  const uint32_t n = Required("block_count");
  if (n > 4096) Fail("block_count", "at most 4096");
  return n;
}

std::vector<uint32_t> GgufKeys::ByLayer(const char* name, uint32_t n) {
  const nlohmann::json* value = metadata_->Find(Key(name));
  if (value == nullptr || !value->is_array()) return std::vector<uint32_t>(n, Required(name));
  if (value->size() < n) Fail(name, "a number for each layer");
  std::vector<uint32_t> numbers;
  for (const nlohmann::json& number : *value) {
    if (!number.is_number_integer() || number < 0 || number > INT32_MAX) {
      Fail(name, "a number for each layer");
    }
    if (numbers.size() < n) numbers.push_back(number.get<uint32_t>());
  }
  return numbers;
}

std::vector<double> GgufKeys::Numbers(const char* name, uint32_t n) {
  const nlohmann::json* value = metadata_->Find(Key(name));
  if (value == nullptr || !value->is_array() || value->size() != n) {
    Fail(name, "a number for each layer");
  }
  std::vector<double> numbers;
  for (const nlohmann::json& number : *value) {
    if (!number.is_number()) Fail(name, "a number for each layer");
    numbers.push_back(number.get<double>());
  }
  return numbers;
}

std::vector<bool> GgufKeys::Flags(const char* name, uint32_t n) {
  const nlohmann::json* value = metadata_->Find(Key(name));
  if (value == nullptr) return {};
  if (!value->is_array() || value->size() < n) Fail(name, "true or false for each layer");
  std::vector<bool> flags;
  for (uint32_t i = 0; i < n; ++i) {
    if (!(*value)[i].is_boolean()) Fail(name, "true or false for each layer");
    flags.push_back((*value)[i].get<bool>());
  }
  return flags;
}

}  // namespace arn::convert
