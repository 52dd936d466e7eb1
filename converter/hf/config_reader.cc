#include "converter/hf/config_reader.h"

#include <cmath>
#include <utility>

#include "converter/base/error.h"
#include "converter/hf/json_file.h"
#include "nlohmann/json.hpp"

namespace arn::convert {

ConfigReader::ConfigReader(const nlohmann::json& object, std::string label)
    : object_(object), label_(std::move(label)) {
  if (!object_.is_object()) {
    Fail("%s: expected a JSON object, found %s", label_.c_str(), Shown(object_).c_str());
  }
}

const nlohmann::json* ConfigReader::Find(const std::string& key) {
  read_.insert(key);
  const auto at = object_.find(key);
  return at == object_.end() || at->is_null() ? nullptr : &*at;
}

bool ConfigReader::IsNull(const std::string& key) const {
  const auto at = object_.find(key);
  return at != object_.end() && at->is_null();
}

bool ConfigReader::Has(const std::string& key) { return Find(key) != nullptr; }

void ConfigReader::FailKey(const std::string& key, const char* expected) {
  const nlohmann::json* value = Find(key);
  Fail("%s: %s: expected %s, found %s", label_.c_str(), key.c_str(), expected,
       value == nullptr ? "nothing" : Shown(*value).c_str());
}

std::optional<int64_t> ConfigReader::Int(const std::string& key) {
  const nlohmann::json* value = Find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number_integer()) FailKey(key, "a whole number");
  if (value->is_number_unsigned() && value->get<uint64_t>() > INT64_MAX) {
    FailKey(key, "a whole number");
  }
  return value->get<int64_t>();
}

std::optional<uint32_t> ConfigReader::Count(const std::string& key) {
  const std::optional<int64_t> value = Int(key);
  if (!value) return std::nullopt;
  if (*value < 1 || *value > INT32_MAX) FailKey(key, "a whole number from 1 to 2147483647");
  return static_cast<uint32_t>(*value);
}

uint32_t ConfigReader::RequiredCount(const std::string& key) {
  const std::optional<uint32_t> value = Count(key);
  if (!value) FailKey(key, "a whole number from 1 to 2147483647");
  return *value;
}

std::optional<double> ConfigReader::Number(const std::string& key) {
  const nlohmann::json* value = Find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number() || !std::isfinite(value->get<double>())) FailKey(key, "a number");
  return value->get<double>();
}

bool ConfigReader::Bool(const std::string& key, bool fallback) {
  const nlohmann::json* value = Find(key);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) FailKey(key, "true or false");
  return value->get<bool>();
}

std::optional<std::string> ConfigReader::String(const std::string& key) {
  const nlohmann::json* value = Find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) FailKey(key, "a string");
  return value->get<std::string>();
}

std::vector<int64_t> ConfigReader::IntOrList(const std::string& key) {
  const nlohmann::json* value = Find(key);
  std::vector<int64_t> list;
  if (value == nullptr) return list;
  if (!value->is_array()) return {*Int(key)};
  for (const auto& entry : *value) {
    if (!entry.is_number_integer()) FailKey(key, "a whole number or a list of them");
    list.push_back(entry.get<int64_t>());
  }
  return list;
}

std::vector<std::string> ConfigReader::Unread() const {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object_.items()) {
    if (read_.count(key) == 0) keys.push_back(key);
  }
  return keys;
}

}  // namespace arn::convert
