#include "converter/gguf/block_formats.h"

#include <cstring>

#include "platform/base/arith.h"

namespace arn::convert {
namespace {

uint8_t U8(const std::byte* p) { return static_cast<uint8_t>(*p); }
int8_t I8(const std::byte* p) { return static_cast<int8_t>(*p); }
float Half(const std::byte* p) {
  uint16_t bits;
  std::memcpy(&bits, p, sizeof bits);
  return F32FromF16(bits);
}
uint32_t U32(const std::byte* p) {
  uint32_t bits;
  std::memcpy(&bits, p, sizeof bits);
  return bits;
}

// Blocks of 32 in nibbles: element i is the low one of byte i, element i + 16 the high one.
uint32_t Nibble(const std::byte* nibbles, uint32_t i) {
  return i < 16 ? U8(nibbles + i) & 0x0Fu : U8(nibbles + i - 16) >> 4;
}

// f16 scale, 16 bytes of nibbles: (q - 8) scale.
void DequantiseQ4_0(const std::byte* block, float* out) {
  const float scale = Half(block);
  for (uint32_t i = 0; i < 32; ++i) {
    out[i] = static_cast<float>(static_cast<int>(Nibble(block + 2, i)) - 8) * scale;
  }
}

// f16 scale, f16 least, nibbles: q scale + least.
void DequantiseQ4_1(const std::byte* block, float* out) {
  const float scale = Half(block), least = Half(block + 2);
  for (uint32_t i = 0; i < 32; ++i) {
    out[i] = static_cast<float>(Nibble(block + 4, i)) * scale + least;
  }
}

// f16 scale, 32 fifth bits, nibbles: (q - 16) scale.
void DequantiseQ5_0(const std::byte* block, float* out) {
  const float scale = Half(block);
  const uint32_t high = U32(block + 2);
  for (uint32_t i = 0; i < 32; ++i) {
    const uint32_t q = Nibble(block + 6, i) | (high >> i & 1u) << 4;
    out[i] = static_cast<float>(static_cast<int>(q) - 16) * scale;
  }
}

// f16 scale, f16 least, 32 fifth bits, nibbles: q scale + least.
void DequantiseQ5_1(const std::byte* block, float* out) {
  const float scale = Half(block), least = Half(block + 2);
  const uint32_t high = U32(block + 4);
  for (uint32_t i = 0; i < 32; ++i) {
    const uint32_t q = Nibble(block + 8, i) | (high >> i & 1u) << 4;
    out[i] = static_cast<float>(q) * scale + least;
  }
}

// f16 scale, 32 int8.
void DequantiseQ8_0(const std::byte* block, float* out) {
  const float scale = Half(block);
  for (uint32_t i = 0; i < 32; ++i) out[i] = static_cast<float>(I8(block + 2 + i)) * scale;
}

// The 6-bit scale and least of part `j` of 8, packed into 12 bytes.
struct ScaleAndLeast {
  uint32_t scale, least;
};
ScaleAndLeast PartScale(const std::byte* packed, uint32_t j) {
  if (j < 4) return {U8(packed + j) & 63u, U8(packed + j + 4) & 63u};
  const uint32_t low = U8(packed + j + 4);
  return {(low & 0x0Fu) | (uint32_t{U8(packed + j - 4)} >> 6) << 4,
          low >> 4 | (uint32_t{U8(packed + j)} >> 6) << 4};
}

// f16 scale of scales, f16 scale of leasts, 8 packed pairs, 256 nibbles: parts of 32.
void DequantiseQ4_K(const std::byte* block, float* out) {
  const float scale = Half(block), least = Half(block + 2);
  for (uint32_t j = 0; j < 8; ++j) {
    const ScaleAndLeast part = PartScale(block + 4, j);
    const float d = scale * static_cast<float>(part.scale);
    const float m = least * static_cast<float>(part.least);
    for (uint32_t i = 0; i < 32; ++i) {
      const uint32_t byte = U8(block + 16 + j / 2 * 32 + i);
      out[j * 32 + i] = d * static_cast<float>(j % 2 == 0 ? byte & 0x0Fu : byte >> 4) - m;
    }
  }
}

// As Q4_K, with 32 bytes of fifth bits before the nibbles: bit j of byte i is that of part j.
void DequantiseQ5_K(const std::byte* block, float* out) {
  const float scale = Half(block), least = Half(block + 2);
  for (uint32_t j = 0; j < 8; ++j) {
    const ScaleAndLeast part = PartScale(block + 4, j);
    const float d = scale * static_cast<float>(part.scale);
    const float m = least * static_cast<float>(part.least);
    for (uint32_t i = 0; i < 32; ++i) {
      const uint32_t byte = U8(block + 48 + j / 2 * 32 + i);
      const uint32_t high = U8(block + 16 + i) >> j & 1u;
      const uint32_t q = (j % 2 == 0 ? byte & 0x0Fu : byte >> 4) | high << 4;
      out[j * 32 + i] = d * static_cast<float>(q) - m;
    }
  }
}

// 128 bytes of low nibbles, 64 of upper pairs of bits, 16 int8 scales of parts of 16, f16 scale:
// (q - 32) scale.
void DequantiseQ6_K(const std::byte* block, float* out) {
  const std::byte* scales = block + 192;
  const float scale = Half(block + 208);
  for (uint32_t e = 0; e < 256; ++e) {
    const uint32_t half = e / 128, in_half = e % 128, column = in_half % 32, line = in_half / 32;
    const uint32_t low = U8(block + half * 64 + in_half % 64);
    const uint32_t high = U8(block + 128 + half * 32 + column) >> (2 * line) & 3u;
    const uint32_t q = (line < 2 ? low & 0x0Fu : low >> 4) | high << 4;
    const float part = scale * static_cast<float>(I8(scales + e / 16));
    out[e] = part * static_cast<float>(static_cast<int>(q) - 32);
  }
}

constexpr BlockFormat kFormats[] = {
    {"Q4_0", 32, 18, DequantiseQ4_0},   {"Q4_1", 32, 20, DequantiseQ4_1},
    {"Q5_0", 32, 22, DequantiseQ5_0},   {"Q5_1", 32, 24, DequantiseQ5_1},
    {"Q8_0", 32, 34, DequantiseQ8_0},   {"Q4_K", 256, 144, DequantiseQ4_K},
    {"Q5_K", 256, 176, DequantiseQ5_K}, {"Q6_K", 256, 210, DequantiseQ6_K},
};

}  // namespace

const BlockFormat* FindBlockFormat(const std::string& name) {
  for (const BlockFormat& format : kFormats) {
    if (name == format.name) return &format;
  }
  return nullptr;
}

}  // namespace arn::convert
