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
uint16_t U16(const std::byte* p) {
  uint16_t bits;
  std::memcpy(&bits, p, sizeof bits);
  return bits;
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

// f16 scale, f16 minimum, nibbles: q scale + minimum.
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

int Q6_KLevel(const std::byte* block, uint32_t e) {
  const uint32_t half = e / 128, in_half = e % 128, column = in_half % 32, line = in_half / 32;
  const uint32_t low = U8(block + half * 64 + in_half % 64);
  const uint32_t high = U8(block + 128 + half * 32 + column) >> (2 * line) & 3u;
  return static_cast<int>((line < 2 ? low & 0x0Fu : low >> 4) | high << 4) - 32;
}

// 128 bytes of low nibbles, 64 of upper bit pairs, 16 int8 scales of sub-blocks of 16, f16 scale:
// (q - 32) scale.
void DequantiseQ6_K(const std::byte* block, float* out) {
  const std::byte* scales = block + 192;
  const float scale = Half(block + 208);
  for (uint32_t e = 0; e < 256; ++e) {
    const float part = scale * static_cast<float>(I8(scales + e / 16));
    out[e] = part * static_cast<float>(Q6_KLevel(block, e));
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

int Q3_KScale(const std::byte* block, uint32_t j) {
  const std::byte* parts = block + 96;
  const uint32_t low = U8(parts + j % 8) >> (j / 8 * 4) & 0x0Fu;
  const uint32_t high = U8(parts + 8 + j % 4) >> (j / 4 * 2) & 3u;
  return static_cast<int>(low | high << 4) - 32;
}

int Q3_KLevel(const std::byte* block, uint32_t e) {
  const uint32_t third = U8(block + e % 32) >> (e / 32) & 1u;
  return static_cast<int>(PairOfBits(block + 32, e) | third << 2) - 4;
}

// 32 bytes of third bits (bit e / 32 of byte e % 32), bit pairs, 12 bytes of 6-bit scales of
// sub-blocks of 16 (all low nibbles, then the upper pairs), f16 scale: (q - 4) (sub-block - 32)
// scale.
void DequantiseQ3_K(const std::byte* block, float* out) {
  const float scale = Half(block + 108);
  for (uint32_t e = 0; e < 256; ++e) {
    const float part = scale * static_cast<float>(Q3_KScale(block, e / 16));
    out[e] = part * static_cast<float>(Q3_KLevel(block, e));
  }
}

// f16 scale, nibbles: index of the level.
void DequantiseIQ4_NL(const std::byte* block, float* out) {
  const float scale = Half(block);
  for (uint32_t i = 0; i < 32; ++i) {
    out[i] = scale * static_cast<float>(kIq4Codes.Level(Nibble(block + 2, i)));
  }
}

// f16 scale, 16 bits with the upper pairs of 8 scales of sub-blocks of 32, 4 bytes with their low
// nibbles, nibbles: (sub-block - 32) scale times the level.
int IQ4_XSScale(const std::byte* block, uint32_t j) {
  const uint32_t low = U8(block + 4 + j / 2) >> (j % 2 * 4) & 0x0Fu;
  const uint32_t high = uint32_t{U16(block + 2)} >> (2 * j) & 3u;
  return static_cast<int>(low | high << 4) - 32;
}

uint32_t IQ4_XSCode(const std::byte* block, uint32_t e) {
  return Nibble(block + 8 + e / 32 * 16, e % 32);
}

void DequantiseIQ4_XS(const std::byte* block, float* out) {
  const float scale = Half(block);
  for (uint32_t e = 0; e < 256; ++e) {
    const float d = scale * static_cast<float>(IQ4_XSScale(block, e / 32));
    out[e] = d * static_cast<float>(kIq4KCodes.Level(IQ4_XSCode(block, e)));
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
float HalfOfMXFP4Scale(const std::byte* block) {
  const uint32_t exponent = U8(block);
  // Below exponent 2, half of the scale is subnormal.
  const uint32_t bits = exponent < 2 ? 0x00200000u << exponent : (exponent - 1) << 23;
  float scale;
  std::memcpy(&scale, &bits, sizeof scale);
  return scale;
}

void DequantiseMXFP4(const std::byte* block, float* out) {
  const float scale = HalfOfMXFP4Scale(block);
  for (uint32_t i = 0; i < 32; ++i) {
    out[i] = scale * static_cast<float>(kFp4Codes.Level(Nibble(block + 1, i)));
  }
}

// Functions that take blocks apart, as HeldBlock says.

void TakeQ8_0(const std::byte* block, HeldBlock* out) {
  out->scale = U16(block);
  for (uint32_t i = 0; i < 32; ++i) out->levels[i] = I8(block + 2 + i);
}

void TakeQ4_0(const std::byte* block, HeldBlock* out) {
  out->scale = U16(block);
  out->least = -8;
  for (uint32_t i = 0; i < 32; ++i) {
    out->levels[i] = static_cast<int8_t>(static_cast<int>(Nibble(block + 2, i)) - 8);
  }
}

void TakeQ5_0(const std::byte* block, HeldBlock* out) {
  out->scale = U16(block);
  const uint32_t high = U32(block + 2);
  for (uint32_t i = 0; i < 32; ++i) {
    const uint32_t q = Nibble(block + 6, i) | (high >> i & 1u) << 4;
    out->levels[i] = static_cast<int8_t>(static_cast<int>(q) - 16);
  }
}

void TakeIQ4_NL(const std::byte* block, HeldBlock* out) {
  out->scale = U16(block);
  out->table = kIq4Codes.levels;
  for (uint32_t i = 0; i < 32; ++i) out->levels[i] = static_cast<int8_t>(Nibble(block + 2, i));
}

void TakeIQ4_XS(const std::byte* block, HeldBlock* out) {
  out->scale = U16(block);
  out->table = kIq4KCodes.levels;
  for (uint32_t j = 0; j < 16; ++j) {
    out->scales[j] = static_cast<int8_t>(IQ4_XSScale(block, j / 2));
  }
  for (uint32_t e = 0; e < 256; ++e) out->levels[e] = static_cast<int8_t>(IQ4_XSCode(block, e));
}

void TakeMXFP4(const std::byte* block, HeldBlock* out) {
  const float scale = HalfOfMXFP4Scale(block);
  out->scale = F16FromF32(scale);
  out->is_exact = F32FromF16(out->scale) == scale;
  out->table = kFp4Codes.levels;
  bool is_zero = true;
  for (uint32_t i = 0; i < 32; ++i) {
    out->levels[i] = static_cast<int8_t>(Nibble(block + 1, i));
    is_zero = is_zero && kFp4Codes.Level(Nibble(block + 1, i)) == 0;
  }
  if (is_zero && !out->is_exact) {
    out->scale = 0;
    out->is_exact = true;
  }
}

// The minimum is added in these two.
void TakeScaleAndLeast(const std::byte* block, HeldBlock* out) {
  constexpr uint16_t kSign = 0x8000;
  out->scale = U16(block);
  out->minimum = U16(block + 2) ^ kSign;
  out->minimums[0] = out->minimums[1] = 1;
}

void TakeQ4_1(const std::byte* block, HeldBlock* out) {
  TakeScaleAndLeast(block, out);
  for (uint32_t i = 0; i < 32; ++i) out->levels[i] = static_cast<int8_t>(Nibble(block + 4, i));
}

void TakeQ5_1(const std::byte* block, HeldBlock* out) {
  TakeScaleAndLeast(block, out);
  const uint32_t high = U32(block + 4);
  for (uint32_t i = 0; i < 32; ++i) {
    out->levels[i] = static_cast<int8_t>(Nibble(block + 8, i) | (high >> i & 1u) << 4);
  }
}

void TakePartScales(const std::byte* block, HeldBlock* out) {
  out->scale = U16(block);
  out->minimum = U16(block + 2);
  for (uint32_t j = 0; j < 16; ++j) {
    const ScaleAndLeast part = PartScale(block + 4, j / 2);
    out->scales[j] = static_cast<int8_t>(part.scale);
    out->minimums[j] = static_cast<uint8_t>(part.least);
  }
}

void TakeQ4_K(const std::byte* block, HeldBlock* out) {
  TakePartScales(block, out);
  for (uint32_t e = 0; e < 256; ++e) {
    const uint32_t byte = U8(block + 16 + e / 64 * 32 + e % 32);
    out->levels[e] = static_cast<int8_t>(e / 32 % 2 == 0 ? byte & 0x0Fu : byte >> 4);
  }
}

void TakeQ5_K(const std::byte* block, HeldBlock* out) {
  TakePartScales(block, out);
  for (uint32_t e = 0; e < 256; ++e) {
    const uint32_t byte = U8(block + 48 + e / 64 * 32 + e % 32), j = e / 32;
    const uint32_t fifth = U8(block + 16 + e % 32) >> j & 1u;
    out->levels[e] = static_cast<int8_t>((j % 2 == 0 ? byte & 0x0Fu : byte >> 4) | fifth << 4);
  }
}

void TakeQ2_K(const std::byte* block, HeldBlock* out) {
  out->scale = U16(block + 80);
  out->minimum = U16(block + 82);
  for (uint32_t j = 0; j < 16; ++j) {
    out->scales[j] = static_cast<int8_t>(U8(block + j) & 0x0Fu);
    out->minimums[j] = static_cast<uint8_t>(U8(block + j) >> 4);
  }
  for (uint32_t e = 0; e < 256; ++e) {
    out->levels[e] = static_cast<int8_t>(PairOfBits(block + 16, e));
  }
}

void TakeQ3_K(const std::byte* block, HeldBlock* out) {
  out->scale = U16(block + 108);
  for (uint32_t j = 0; j < 16; ++j) out->scales[j] = static_cast<int8_t>(Q3_KScale(block, j));
  for (uint32_t e = 0; e < 256; ++e) out->levels[e] = static_cast<int8_t>(Q3_KLevel(block, e));
}

void TakeQ6_K(const std::byte* block, HeldBlock* out) {
  out->scale = U16(block + 208);
  for (uint32_t j = 0; j < 16; ++j) out->scales[j] = I8(block + 192 + j);
  for (uint32_t e = 0; e < 256; ++e) out->levels[e] = static_cast<int8_t>(Q6_KLevel(block, e));
}

constexpr BlockFormat kFormats[] = {
    {"Q8_0", 32, 34, DequantiseQ8_0, TakeQ8_0, {DType::kInt8K}},
    {"Q4_0", 32, 18, DequantiseQ4_0, TakeQ4_0, {DType::kInt4K32, DType::kInt6K32, DType::kInt8K}},
    {"Q4_1", 32, 20, DequantiseQ4_1, TakeQ4_1, {DType::kInt4K32, DType::kInt6K32}},
    {"Q5_0", 32, 22, DequantiseQ5_0, TakeQ5_0, {DType::kInt6K32, DType::kInt8K}},
    {"Q5_1", 32, 24, DequantiseQ5_1, TakeQ5_1, {DType::kInt6K32}},
    {"Q2_K", 256, 84, DequantiseQ2_K, TakeQ2_K, {DType::kInt6K, DType::kInt8K256}},
    {"Q3_K", 256, 110, DequantiseQ3_K, TakeQ3_K, {DType::kInt6K, DType::kInt8K256}},
    {"Q4_K", 256, 144, DequantiseQ4_K, TakeQ4_K, {DType::kInt4K, DType::kInt6K, DType::kInt8K256}},
    {"Q5_K", 256, 176, DequantiseQ5_K, TakeQ5_K, {DType::kInt6K, DType::kInt8K256}},
    {"Q6_K", 256, 210, DequantiseQ6_K, TakeQ6_K, {DType::kInt6K, DType::kInt8K256}},
    {"IQ4_NL", 32, 18, DequantiseIQ4_NL, TakeIQ4_NL, {DType::kIq4, DType::kInt8K}},
    {"IQ4_XS", 256, 136, DequantiseIQ4_XS, TakeIQ4_XS, {DType::kIq4K, DType::kInt8K256}},
    {"TQ1_0", 256, 54, DequantiseTQ1_0},
    {"TQ2_0", 256, 66, DequantiseTQ2_0},
    {"MXFP4", 32, 17, DequantiseMXFP4, TakeMXFP4, {DType::kFp4}},
    {"IQ1_S", 256, 50, DequantiseIQ1_S},
    {"IQ1_M", 256, 56, DequantiseIQ1_M},
    {"IQ2_XXS", 256, 66, DequantiseIQ2_XXS},
    {"IQ2_XS", 256, 74, DequantiseIQ2_XS},
    {"IQ2_S", 256, 82, DequantiseIQ2_S},
    {"IQ3_XXS", 256, 98, DequantiseIQ3_XXS},
    {"IQ3_S", 256, 110, DequantiseIQ3_S},
};

}  // namespace

bool BlockFormat::IsHeldBy(DType dtype) const {
  for (const DType one : held_by) {
    if (one == dtype && one != DType::kF32) return true;
  }
  return false;
}

bool BlockFormat::Hold(const CodeType& type, const std::byte* block, uint8_t* codes,
                       int16_t* entries) const {
  HeldBlock held;
  take(block, &held);
  if (held.table != nullptr && type.bits == 8) {
    for (uint32_t i = 0; i < elements; ++i) held.levels[i] = held.table[held.levels[i]];
  }
  const int base = type.bits == 6 ? -kLeastOf6Bits : type.bits == 4 ? held.least : 0;
  for (uint32_t i = 0; i < elements; ++i) codes[i] = static_cast<uint8_t>(held.levels[i] - base);
  entries[0] = static_cast<int16_t>(held.scale);
  if (!type.is_nested()) return held.is_exact;
  if (!type.has_minimums()) {
    entries[1] = 0;
    for (uint64_t b = 0; b < type.Blocks(elements); b += 2) {
      const int8_t* both = held.scales + b * type.block / kHeldPart;
      entries[type.EntryOf(b)] =
          static_cast<int16_t>(both[type.block / kHeldPart] * 256 + (both[0] & 0xFF));
    }
    return true;
  }
  const bool has_zero = type.bits == 4 && held.least != 0;
  entries[1] = has_zero ? entries[0] : static_cast<int16_t>(held.minimum);
  for (uint64_t b = 0; b < type.Blocks(elements); ++b) {
    const uint64_t part = b * type.block / kHeldPart;
    const int minimum = has_zero ? -held.least : held.minimums[part];
    entries[type.EntryOf(b)] = static_cast<int16_t>(held.scales[part] * 256 + minimum);
  }
  if (type.Entries(elements) > type.EntryOf(type.Blocks(elements) - 1) + 1) {
    entries[type.Entries(elements) - 1] = 0;
  }
  return true;
}

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
