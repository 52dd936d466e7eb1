#include "converter/gguf/block_formats.h"

#include <cstring>

#include "converter/gguf/codebook_formats.h"
#include "kernels/contract/code_type.h"
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

// Blocks of 32 in nibbles: byte i holds element i (low) and element i + 16 (high).
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

void NestQ4_0(const std::byte* block, uint8_t* codes, int16_t* entries) {
  std::memcpy(entries, block, sizeof(int16_t));
  entries[1] = entries[0];
  entries[2] = 1 << 8 | 8;
  entries[3] = 0;
  for (uint32_t i = 0; i < 32; ++i) codes[i] = static_cast<uint8_t>(Nibble(block + 2, i));
}

// f16 scale, f16 minimum, nibbles: q scale + minimum.
void DequantiseQ4_1(const std::byte* block, float* out) {
  const float scale = Half(block), least = Half(block + 2);
  for (uint32_t i = 0; i < 32; ++i) {
    out[i] = static_cast<float>(Nibble(block + 4, i)) * scale + least;
  }
}

void NestQ4_1(const std::byte* block, uint8_t* codes, int16_t* entries) {
  constexpr int16_t kSign = INT16_MIN;
  std::memcpy(entries, block, 2 * sizeof(int16_t));
  entries[1] = static_cast<int16_t>(entries[1] ^ kSign);
  entries[2] = 1 << 8 | 1;
  entries[3] = 0;
  for (uint32_t i = 0; i < 32; ++i) codes[i] = static_cast<uint8_t>(Nibble(block + 4, i));
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

// f16 scale, f16 minimum, 32 fifth bits, nibbles: q scale + minimum.
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

// 6-bit scale and minimum of sub-block `j` of 8, packed into 12 bytes.
struct ScaleAndLeast {
  uint32_t scale, least;
};
ScaleAndLeast PartScale(const std::byte* packed, uint32_t j) {
  if (j < 4) return {U8(packed + j) & 63u, U8(packed + j + 4) & 63u};
  const uint32_t low = U8(packed + j + 4);
  return {(low & 0x0Fu) | (uint32_t{U8(packed + j - 4)} >> 6) << 4,
          low >> 4 | (uint32_t{U8(packed + j)} >> 6) << 4};
}

// f16 scale of scales, f16 scale of minima, 8 packed pairs, 256 nibbles: sub-blocks of 32.
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

void NestQ4_K(const std::byte* block, uint8_t* codes, int16_t* entries) {
  std::memcpy(entries, block, 2 * sizeof(int16_t));
  for (uint32_t j = 0; j < 8; ++j) {
    const ScaleAndLeast part = PartScale(block + 4, j);
    entries[2 + j] = static_cast<int16_t>(part.scale << 8 | part.least);
    for (uint32_t i = 0; i < 32; ++i) {
      const uint32_t byte = U8(block + 16 + j / 2 * 32 + i);
      codes[j * 32 + i] = static_cast<uint8_t>(j % 2 == 0 ? byte & 0x0Fu : byte >> 4);
    }
  }
}

// As Q4_K, with 32 bytes of fifth bits before the nibbles: bit j of byte i belongs to sub-block j.
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

// 128 bytes of low nibbles, 64 of upper bit pairs, 16 int8 scales of sub-blocks of 16, f16 scale:
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

// Returns the bit pair of element `e` of a block of 256. Each half of 128 elements has 32 bytes;
// byte i holds its elements i, 32 + i, 64 + i and 96 + i, lowest bits first.
uint32_t PairOfBits(const std::byte* bits, uint32_t e) {
  const uint32_t half = e / 128, in_half = e % 128;
  return U8(bits + half * 32 + in_half % 32) >> (in_half / 32 * 2) & 3u;
}

// 16 bytes of nibbles (scale and minimum of sub-blocks of 16), bit pairs, f16 scale of scales, f16
// scale of minima.
void DequantiseQ2_K(const std::byte* block, float* out) {
  const float scale = Half(block + 80), least = Half(block + 82);
  for (uint32_t e = 0; e < 256; ++e) {
    const uint32_t packed = U8(block + e / 16);
    const float d = scale * static_cast<float>(packed & 0x0Fu);
    const float m = least * static_cast<float>(packed >> 4);
    out[e] = d * static_cast<float>(PairOfBits(block + 16, e)) - m;
  }
}

// 32 bytes of third bits (bit e / 32 of byte e % 32), bit pairs, 12 bytes of 6-bit scales of
// sub-blocks of 16 (all low nibbles, then the upper pairs), f16 scale: (q - 4) (sub-block - 32)
// scale.
void DequantiseQ3_K(const std::byte* block, float* out) {
  const std::byte* parts = block + 96;
  const float scale = Half(block + 108);
  for (uint32_t e = 0; e < 256; ++e) {
    const uint32_t j = e / 16;
    const uint32_t low = U8(parts + j % 8) >> (j / 8 * 4) & 0x0Fu;
    const uint32_t high = U8(parts + 8 + j % 4) >> (j / 4 * 2) & 3u;
    const float part = scale * static_cast<float>(static_cast<int>(low | high << 4) - 32);
    const uint32_t third = U8(block + e % 32) >> (e / 32) & 1u;
    const uint32_t q = PairOfBits(block + 32, e) | third << 2;
    out[e] = part * static_cast<float>(static_cast<int>(q) - 4);
  }
}

// Levels of the IQ4 types, denser near 0 (ggml's kvalues_iq4nl).
constexpr int8_t kUnevenLevels[] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                    1,    13,   25,  38,  53,  69,  89,  113};

// f16 scale, nibbles: index of the level.
void DequantiseIQ4_NL(const std::byte* block, float* out) {
  const float scale = Half(block);
  for (uint32_t i = 0; i < 32; ++i) {
    out[i] = scale * static_cast<float>(kUnevenLevels[Nibble(block + 2, i)]);
  }
}

// f16 scale, 16 bits with the upper pairs of 8 scales of sub-blocks of 32, 4 bytes with their low
// nibbles, nibbles: (sub-block - 32) scale times the level.
void DequantiseIQ4_XS(const std::byte* block, float* out) {
  const float scale = Half(block);
  const uint32_t highs = U8(block + 2) | uint32_t{U8(block + 3)} << 8;
  for (uint32_t j = 0; j < 8; ++j) {
    const uint32_t low = U8(block + 4 + j / 2) >> (j % 2 * 4) & 0x0Fu;
    const uint32_t part = low | (highs >> (2 * j) & 3u) << 4;
    const float d = scale * static_cast<float>(static_cast<int>(part) - 32);
    for (uint32_t i = 0; i < 32; ++i) {
      out[j * 32 + i] = d * static_cast<float>(kUnevenLevels[Nibble(block + 8 + j * 16, i)]);
    }
  }
}

// Returns base-3 digit `n` of a byte as -1, 0 or 1: byte / 256 is a fraction in base 3.
int Trit(const std::byte* digits, uint32_t n) {
  constexpr uint32_t kPowers[] = {1, 3, 9, 27, 81};
  const uint32_t rest = (U8(digits) * kPowers[n]) & 0xFFu;
  return static_cast<int>(rest * 3 >> 8) - 1;
}

// Base-3 digits: 32 bytes with 5 rows of 32 elements, 16 with 5 of 16, 4 with 4 of 4; f16 scale.
void DequantiseTQ1_0(const std::byte* block, float* out) {
  const float scale = Half(block + 52);
  for (uint32_t e = 0; e < 160; ++e) {
    out[e] = scale * static_cast<float>(Trit(block + e % 32, e / 32));
  }
  for (uint32_t e = 0; e < 80; ++e) {
    out[160 + e] = scale * static_cast<float>(Trit(block + 32 + e % 16, e / 16));
  }
  for (uint32_t e = 0; e < 16; ++e) {
    out[240 + e] = scale * static_cast<float>(Trit(block + 48 + e % 4, e / 4));
  }
}

// Bit pairs, f16 scale: (q - 1) scale.
void DequantiseTQ2_0(const std::byte* block, float* out) {
  const float scale = Half(block + 64);
  for (uint32_t e = 0; e < 256; ++e) {
    out[e] = scale * static_cast<float>(static_cast<int>(PairOfBits(block, e)) - 1);
  }
}

// OCP's MX format: a power-of-two scale, nibbles of FP4 (E2M1). Doubles the levels and halves the
// scale.
void DequantiseMXFP4(const std::byte* block, float* out) {
  constexpr int8_t kDoubled[] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
  const uint32_t exponent = U8(block);
  // Below exponent 2, half of the scale is subnormal.
  const uint32_t bits = exponent < 2 ? 0x00200000u << exponent : (exponent - 1) << 23;
  float scale;
  std::memcpy(&scale, &bits, sizeof scale);
  for (uint32_t i = 0; i < 32; ++i) {
    out[i] = scale * static_cast<float>(kDoubled[Nibble(block + 1, i)]);
  }
}

constexpr BlockFormat kFormats[] = {
    {"Q8_0", 32, 34, DequantiseQ8_0},
    {"Q4_0", 32, 18, DequantiseQ4_0, NestQ4_0, DType::kInt4K32},
    {"Q4_1", 32, 20, DequantiseQ4_1, NestQ4_1, DType::kInt4K32},
    {"Q5_0", 32, 22, DequantiseQ5_0},
    {"Q5_1", 32, 24, DequantiseQ5_1},
    {"Q2_K", 256, 84, DequantiseQ2_K},
    {"Q3_K", 256, 110, DequantiseQ3_K},
    {"Q4_K", 256, 144, DequantiseQ4_K, NestQ4_K, DType::kInt4K},
    {"Q5_K", 256, 176, DequantiseQ5_K},
    {"Q6_K", 256, 210, DequantiseQ6_K},
    {"IQ4_NL", 32, 18, DequantiseIQ4_NL},
    {"IQ4_XS", 256, 136, DequantiseIQ4_XS},
    {"TQ1_0", 256, 54, DequantiseTQ1_0},
    {"TQ2_0", 256, 66, DequantiseTQ2_0},
    {"MXFP4", 32, 17, DequantiseMXFP4},
    {"IQ1_S", 256, 50, DequantiseIQ1_S},
    {"IQ1_M", 256, 56, DequantiseIQ1_M},
    {"IQ2_XXS", 256, 66, DequantiseIQ2_XXS},
    {"IQ2_XS", 256, 74, DequantiseIQ2_XS},
    {"IQ2_S", 256, 82, DequantiseIQ2_S},
    {"IQ3_XXS", 256, 98, DequantiseIQ3_XXS},
    {"IQ3_S", 256, 110, DequantiseIQ3_S},
};

}  // namespace

const BlockFormat* FindBlockFormat(const std::string& name) {
  for (const BlockFormat& format : kFormats) {
    if (name == format.name) return &format;
  }
  return nullptr;
}

std::vector<std::string> BlockFormatNames() {
  std::vector<std::string> names;
  for (const BlockFormat& format : kFormats) names.push_back(format.name);
  return names;
}

}  // namespace arn::convert
