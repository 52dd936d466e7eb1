#include "tools/serve/json_fields.h"

#include <algorithm>
#include <cmath>

#include "tools/cli/format.h"
#include "tools/cli/words.h"

namespace arn::serve {
namespace {

constexpr int kMaxDepth = 100;

std::string Short(const Json& value) {
  const std::string text = value.dump(-1, ' ', false, nlohmann::detail::error_handler_t::replace);
  return text.size() <= 60 ? text : text.substr(0, 57) + "...";
}

// The parser has no limit, and what reads its values recurses.
void CheckDepth(const std::string& body) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < body.size(); ++i) {
    const char c = body[i];
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == ']' || c == '}') {
      --depth;
    } else if ((c == '[' || c == '{') && ++depth > kMaxDepth) {
      throw ApiError(400, "invalid_request_error",
                     cli::Format("the body has more than %d levels", kMaxDepth), "",
                     "invalid_json");
    }
  }
}

}  // namespace

std::string ApiError::Json() const {
  serve::Json error;
  error["message"] = what();
  error["type"] = type_;
  error["param"] = param_.empty() ? serve::Json() : serve::Json(param_);
  error["code"] = code_.empty() ? serve::Json() : serve::Json(code_);
  const serve::Json whole = {{"error", error}};
  return whole.dump(-1, ' ', false, nlohmann::detail::error_handler_t::replace);
}

ApiError ApiError::At(const std::string& param) const {
  std::string message = what();
  if (!param_.empty() && message.compare(0, param_.size(), param_) == 0) {
    message.replace(0, param_.size(), param);
  }
  return {status_, type_, message, param, code_};
}

ApiError BadField(const std::string& param, const std::string& message) {
  return {400, "invalid_request_error", param + " " + message, param, "invalid_value"};
}

ApiError TooLong(const std::string& param, const std::string& message) {
  return {413, "invalid_request_error", message, param, "context_length_exceeded"};
}

ApiError Unavailable(const std::string& message, const std::string& code) {
  return {503, "server_error", message, "", code};
}

Json ParseBody(const std::string& body) {
  CheckDepth(body);
  Json value;
  try {
    value = Json::parse(body);
  } catch (const Json::exception& error) {
    std::string why = error.what();
    const size_t end = why.find("] ");
    if (end != std::string::npos) why = why.substr(end + 2);
    throw ApiError(400, "invalid_request_error", "the body is not JSON: " + why, "",
                   "invalid_json");
  }
  if (!value.is_object()) {
    throw ApiError(400, "invalid_request_error",
                   "the body is " + KindOf(value) + ", expected an object", "", "invalid_json");
  }
  return value;
}

std::string KindOf(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null: return "null";
    case Json::value_t::object: return "an object";
    case Json::value_t::array: return "an array";
    case Json::value_t::string: return "a string";
    case Json::value_t::boolean: return "a boolean";
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned:
    case Json::value_t::number_float: return "a number";
    case Json::value_t::binary:
    case Json::value_t::discarded: break;
  }
  return "no value";
}

Fields::Fields(const Json& object, std::string path) : object_(object), path_(std::move(path)) {
  if (!object.is_object()) throw BadField(path_, "is " + KindOf(object) + ", expected an object");
}

std::string Fields::PathOf(const std::string& name) const {
  return path_.empty() ? name : path_ + "." + name;
}

const Json* Fields::Find(const std::string& name) {
  known_.push_back(name);
  const auto at = object_.find(name);
  return at == object_.end() || at->is_null() ? nullptr : &*at;
}

const Json& Fields::Need(const std::string& name) {
  const Json* value = Find(name);
  if (value != nullptr) return *value;
  throw ApiError(400, "invalid_request_error", PathOf(name) + " is missing", PathOf(name),
                 "missing_field");
}

void Fields::Fail(const std::string& name, const std::string& expected) const {
  throw BadField(PathOf(name), "is " + Short(object_[name]) + ", expected " + expected);
}

std::optional<double> Fields::Number(const std::string& name, double least, double most) {
  const Json* value = Find(name);
  if (value == nullptr) return std::nullopt;
  const std::string expected = cli::Format("a number from %g to %g", least, most);
  if (!value->is_number()) Fail(name, expected);
  const double number = value->get<double>();
  if (!(number >= least && number <= most)) Fail(name, expected);
  return number;
}

std::optional<uint64_t> Fields::Whole(const std::string& name, uint64_t least, uint64_t most) {
  const Json* value = Find(name);
  if (value == nullptr) return std::nullopt;
  const std::string expected =
      cli::Format("a whole number from %llu to %llu", static_cast<unsigned long long>(least),
                  static_cast<unsigned long long>(most));
  uint64_t number = 0;
  if (value->is_number_unsigned()) {
    number = value->get<uint64_t>();
  } else if (value->is_number_float()) {  // clients write 64.0
    const double given = value->get<double>();
    if (given < 0 || given > 9e15 || given != std::floor(given)) Fail(name, expected);
    number = static_cast<uint64_t>(given);
  } else {
    Fail(name, expected);
  }
  if (number < least || number > most) Fail(name, expected);
  return number;
}

std::optional<bool> Fields::Bool(const std::string& name) {
  const Json* value = Find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) Fail(name, "true or false");
  return value->get<bool>();
}

std::optional<std::string> Fields::Text(const std::string& name) {
  const Json* value = Find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) Fail(name, "a string");
  return value->get<std::string>();
}

std::string Fields::NeedText(const std::string& name) {
  Need(name);
  return *Text(name);
}

void Fields::Ignore(std::initializer_list<const char*> names) {
  known_.insert(known_.end(), names.begin(), names.end());
}

void Fields::End() const {
  for (const auto& [name, value] : object_.items()) {
    if (std::find(known_.begin(), known_.end(), name) != known_.end()) continue;
    std::string message = PathOf(name) + " is not a field of this request";
    const std::string near = cli::Nearest(name, known_);
    if (!near.empty()) message += "; did you mean " + PathOf(near) + "?";
    throw ApiError(400, "invalid_request_error", message, PathOf(name), "unknown_field");
  }
}

}  // namespace arn::serve
