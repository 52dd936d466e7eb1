#include "runtime/text/byte_alphabet.h"

#include "runtime/text/utf8.h"

namespace arn {
namespace {

constexpr uint32_t kFirstOther = 0x100;
// Remapped bytes: 33 up to the space, 34 from 0x7F to 0xA0, and 0xAD.
constexpr uint32_t kUpToBlank = 33, kOthers = 33 + 34 + 1;

bool StandsForItself(uint32_t byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) ||
         (byte >= 0xAE && byte <= 0xFF);
}

}  // namespace

uint32_t CharacterOfByte(uint8_t byte) {
  if (StandsForItself(byte)) return byte;
  if (byte < kUpToBlank) return kFirstOther + byte;
  return kFirstOther + (byte == 0xAD ? kOthers - 1 : kUpToBlank + (byte - 0x7Fu));
}

bool BytesOfAlphabet(StringView text, char* out, size_t* size) {
  *size = 0;
  for (size_t i = 0; i < text.size;) {
    const Utf8Char c = ReadValidUtf8(text.data + i);
    uint32_t byte = c.code_point;
    if (byte >= kFirstOther) {
      const uint32_t n = byte - kFirstOther;
      if (n >= kOthers) return false;
      byte = n < kUpToBlank ? n : n == kOthers - 1 ? 0xAD : n - kUpToBlank + 0x7F;
    } else if (!StandsForItself(byte)) {
      return false;
    }
    out[(*size)++] = static_cast<char>(byte);
    i += c.bytes;
  }
  return true;
}

}  // namespace arn
