// JsonWriter: one JSON text, written front to back.
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

  // Bytes that are not UTF-8 become U+FFFD: the text is always valid JSON.
  JsonWriter& String(std::string_view text);
  JsonWriter& Int(int64_t value);
  JsonWriter& Uint(uint64_t value);
  // null when the value is not finite, which JSON cannot say.
  JsonWriter& Number(double value);
  JsonWriter& Bool(bool value);

  JsonWriter& Ids(const std::vector<int32_t>& ids);

  // The text with a line feed at its end.
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
