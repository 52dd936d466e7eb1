#include "converter/tokenizer/byte_alphabet.h"

#include <array>
#include <cstdint>

namespace arn::convert {
namespace {

constexpr size_t kEnd = 0x144;  // 68 bytes map to characters from U+0100 on
constexpr int16_t kNone = -1;

constexpr std::array<int16_t, kEnd> ByteOfCharacter() {
  std::array<int16_t, kEnd> table{};
  for (auto& entry : table) entry = kNone;
  size_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const bool stands_for_itself =
        (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    table[stands_for_itself ? static_cast<size_t>(byte) : next++] = static_cast<int16_t>(byte);
  }
  return table;
}

}  // namespace

std::optional<std::string> BytesOfAlphabet(const std::string& text) {
  static constexpr std::array<int16_t, kEnd> kTable = ByteOfCharacter();
  std::string bytes;
  for (size_t i = 0; i < text.size();) {
    uint32_t c = static_cast<uint8_t>(text[i++]);
    if (c >= 0xC0) {
      // The alphabet's characters take at most two bytes.
      if (c >= 0xE0 || i == text.size()) return std::nullopt;
      c = (c & 0x1F) << 6 | (static_cast<uint8_t>(text[i++]) & 0x3F);
    } else if (c >= 0x80) {
      return std::nullopt;
    }
    if (c >= kEnd || kTable[c] == kNone) return std::nullopt;
    bytes += static_cast<char>(kTable[c]);
  }
  return bytes;
}

}  // namespace arn::convert
