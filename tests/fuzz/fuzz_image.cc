// libFuzzer: a PNG or JPEG file.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/fuzz/fuzz_target.h"
#include "tools/arenite/error.h"
#include "tools/arenite/image_file.h"

namespace {

std::string BigEndian(uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift);
  return bytes;
}

uint32_t Crc32(const std::string& bytes) {
  uint32_t crc = 0xFFFFFFFFu;
  for (const char byte : bytes) {
    crc ^= static_cast<uint8_t>(byte);
    for (int i = 0; i < 8; ++i) crc = crc >> 1 ^ (0xEDB88320u & (0u - (crc & 1)));
  }
  return ~crc;
}

uint32_t Adler32(const std::string& bytes) {
  uint32_t a = 1, b = 0;
  for (const char byte : bytes) {
    a = (a + static_cast<uint8_t>(byte)) % 65521;
    b = (b + a) % 65521;
  }
  return b << 16 | a;
}

std::string Chunk(const std::string& type, const std::string& data) {
  const std::string body = type + data;
  return BigEndian(static_cast<uint32_t>(data.size())) + body + BigEndian(Crc32(body));
}

std::vector<std::string> ImageSeeds() {
  // PNG of 2 x 2 pixels, stored without compression.
  const std::string begin =
      std::string("\x89PNG\r\n\x1A\n", 8) +
      Chunk("IHDR", BigEndian(2) + BigEndian(2) + std::string("\x08\x02\x00\x00\x00", 5));
  // Of each row a byte for its filter.
  const std::string rows(
      "\0"
      "abcdef"
      "\0"
      "ghijkl",
      14);
  const std::string data = Chunk(
      "IDAT", std::string("\x78\x01\x01\x0E\x00\xF1\xFF", 7) + rows + BigEndian(Adler32(rows)));
  const std::string end = Chunk("IEND", "");
  return {begin + data + end, begin + Chunk("IDAT", "") + data + end, "\xFF\xD8\xFF\xE0", "BM"};
}

}  // namespace

ARN_FUZZ_TARGET(image, ImageSeeds) {
  try {
    arn::tool::DecodeImage(std::vector<uint8_t>(data, data + size), "fuzz.png");
  } catch (const arn::tool::Error&) {
    // Refused.
  }
}
