#include "converter/tokenizer/utf8_text.h"

#include <algorithm>

namespace arn::convert {

bool IsUtf8Text(const uint8_t* p, size_t size) {
  for (size_t i = 0; i < size;) {
    const uint8_t lead = p[i];
    const size_t bytes = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    if ((lead >= 0x80 && lead < 0xC2) || lead > 0xF4 || bytes > size - i) return false;
    for (size_t k = 1; k < bytes; ++k) {
      if ((p[i + k] & 0xC0) != 0x80) return false;
    }
    const uint8_t second = bytes > 1 ? p[i + 1] : 0;
    if ((lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F) ||
        (lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F)) {
      return false;
    }
    i += bytes;
  }
  return true;
}

size_t CharacterBytes(const std::string& text, size_t at) {
  const uint8_t lead = static_cast<uint8_t>(text[at]);
  const size_t bytes = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  return std::min(bytes, text.size() - at);
}

}  // namespace arn::convert
