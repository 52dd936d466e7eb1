// A set of byte values.
#pragma once

#include <cstdint>

namespace arn {

struct ByteSet {
  static constexpr uint32_t kWords = 8;
  uint32_t words[kWords] = {};

  static ByteSet All() { return Range(0, 255); }
  static ByteSet Of(uint8_t byte) { return Range(byte, byte); }
  // White space of JSON (RFC 8259, 2).
  static ByteSet Spaces() {
    ByteSet set;
    constexpr char kSpaces[4] = {' ', '\t', '\n', '\r'};
    for (const char c : kSpaces) set.Add(static_cast<uint8_t>(c));
    return set;
  }
  static ByteSet Range(uint8_t first, uint8_t last) {
    ByteSet set;
    set.AddRange(first, last);
    return set;
  }

  bool Has(uint8_t byte) const { return (words[byte >> 5] >> (byte & 31) & 1) != 0; }
  void Add(uint8_t byte) { words[byte >> 5] |= 1u << (byte & 31); }
  void AddRange(uint8_t first, uint8_t last) {
    for (uint32_t b = first; b <= last; ++b) Add(static_cast<uint8_t>(b));
  }
  void Remove(uint8_t byte) { words[byte >> 5] &= ~(1u << (byte & 31)); }

  ByteSet& operator&=(const ByteSet& other) {
    for (uint32_t i = 0; i < kWords; ++i) words[i] &= other.words[i];
    return *this;
  }
  ByteSet& operator|=(const ByteSet& other) {
    for (uint32_t i = 0; i < kWords; ++i) words[i] |= other.words[i];
    return *this;
  }
  ByteSet operator~() const {
    ByteSet set;
    for (uint32_t i = 0; i < kWords; ++i) set.words[i] = ~words[i];
    return set;
  }
  bool operator==(const ByteSet& other) const {
    uint32_t differences = 0;
    for (uint32_t i = 0; i < kWords; ++i) differences |= words[i] ^ other.words[i];
    return differences == 0;
  }

  bool IsWithin(const ByteSet& other) const {
    uint32_t others = 0;
    for (uint32_t i = 0; i < kWords; ++i) others |= words[i] & ~other.words[i];
    return others == 0;
  }
  bool IsEmpty() const { return *this == ByteSet(); }
  uint32_t Count() const {
    uint32_t n = 0;
    for (const uint32_t word : words) n += static_cast<uint32_t>(__builtin_popcount(word));
    return n;
  }
  // Returns the least byte that is at least `from`, or 256.
  uint32_t Next(uint32_t from) const {
    for (uint32_t b = from; b < 256; b = (b | 31) + 1) {
      const uint32_t rest = words[b >> 5] >> (b & 31);
      if (rest != 0) return b + static_cast<uint32_t>(__builtin_ctz(rest));
    }
    return 256;
  }
};

}  // namespace arn
