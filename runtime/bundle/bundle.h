// Bundle: a .arn file in memory. Checks header, hashes, FlatBuffers structure and the bounds of
// every segment; model/ and text/ check the fields. The file is untrusted input.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/base/diag.h"
#include "platform/base/span.h"
#include "platform/base/status.h"
#include "runtime/bundle/bundle_generated.h"

namespace arn {

// Fixed 64-byte header at the start of the file, little endian. docs/bundle-format.md.
struct BundleHeader {
  char magic[8];  // "ARENITE\0"
  uint32_t version;
  uint32_t header_bytes;
  uint64_t index_offset;
  uint64_t index_bytes;
  uint64_t index_hash;  // XXH64, seed 0
  uint64_t segments_offset;
  uint64_t segments_bytes;
  uint64_t header_hash;  // XXH64, seed 0, of the preceding 56 bytes
};
static_assert(sizeof(BundleHeader) == 64);

inline constexpr uint32_t kBundleVersion = 1;

struct Bundle {
  Span<const std::byte> file;
  Span<const std::byte> segments;      // segment area
  uint64_t segments_offset = 0;        // file offset of the area
  const fbs::Bundle* index = nullptr;  // points into `file`
};

// Checks the header, the index hash and the structure of the index. REQUIRES: `file` is 16-byte
// aligned. It must outlive the bundle.
Status OpenBundle(Span<const std::byte> file, Bundle* out, Diag* diag);

// Checks that a segment lies inside the area (with kOverreadBytes after it), at a multiple of 64.
// `what` names it in the error.
Status CheckSegment(const Bundle& bundle, const fbs::Segment& segment, const char* what,
                    Diag* diag);

struct SignedDigests;  // signature.h
enum class BundleParts : uint8_t {
  kAll,
  kTexts,    // tokenizer and chat templates
  kWeights,  // tensors, stored prefix and self-test
};
// Reads those segments and compares their hashes; with a signature, the digests of the blocks they
// lie in. Returns kHashMismatch, and CheckSegment's errors.
Status VerifySegments(const Bundle& bundle, BundleParts parts, const SignedDigests* signed_digests,
                      Diag* diag);

}  // namespace arn
