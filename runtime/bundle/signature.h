// Signature of a bundle, stored between its header and its segments. Ed25519 over the header,
// the index and SHA-512 digests of blocks of the segment area, so that a block is checked only when
// it is used. docs/bundle-format.md, "The signature". The file is untrusted.
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

// True if the library checks signatures (ARENITE_SIGNATURES).
#ifdef ARENITE_NO_SIGNATURES
inline constexpr bool kHasSignatures = false;
#else
inline constexpr bool kHasSignatures = true;
#endif

inline constexpr size_t kPublicKeyBytes = 32;
inline constexpr size_t kSignatureBytes = 64;
inline constexpr size_t kDigestBytes = 64;

// Follows the bundle's header, little endian, and is followed by `n_blocks` digests.
struct SignatureHeader {
  char magic[8];  // "ARNSEAL\0"
  uint64_t block_bytes;
  uint32_t n_blocks;
  uint32_t reserved;  // 0
  uint8_t public_key[kPublicKeyBytes];
  uint8_t signature[kSignatureBytes];
};
static_assert(sizeof(SignatureHeader) == 120);

inline constexpr size_t kSignatureOffset = sizeof(BundleHeader);
inline constexpr uint32_t kMaxSignedBlocks =
    (16384 - kSignatureOffset - sizeof(SignatureHeader)) / kDigestBytes;
inline constexpr uint64_t kMinSignedBlockBytes = 65536;

// Returns the block size for an area: the smallest power of two that needs at most
// kMaxSignedBlocks.
uint64_t SignedBlockBytes(uint64_t segments_bytes);
// Writes the SHA-512 of `bytes`. out[kDigestBytes]
void BlockDigest(Span<const std::byte> bytes, uint8_t* out);
// Computes the signed message: SHA-512 of a domain string, the bundle's header, the index and the
// SignatureHeader before its signature. out[kDigestBytes]
void SignedMessage(const Bundle& bundle, const SignatureHeader& signature, const uint8_t* digests,
                   uint8_t* out);

// Verified signature: the digests are authentic.
struct SignedDigests {
  uint64_t block_bytes = 0;
  Span<const std::byte> digests;  // in the file
};

// Verifies the signature. kBadSignature: no signature, another key, or the header, the index or the
// digests were changed. Reads the index, but no segments.
Status CheckSignature(const Bundle& bundle, Span<const uint8_t> public_key, SignedDigests* out,
                      Diag* diag);

// Checks the blocks that contain [offset, offset + bytes) of the segment area. kHashMismatch if
// they differ from what was signed. `what` names the range in the error.
Status CheckDigests(const Bundle& bundle, const SignedDigests& signed_digests, uint64_t offset,
                    uint64_t bytes, const char* what, Diag* diag);

}  // namespace arn
