// Seal: a signature of a whole bundle, in the gap between its header and its segments. Ed25519 over
// the header, the index and SHA-512 digests of the segment area in blocks, so that the area can be
// checked when it is used and not before. docs/bundle-format.md, "The seal"; the file is untrusted.
//
// Ed25519: RFC 8032. SHA-512: FIPS 180-4.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/base/diag.h"
#include "platform/base/span.h"
#include "platform/base/status.h"
#include "runtime/bundle/bundle.h"

namespace arn {

inline constexpr size_t kPublicKeyBytes = 32;
inline constexpr size_t kSignatureBytes = 64;
inline constexpr size_t kDigestBytes = 64;

// Right behind the bundle's header, little endian; `n_blocks` digests follow it.
struct SealHeader {
  char magic[8];  // "ARNSEAL\0"
  uint64_t block_bytes;
  uint32_t n_blocks;
  uint32_t reserved;  // 0
  uint8_t public_key[kPublicKeyBytes];
  uint8_t signature[kSignatureBytes];
};
static_assert(sizeof(SealHeader) == 120);

inline constexpr size_t kSealOffset = sizeof(BundleHeader);
inline constexpr uint32_t kMaxSealBlocks =
    (16384 - kSealOffset - sizeof(SealHeader)) / kDigestBytes;
inline constexpr uint64_t kMinSealBlockBytes = 65536;

// Bytes of a block of an area of that size: the least power of two that makes the blocks few
// enough.
uint64_t SealBlockBytes(uint64_t segments_bytes);
// out[kDigestBytes]
void SealDigest(Span<const std::byte> bytes, uint8_t* out);
// What is signed: SHA-512 of a name, the bundle's header, the index and the seal without its
// signature. out[kDigestBytes]
void SealMessage(const Bundle& bundle, const SealHeader& seal, const uint8_t* digests,
                 uint8_t* out);

// A seal whose signature is right: what the digests are of can be relied on.
struct Seal {
  uint64_t block_bytes = 0;
  Span<const std::byte> digests;  // in the file
};

// kBadSignature: there is no seal, or another key's, or the header, the index or the seal itself
// are not what was signed. Reads the index, and nothing of the segments.
Status OpenSeal(const Bundle& bundle, Span<const uint8_t> public_key, Seal* out, Diag* diag);

// kHashMismatch unless the blocks that hold [offset, offset + bytes) of the segment area are what
// was signed. `what` names the range in the error.
Status CheckSealed(const Bundle& bundle, const Seal& seal, uint64_t offset, uint64_t bytes,
                   const char* what, Diag* diag);

}  // namespace arn
