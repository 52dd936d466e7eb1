// Byte formats of the tokenizer's segments, written by the converter and read in place. All
// integers are little endian.
//
// token_bytes, token_offsets
//   The text of token i is token_bytes[token_offsets[i] .. token_offsets[i + 1]); token_offsets has
//   n_tokens + 1 entries of u32. Unused ids have an empty text.
//
// token_table: a power of two of TokenSlots, at most 3/4 in use and at most kMaxSlotRun in a row
//   Contains only the model's own vocabulary: neither tokens that are only `added`, nor tokens that
//   the pre-tokenizer's alphabet cannot spell. Linear probing from HashToken(text) modulo the slots
//   until tag (upper half of the hash) and text match; an empty slot means absent.
//
// merge_table: kBoundaryBytes of boundary bits, then a power of two of MergeSlots with the same
// limits
//   Linear probing from HashPair(left, right) & (slots - 1). Bit BoundaryBit(a, b) is set if a
//   merge exists whose left token ends in the unit `a` and whose right token begins with the unit
//   `b`; a unit is a byte for a byte-level pre-tokenizer, else a code point. If the bit is clear,
//   no merge crosses the border between a and b, so both sides can be merged independently.
//
// trie: an array of TrieUnits, a multiple of 256; unit 0 is the root, which no byte leads to
//   Byte b leads from unit s to unit base[s] ^ b if that unit's check is s.
//
// scores: f64 [n_tokens], log probability of each token
//
// byte_tree, start_byte_tree: ByteTreeHeader, ByteNode [n_nodes + 1], u32 [n_ids]
//   The tree of the tokens' bytes, that is of what a token appends to a text: in its middle
//   (byte_tree) or as its first token (start_byte_tree; absent if no token differs there). The
//   nodes are in pre-order, siblings by ascending byte; there is no root node. The ids lie in the
//   order of the nodes at which their bytes end: node i has ids[first_id(i) .. first_id(i + 1)),
//   and the last node is only the end of that range. Ids before those of node 0 append nothing.
//   Special tokens, ids without text and tokens of more than kMaxByteDepth bytes are in no tree.
//
// byte_places: u32 [kPlaceLists + 1], u32 [n], u8 [n], u8 [n_tokens], n the last of the first
//   Where bytes stand in byte_tree: list i is the second array from element i of the first up to
//   element i + 1, nodes in ascending order. PlaceList(b) lists the nodes of byte b; list
//   kBadPlaces those at which a text stops being the beginning of UTF-8, list kLongPlaces those of
//   depth kLongDepth, kPunctuationPlaces those of all lists behind it. kNonAsciiPlaces has only the
//   first of each path, and all but kLongPlaces have no node behind one of kBadPlaces. The third
//   array has the characters before each node of the second, the last those that each token begins,
//   kManyCharacters if more; 0 for tokens in no tree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace arn {

struct TokenSlot {
  uint32_t tag;
  uint32_t id;  // kEmptySlot, or the id, possibly with kWholeToken
};
struct MergeSlot {
  uint32_t left;  // kEmptySlot: unused slot
  uint32_t right;
  uint32_t rank;  // lower ranks merge first
  uint32_t id;    // id of the merged token
};
struct TrieUnit {
  uint32_t base;
  uint32_t check;  // kEmptySlot: unreachable
  uint32_t id;     // token that ends here; kEmptySlot: none
};
struct ByteTreeHeader {
  uint32_t n_nodes;
  uint32_t n_ids;
};
struct ByteNode {
  uint32_t byte_and_size;  // byte | nodes of its subtree, itself included << 8
  uint32_t depth_and_ids;  // bytes before this one | first_id << kDepthBits

  static constexpr uint32_t kDepthBits = 10;
  uint8_t byte() const { return static_cast<uint8_t>(byte_and_size); }
  uint32_t size() const { return byte_and_size >> 8; }
  uint32_t depth() const { return depth_and_ids & ((1u << kDepthBits) - 1); }
  uint32_t first_id() const { return depth_and_ids >> kDepthBits; }
};
// Controls share list 0, upper case letters of ASCII one, and digits one. Lower case
// has none.
inline constexpr uint32_t kBadPlaces = 1;
inline constexpr uint32_t kLongPlaces = 2;
inline constexpr uint32_t kUpperPlaces = 3;
inline constexpr uint32_t kDigitPlaces = 4;
inline constexpr uint32_t kNonAsciiPlaces = 5;
inline constexpr uint32_t kPunctuationPlaces = 6;
inline constexpr uint32_t kLongDepth = 32;
inline constexpr uint32_t kManyCharacters = 255;
inline constexpr uint32_t kPlaceLists = 40;
inline constexpr uint32_t kNoPlaces = 0xFFFFFFFFu;
inline constexpr uint32_t PlaceList(uint8_t byte) {
  if (byte < 0x20 || byte == 0x7F) return 0;
  const uint8_t lower = byte | 0x20;
  const bool is_letter = lower >= 'a' && lower <= 'z', is_digit = byte >= '0' && byte <= '9';
  if (byte >= 0x80) return kNonAsciiPlaces;
  if (is_digit) return kDigitPlaces;
  if (is_letter) return byte == lower ? kNoPlaces : kUpperPlaces;
  // ' ' .. '/', ':' .. '@', '[' .. '`', '{' .. '~'
  uint32_t list = kPunctuationPlaces + 1;
  for (uint8_t b = 0x20; b < byte; ++b) {
    const uint8_t l = b | 0x20;
    const bool has_list = !(l >= 'a' && l <= 'z') && !(b >= '0' && b <= '9');
    list += has_list ? 1 : 0;
  }
  return list;
}
static_assert(PlaceList('~') + 1 == kPlaceLists);
inline constexpr uint32_t kMaxByteDepth = 1u << ByteNode::kDepthBits;
inline constexpr uint32_t kMaxByteNodes = (1u << 24) - 1;
inline constexpr uint32_t kMaxByteIds = (1u << (32 - ByteNode::kDepthBits)) - 1;
static_assert(sizeof(ByteTreeHeader) == 8 && sizeof(ByteNode) == 8);
static_assert(sizeof(TokenSlot) == 8 && sizeof(MergeSlot) == 16 && sizeof(TrieUnit) == 12);

inline constexpr uint32_t kEmptySlot = 0xFFFFFFFFu;
// Bit of TokenSlot::id: merging the token's text from its units yields this single token again.
inline constexpr uint32_t kWholeToken = 0x80000000u;
inline constexpr uint32_t kMaxTokens = 0x40000000u;
// Limit for runs of used slots. In tables that are 3/4 full they are a few hundred long.
inline constexpr uint32_t kMaxSlotRun = 4096;

inline constexpr uint32_t kBoundaryLog2 = 18;
inline constexpr uint32_t kBoundaryBytes = (1u << kBoundaryLog2) / 8;

inline constexpr uint64_t kHashMultiplier = 0x9E3779B97F4A7C15u;   // 2^64 / golden ratio
inline constexpr uint64_t kHashMultiplier2 = 0xC2B2AE3D27D4EB4Fu;  // a prime of xxHash

// h starts as bytes * kHashMultiplier. For each 8-byte word w of the text (the last one
// zero-padded): h = (h ^ w) * kHashMultiplier, then h = h ^ (h >> 32).
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
    // The upper four bytes overlap the lower four in equal bits.
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

// Index of a boundary bit (byte index / 8, lowest bit first).
inline uint32_t BoundaryBit(uint32_t last_unit, uint32_t first_unit) {
  return static_cast<uint32_t>((last_unit * kHashMultiplier + first_unit * kHashMultiplier2) >>
                               (64 - kBoundaryLog2));
}

}  // namespace arn
