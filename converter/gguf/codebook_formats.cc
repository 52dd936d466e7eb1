#include "converter/gguf/codebook_formats.h"

#include <bit>
#include <cstring>

#include "converter/gguf/codebooks.h"
#include "platform/base/arith.h"

// A block is 32 groups of 8 elements. Points of 4 levels come in pairs. Levels of IQ2 and IQ3 are
// magnitudes; a byte of a group says by its bits which are negative.
namespace arn::convert {
namespace {

constexpr uint32_t kGroups = 32;

uint32_t Byte(const std::byte* p) { return static_cast<uint8_t>(*p); }
uint32_t Word(const std::byte* p) {
  uint16_t bits;
  std::memcpy(&bits, p, sizeof bits);
  return bits;
}
uint32_t LongWord(const std::byte* p) {
  uint32_t bits;
  std::memcpy(&bits, p, sizeof bits);
  return bits;
}
float HalfOf(uint32_t bits) { return F32FromF16(static_cast<uint16_t>(bits)); }

// Returns the nibble `i`, the low one of a byte first.
uint32_t NibbleAt(const std::byte* nibbles, uint32_t i) {
  return Byte(nibbles + i / 2) >> (i % 2 * 4) & 15u;
}

// Returns a group's signs of which 7 are stored: the number of negative ones is even.
uint32_t EvenSigns(uint32_t seven) {
  return seven | (static_cast<uint32_t>(std::popcount(seven)) & 1u) << 7;
}

// Writes as many elements as the point has levels. signs: bit i for element i.
void WriteSigned(const Codebook& book, uint32_t index, float scale, uint32_t signs, float* out) {
  const int8_t* levels = book.Point(index);
  for (uint32_t i = 0; i < book.width(); ++i) {
    out[i] = scale * static_cast<float>(levels[i]) * ((signs >> i & 1u) != 0 ? -1.0f : 1.0f);
  }
}

// Writes the 8 elements of a point whose levels are moved by 1/8.
void WriteMoved(uint32_t index, float scale, bool is_down, float* out) {
  const int8_t* levels = Iq1Codebook().Point(index);
  const float move = is_down ? -0.125f : 0.125f;
  for (uint32_t i = 0; i < 8; ++i) out[i] = scale * (static_cast<float>(levels[i]) + move);
}

}  // namespace

// f16 scale, low bytes of the indices, 16 bits for each 32 elements: upper 3 bits of 4 indices, a
// scale s of 3 bits, the direction of the move. (level + move) scale (2 s + 1).
void DequantiseIQ1_S(const std::byte* block, float* out) {
  const float scale = HalfOf(Word(block));
  for (uint32_t g = 0; g < kGroups; ++g) {
    const uint32_t high = Word(block + 34 + g / 4 * 2);
    const float part = scale * static_cast<float>(2 * (high >> 12 & 7u) + 1);
    const uint32_t index = Byte(block + 2 + g) | (high >> (g % 4 * 3) & 7u) << 8;
    WriteMoved(index, part, (high & 0x8000u) != 0, out + g * 8);
  }
}

// Low bytes of the indices, nibbles with their upper 3 bits and the direction of the move, 4 words
// of 16 bits: 4 scales of 3 bits, for 16 elements each, and a nibble of the f16 scale.
void DequantiseIQ1_M(const std::byte* block, float* out) {
  uint32_t half = 0;
  for (uint32_t i = 0; i < 4; ++i) half |= Word(block + 48 + i * 2) >> 12 << (i * 4);
  const float scale = HalfOf(half);
  for (uint32_t g = 0; g < kGroups; ++g) {
    const uint32_t s = Word(block + 48 + g / 8 * 2) >> (g / 2 % 4 * 3) & 7u;
    const uint32_t high = NibbleAt(block + 32, g);
    WriteMoved(Byte(block + g) | (high & 7u) << 8, scale * static_cast<float>(2 * s + 1),
               (high & 8u) != 0, out + g * 8);
  }
}

// f16 scale; for each 32 elements 4 indices of 8 bits, then 32 bits with 4 times 7 signs and a
// scale s of 4 bits. level scale (s + 1/2) / 4.
void DequantiseIQ2_XXS(const std::byte* block, float* out) {
  const float scale = HalfOf(Word(block));
  for (uint32_t g = 0; g < kGroups; ++g) {
    const std::byte* part = block + 2 + g / 4 * 8;
    const uint32_t bits = LongWord(part + 4);
    const float d = scale * (0.5f + static_cast<float>(bits >> 28)) * 0.25f;
    WriteSigned(Iq2XxsCodebook(), Byte(part + g % 4), d, EvenSigns(bits >> (g % 4 * 7) & 127u),
                out + g * 8);
  }
}

// f16 scale, words of 9 bits of an index and 7 signs, nibbles with the scale s of 16 elements each.
void DequantiseIQ2_XS(const std::byte* block, float* out) {
  const float scale = HalfOf(Word(block));
  for (uint32_t g = 0; g < kGroups; ++g) {
    const uint32_t word = Word(block + 2 + g * 2);
    const float d = scale * (0.5f + static_cast<float>(NibbleAt(block + 66, g / 2))) * 0.25f;
    WriteSigned(Iq2XsCodebook(), word & 511u, d, EvenSigns(word >> 9), out + g * 8);
  }
}

// f16 scale, low bytes of the indices, signs, upper bit pairs of the indices, scales as IQ2_XS.
void DequantiseIQ2_S(const std::byte* block, float* out) {
  const float scale = HalfOf(Word(block));
  for (uint32_t g = 0; g < kGroups; ++g) {
    const uint32_t high = Byte(block + 66 + g / 4) >> (g % 4 * 2) & 3u;
    const float d = scale * (0.5f + static_cast<float>(NibbleAt(block + 74, g / 2))) * 0.25f;
    WriteSigned(Iq2SCodebook(), Byte(block + 2 + g) | high << 8, d, Byte(block + 34 + g),
                out + g * 8);
  }
}

// f16 scale, indices of 8 bits, two for a group, then signs and scales as IQ2_XXS. level scale
// (s + 1/2) / 2.
void DequantiseIQ3_XXS(const std::byte* block, float* out) {
  const float scale = HalfOf(Word(block));
  for (uint32_t g = 0; g < kGroups; ++g) {
    const uint32_t bits = LongWord(block + 66 + g / 4 * 4);
    const float d = scale * (0.5f + static_cast<float>(bits >> 28)) * 0.5f;
    const uint32_t signs = EvenSigns(bits >> (g % 4 * 7) & 127u);
    for (uint32_t i = 0; i < 2; ++i) {
      WriteSigned(Iq3XxsCodebook(), Byte(block + 2 + g * 2 + i), d, signs >> (i * 4),
                  out + g * 8 + i * 4);
    }
  }
}

// f16 scale, low bytes of the indices, their ninth bits, signs, nibbles with the scale s of 32
// elements each. level scale (2 s + 1).
void DequantiseIQ3_S(const std::byte* block, float* out) {
  const float scale = HalfOf(Word(block));
  for (uint32_t g = 0; g < kGroups; ++g) {
    const float d = scale * static_cast<float>(2 * NibbleAt(block + 106, g / 4) + 1);
    const uint32_t high = Byte(block + 66 + g / 4) >> (g % 4 * 2), signs = Byte(block + 74 + g);
    for (uint32_t i = 0; i < 2; ++i) {
      const uint32_t index = Byte(block + 2 + g * 2 + i) | (high >> i & 1u) << 8;
      WriteSigned(Iq3SCodebook(), index, d, signs >> (i * 4), out + g * 8 + i * 4);
    }
  }
}

}  // namespace arn::convert
