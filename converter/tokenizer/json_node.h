// A JSON value with its path, for errors such as
//   tokenizer.json: pre_tokenizer.pretokenizers[0].type "Foo" is not supported
#pragma once

#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "nlohmann/json_fwd.hpp"

namespace arn::convert {

// The reason why a tokenizer cannot be converted; ConvertTokenizer returns it as its error text.
class TokenizerError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class JsonNode {
 public:
  // Wraps a file's root; `file` is its name in errors.
  JsonNode(const nlohmann::json* value, std::string file) : value_(value), file_(std::move(file)) {}

  const nlohmann::json& value() const { return *value_; }
  // True if absent or null.
  bool IsNull() const;
  // Throws TokenizerError "file: path message".
  [[noreturn]] void Fail(const std::string& message) const;
  // Fails with "<path> <the value> is not supported".
  [[noreturn]] void FailUnsupported() const;

  // Returns a member of an object; a null node if it is absent.
  JsonNode operator[](const std::string& key) const;
  std::vector<JsonNode> Items() const;

  std::string String() const;
  std::string String(const char* if_absent) const {
    return IsNull() ? std::string(if_absent) : String();
  }
  bool Bool() const;
  bool Bool(bool if_absent) const { return IsNull() ? if_absent : Bool(); }
  uint32_t Uint() const;

 private:
  JsonNode(const nlohmann::json* value, std::string file, std::string path)
      : value_(value), file_(std::move(file)), path_(std::move(path)) {}

  const nlohmann::json* value_;
  std::string file_;
  std::string path_;
};

// Parses the text; `name` is its file in errors. Throws TokenizerError.
nlohmann::json ParseTokenizerJson(const std::string& text, const std::string& name);
// Parses the file. Throws TokenizerError.
nlohmann::json ReadJsonFile(const std::filesystem::path& path);

}  // namespace arn::convert
