// The byte formats of a tokenizer's segments: what the converter writes and the runtime reads in
// place. All integers are little endian.
//
// token_bytes, token_offsets
//   The text of token i is token_bytes[token_offsets[i] .. token_offsets[i + 1]); token_offsets has
//   n_tokens + 1 entries of u32. Ids that no token has are empty.
//
// token_table: an array of TokenSlot, a power of two of them, at most 3/4 in use
//   Only the model's own vocabulary is in it, not the tokens that are only `added`, and no token
//   that the pre-tokenizer's alphabet cannot spell. The slot of a text is looked for from
//   HashToken(text) & (slots - 1) on, one after the other, until its tag (the hash's upper half)
//   and its text agree, or an empty slot shows that it is absent.
//
// merge_table: kBoundaryBytes of boundary bits, then an array of MergeSlot, a power of two of them,
//   at most 3/4 in use. The slot of a pair is looked for from HashPair(left, right) & (slots - 1).
//   The boundary bit BoundaryBit(a, b) is set when there is a merge whose left token ends in the
//   unit `a` and whose right token begins with the unit `b`; a unit is a byte when the
//   pre-tokenizer is byte-level, else a code point. Where the bit is clear no merge can ever cross
//   the border between a and b, so both sides may be merged apart from each other.
//
// trie: an array of TrieUnit, a multiple of 256 of them; unit 0 is the root, which no byte leads to
//   The byte b leads from the unit s to the unit base[s] ^ b, if that one's check is s.
//
// scores: f64 [n_tokens], of a token's logarithmic probability
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace arn {

struct TokenSlot {
  uint32_t tag;
  uint32_t id;  // kEmptySlot, or the id and maybe kWholeToken
};
struct MergeSlot {
  uint32_t left;  // kEmptySlot: the slot is empty
  uint32_t right;
  uint32_t rank;  // the lower, the earlier
  uint32_t id;    // of the merged token
};
struct TrieUnit {
  uint32_t base;
  uint32_t check;  // kEmptySlot: nothing leads here
  uint32_t id;     // of the token that ends here; kEmptySlot: none does
};
static_assert(sizeof(TokenSlot) == 8 && sizeof(MergeSlot) == 16 && sizeof(TrieUnit) == 12);

inline constexpr uint32_t kEmptySlot = 0xFFFFFFFFu;
// A bit of TokenSlot::id: merging the token's text from its units gives this one token again.
inline constexpr uint32_t kWholeToken = 0x80000000u;
inline constexpr uint32_t kMaxTokens = 0x40000000u;

inline constexpr uint32_t kBoundaryLog2 = 18;
inline constexpr uint32_t kBoundaryBytes = (1u << kBoundaryLog2) / 8;

inline constexpr uint64_t kHashMultiplier = 0x9E3779B97F4A7C15u;   // 2^64 / golden ratio
inline constexpr uint64_t kHashMultiplier2 = 0xC2B2AE3D27D4EB4Fu;  // a prime of xxHash

// h starts as bytes * kHashMultiplier. Every 8 bytes of the text (the last ones filled up with
// zeros) are a word w: h = (h ^ w) * kHashMultiplier, then h = h ^ (h >> 32).
inline uint64_t HashToken(const void* text, size_t bytes) {
  const auto load32 = [](const uint8_t* p) {
    uint32_t v;
    std::memcpy(&v, p, sizeof v);
    return static_cast<uint64_t>(v);
  };
  const auto mix = [](uint64_t h) {
    h *= kHashMultiplier;
    return h ^ (h >> 32);
  };
  const uint8_t* p = static_cast<const uint8_t*>(text);
  uint64_t h = bytes * kHashMultiplier;
  size_t left = bytes;
  for (; left >= 8; left -= 8, p += 8) h = mix(h ^ (load32(p) | load32(p + 4) << 32));
  if (left >= 4) {
    // The upper four bytes overlap the lower four in bits that are equal.
    h = mix(h ^ (load32(p) | load32(p + left - 4) << (8 * (left - 4))));
  } else if (left > 0) {
    uint64_t w = p[0];
    if (left > 1) w |= static_cast<uint64_t>(p[1]) << 8;
    if (left > 2) w |= static_cast<uint64_t>(p[2]) << 16;
    h = mix(h ^ w);
  }
  return h;
}

inline uint64_t HashPair(uint32_t left, uint32_t right) {
  const uint64_t h = left * kHashMultiplier + right * kHashMultiplier2;
  return h ^ (h >> 32);
}

// Which bit (byte / 8, then from the lowest on) of the boundary bits.
inline uint32_t BoundaryBit(uint32_t last_unit, uint32_t first_unit) {
  return static_cast<uint32_t>((last_unit * kHashMultiplier + first_unit * kHashMultiplier2) >>
                               (64 - kBoundaryLog2));
}

}  // namespace arn
