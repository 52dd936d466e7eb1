// Comparing the counts of many tokens at a time.
#pragma once

#include <cstdint>
#include <cstring>

namespace arn {

// Bit i: counts[i] <= most. REQUIRES: most < 128.
inline uint8_t AtMost(const uint8_t* counts, uint32_t most) {
  constexpr uint64_t kOnes = 0x0101010101010101u, kTops = 0x8080808080808080u;
  uint64_t bytes = 0;
  std::memcpy(&bytes, counts, sizeof bytes);
  const uint64_t tops = (kTops + most * kOnes - (bytes & ~kTops)) & ~bytes & kTops;
  // Gathers the top bits: that of byte i goes to bit 56 + i.
  return static_cast<uint8_t>((tops >> 7) * 0x0102040810204080u >> 56);
}

// Bit i of 32: counts[i] <= most. REQUIRES: most < 128.
inline uint32_t WordAtMost(const uint8_t* counts, uint32_t most) {
  uint32_t word = 0;
  for (uint32_t i = 0; i < 32; i += 8) word |= uint32_t{AtMost(counts + i, most)} << i;
  return word;
}

}  // namespace arn
