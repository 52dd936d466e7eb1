// Seal: signature of a bundle, stored between its header and its segments. Ed25519 over the header,
// the index and SHA-512 digests of blocks of the segment area, so that a block is checked only when
// it is used. docs/bundle-format.md, "The seal". The file is untrusted.
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

// Follows the bundle's header, little endian, and is followed by `n_blocks` digests.
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

// Returns the block size for an area: the smallest power of two that needs at most kMaxSealBlocks.
uint64_t SealBlockBytes(uint64_t segments_bytes);
// Writes the SHA-512 of `bytes`. out[kDigestBytes]
void SealDigest(Span<const std::byte> bytes, uint8_t* out);
// Computes the signed message: SHA-512 of a domain string, the bundle's header, the index and the
// seal without its signature. out[kDigestBytes]
void SealMessage(const Bundle& bundle, const SealHeader& seal, const uint8_t* digests,
                 uint8_t* out);

// Verified signature: the digests are authentic.
struct Seal {
  uint64_t block_bytes = 0;
  Span<const std::byte> digests;  // in the file
};

// Verifies the signature. kBadSignature: no signature, another key, or the header, the index or the
// seal were changed. Reads the index, but no segments.
Status OpenSeal(const Bundle& bundle, Span<const uint8_t> public_key, Seal* out, Diag* diag);

// Checks the blocks that contain [offset, offset + bytes) of the segment area. kHashMismatch if
// they differ from what was signed. `what` names the range in the error.
Status CheckSealed(const Bundle& bundle, const Seal& seal, uint64_t offset, uint64_t bytes,
                   const char* what, Diag* diag);

}  // namespace arn
