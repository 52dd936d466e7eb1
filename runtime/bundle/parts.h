// A bundle in several files, for stores that bound the size of one (docs/bundle-format.md#parts).
// The first is its beginning; each later one has a header, then the bytes that follow.
#pragma once

#include <cstdint>

namespace arn {

// Also the alignment of each part's bytes in the bundle: a page on every CPU in use.
inline constexpr uint64_t kPartHeaderBytes = 16384;
inline constexpr uint32_t kPartVersion = 1;
inline constexpr char kPartMagic[8] = {'A', 'R', 'N', 'P', 'A', 'R', 'T', '\0'};
// Follows the name of the bundle, with the part from 1 on and the number of parts.
inline constexpr char kPartSuffix[] = "-%05u-of-%05u.arn";
inline constexpr uint32_t kMaxParts = 99999;

struct PartHeader {
  char magic[8];
  uint32_t version;
  uint32_t part;  // from 1 on
  uint32_t n_parts;
  uint32_t reserved;     // 0
  uint64_t bundle_hash;  // header_hash of the bundle: the same for parts of the same bundle only
  uint64_t offset;       // of the bytes in the bundle
  uint64_t bytes;        // the rest of the file behind kPartHeaderBytes
  uint64_t hash;         // XXH64, seed 0, of the header up to here
};
static_assert(sizeof(PartHeader) == 56);

}  // namespace arn
