#include "runtime/conversation/json_writer.h"

#include <cstdint>
#include <cstring>

#include "platform/base/arith.h"

namespace arn {

void JsonWriter::Raw(std::string_view text) {
  if (bytes_ < out_.size()) {
    std::memcpy(out_.data() + bytes_, text.data(), Min(text.size(), out_.size() - bytes_));
  }
  bytes_ += text.size();
}

void JsonWriter::Escaped(std::string_view text) {
  size_t plain = 0;  // start of the bytes that are not written yet
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    if (byte >= 0x20 && byte != '"' && byte != '\\') continue;
    Raw(text.substr(plain, i - plain));
    plain = i + 1;
    constexpr char kHex[] = "0123456789abcdef";
    if (byte == '\n') {
      Raw("\\n");
    } else if (byte >= 0x20) {
      const char escaped[] = {'\\', text[i]};
      Raw({escaped, sizeof escaped});
    } else {
      const char escaped[] = {'\\', 'u', '0', '0', kHex[byte >> 4], kHex[byte & 15]};
      Raw({escaped, sizeof escaped});
    }
  }
  Raw(text.substr(plain));
}

void JsonWriter::String(std::string_view text) {
  Raw("\"");
  Escaped(text);
  Raw("\"");
}

}  // namespace arn
