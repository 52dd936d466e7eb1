// Fields: reads the fields of a JSON object, and names the one that is wrong.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tools/serve/api_error.h"

namespace arn::serve {

// Keeps the order of keys: that of a schema's properties is the order they are written in.
using Json = nlohmann::ordered_json;

// Parses a body: an object of at most 100 levels. Throws ApiError.
Json ParseBody(const std::string& body);
// "a string", "a number" ... for messages.
std::string KindOf(const Json& value);

// A field that is null counts as absent. All readers throw ApiError.
class Fields {
 public:
  // `path`: of the object, "" for the body. The object must outlive this one.
  Fields(const Json& object, std::string path);

  std::string PathOf(const std::string& name) const;
  const Json* Find(const std::string& name);
  const Json& Need(const std::string& name);
  std::optional<double> Number(const std::string& name, double least, double most);
  std::optional<uint64_t> Whole(const std::string& name, uint64_t least, uint64_t most);
  std::optional<bool> Bool(const std::string& name);
  std::optional<std::string> Text(const std::string& name);
  std::string NeedText(const std::string& name);
  // Fields that clients send and that change nothing here.
  void Ignore(std::initializer_list<const char*> names);
  // Throws if a field was never asked for.
  void End() const;

 private:
  [[noreturn]] void Fail(const std::string& name, const std::string& expected) const;

  const Json& object_;
  std::string path_;
  std::vector<std::string> known_;
};

}  // namespace arn::serve
