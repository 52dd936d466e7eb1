#include "converter/tokenizer/json_node.h"

#include <fstream>
#include <iterator>

namespace arn::convert {
namespace {

std::string Shown(const nlohmann::json* value) {
  if (value == nullptr) return "nothing";
  std::string text = value->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (text.size() > 80) text = text.substr(0, 77) + "...";
  return text;
}

}  // namespace

void JsonNode::Fail(const std::string& message) const {
  throw TokenizerError(file_ + ": " + (path_.empty() ? "" : path_ + " ") + message);
}

void JsonNode::Unsupported() const { Fail(Shown(value_) + " is not supported"); }

JsonNode JsonNode::operator[](const std::string& key) const {
  const std::string path = path_.empty() ? key : path_ + "." + key;
  if (IsNull()) return {nullptr, file_, path};
  if (!value_->is_object()) Fail("is " + Shown(value_) + ", expected an object");
  const auto found = value_->find(key);
  return {found == value_->end() ? nullptr : &*found, file_, path};
}

std::vector<JsonNode> JsonNode::Items() const {
  if (value_ == nullptr || !value_->is_array()) {
    Fail("is " + Shown(value_) + ", expected an array");
  }
  std::vector<JsonNode> items;
  for (size_t i = 0; i < value_->size(); ++i) {
    items.push_back({&(*value_)[i], file_, path_ + "[" + std::to_string(i) + "]"});
  }
  return items;
}

std::string JsonNode::String() const {
  if (value_ == nullptr || !value_->is_string()) {
    Fail("is " + Shown(value_) + ", expected a string");
  }
  return value_->get<std::string>();
}

bool JsonNode::Bool() const {
  if (value_ == nullptr || !value_->is_boolean()) {
    Fail("is " + Shown(value_) + ", expected true or false");
  }
  return value_->get<bool>();
}

uint32_t JsonNode::Uint() const {
  if (value_ == nullptr || !value_->is_number_unsigned() || value_->get<uint64_t>() > UINT32_MAX) {
    Fail("is " + Shown(value_) + ", expected a number from 0 to 4294967295");
  }
  return value_->get<uint32_t>();
}

nlohmann::json ReadJsonFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw TokenizerError(path.string() + ": cannot be opened");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  if (file.bad()) throw TokenizerError(path.string() + ": cannot be read");
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::exception& error) {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: ..."
    std::string reason = error.what();
    const size_t bracket = reason.find("] ");
    if (bracket != std::string::npos) reason = reason.substr(bracket + 2);
    throw TokenizerError(path.string() + ": not valid JSON: " + reason);
  }
}

}  // namespace arn::convert
