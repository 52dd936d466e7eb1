// JsonWriter: writes one JSON text front to back.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace arn::tool {

class JsonWriter {
 public:
  JsonWriter& BeginObject() { return Open('{'); }
  JsonWriter& EndObject() { return Close('}'); }
  JsonWriter& BeginArray() { return Open('['); }
  JsonWriter& EndArray() { return Close(']'); }
  JsonWriter& Key(std::string_view name);

  // Replaces invalid UTF-8 by U+FFFD, so that the output is always valid JSON.
  JsonWriter& String(std::string_view text);
  JsonWriter& Int(int64_t value);
  JsonWriter& Uint(uint64_t value);
  // Writes null if the value is not finite, which JSON cannot express.
  JsonWriter& Number(double value);
  JsonWriter& Bool(bool value);

  JsonWriter& Ids(const std::vector<int32_t>& ids);

  // Returns the text with a final line feed.
  std::string Finish() const { return text_ + "\n"; }

 private:
  JsonWriter& Open(char bracket);
  JsonWriter& Close(char bracket);
  JsonWriter& Raw(std::string_view text);
  void Quote(std::string_view text);
  void Separate();

  std::string text_;
  bool needs_comma_ = false;
};

}  // namespace arn::tool
