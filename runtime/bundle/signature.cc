#include "runtime/bundle/signature.h"

#include <cinttypes>
#include <cstring>

#include "platform/base/arith.h"
#include "sodium/crypto_hash_sha512.h"
#include "sodium/crypto_sign_ed25519.h"

namespace arn {
namespace {

static_assert(kPublicKeyBytes == crypto_sign_ed25519_PUBLICKEYBYTES);
static_assert(kSignatureBytes == crypto_sign_ed25519_BYTES);
static_assert(kDigestBytes == crypto_hash_sha512_BYTES);

// Domain separation: a signature made for another purpose is not valid for a bundle.
constexpr char kDomain[] = "arenite bundle seal 1";

class Sha512 {
 public:
  Sha512() { crypto_hash_sha512_init(&state_); }
  void Update(const void* data, size_t bytes) {
    crypto_hash_sha512_update(&state_, static_cast<const unsigned char*>(data), bytes);
  }
  void Final(uint8_t* out) { crypto_hash_sha512_final(&state_, out); }

 private:
  crypto_hash_sha512_state state_;
};

uint64_t Blocks(uint64_t bytes, uint64_t block_bytes) {
  return bytes / block_bytes + (bytes % block_bytes != 0 ? 1 : 0);
}

}  // namespace

uint64_t SignedBlockBytes(uint64_t segments_bytes) {
  uint64_t block_bytes = kMinSignedBlockBytes;
  while (Blocks(segments_bytes, block_bytes) > kMaxSignedBlocks) block_bytes *= 2;
  return block_bytes;
}

void BlockDigest(Span<const std::byte> bytes, uint8_t* out) {
  Sha512 hash;
  hash.Update(bytes.data(), bytes.size());
  hash.Final(out);
}

void SignedMessage(const Bundle& bundle, const SignatureHeader& signature, const uint8_t* digests,
                   uint8_t* out) {
  BundleHeader header;
  std::memcpy(&header, bundle.file.data(), sizeof header);
  Sha512 hash;
  hash.Update(kDomain, sizeof kDomain);
  hash.Update(&header, sizeof header);
  hash.Update(bundle.file.data() + header.index_offset, static_cast<size_t>(header.index_bytes));
  hash.Update(&signature, offsetof(SignatureHeader, signature));
  hash.Update(digests, size_t{signature.n_blocks} * kDigestBytes);
  hash.Final(out);
}

Status CheckSignature(const Bundle& bundle, Span<const uint8_t> public_key, SignedDigests* out,
                      Diag* diag) {
  *out = SignedDigests();
  SignatureHeader header;
  const uint64_t begin = kSignatureOffset + sizeof header;
  if (bundle.segments_offset < begin) {
    return diag->Fail(Status::kBadSignature,
                      "the bundle is not signed: it has no room for a signature");
  }
  std::memcpy(&header, bundle.file.data() + kSignatureOffset, sizeof header);
  if (std::memcmp(header.magic, "ARNSEAL", 8) != 0) {
    return diag->Fail(Status::kBadSignature, "the bundle is not signed");
  }
  const uint64_t blocks = bundle.segments.size() == 0 || header.block_bytes == 0
                              ? 0
                              : Blocks(bundle.segments.size(), header.block_bytes);
  if (header.reserved != 0 || header.n_blocks != blocks || header.n_blocks == 0 ||
      header.n_blocks > (bundle.segments_offset - begin) / kDigestBytes) {
    return diag->Fail(Status::kBadSignature,
                      "the signature has %u digests of blocks of %" PRIu64
                      " bytes, the segment area has %zu bytes",
                      header.n_blocks, header.block_bytes, bundle.segments.size());
  }
  if (std::memcmp(header.public_key, public_key.data(), kPublicKeyBytes) != 0) {
    return diag->Fail(Status::kBadSignature,
                      "the bundle is signed with the key %02x%02x%02x%02x.., not with "
                      "%02x%02x%02x%02x..",
                      header.public_key[0], header.public_key[1], header.public_key[2],
                      header.public_key[3], public_key[0], public_key[1], public_key[2],
                      public_key[3]);
  }
  const std::byte* digests = bundle.file.data() + begin;
  uint8_t message[kDigestBytes];
  SignedMessage(bundle, header, reinterpret_cast<const uint8_t*>(digests), message);
  if (crypto_sign_ed25519_verify_detached(header.signature, message, sizeof message,
                                          public_key.data()) != 0) {
    return diag->Fail(Status::kBadSignature,
                      "the signature does not match: the bundle is not what was signed");
  }
  out->block_bytes = header.block_bytes;
  out->digests = {digests, size_t{header.n_blocks} * kDigestBytes};
  return Status::kOk;
}

Status CheckDigests(const Bundle& bundle, const SignedDigests& signed_digests, uint64_t offset,
                    uint64_t bytes, const char* what, Diag* diag) {
  const uint64_t area = bundle.segments.size();
  if (bytes == 0) return Status::kOk;
  if (bytes > area || offset > area - bytes) {
    return diag->Fail(Status::kBundleTruncated,
                      "%s: %" PRIu64 " bytes at %" PRIu64 " exceed the segment area of %" PRIu64
                      " bytes",
                      what, bytes, offset, area);
  }
  const uint64_t last = (offset + bytes - 1) / signed_digests.block_bytes;
  for (uint64_t block = offset / signed_digests.block_bytes; block <= last; ++block) {
    const uint64_t begin = block * signed_digests.block_bytes;
    uint8_t digest[kDigestBytes];
    BlockDigest(
        bundle.segments.subspan(static_cast<size_t>(begin),
                                static_cast<size_t>(Min(signed_digests.block_bytes, area - begin))),
        digest);
    if (std::memcmp(digest, signed_digests.digests.data() + block * kDigestBytes, kDigestBytes) !=
        0) {
      return diag->Fail(Status::kHashMismatch,
                        "%s: bytes %" PRIu64 "..%" PRIu64
                        " of the segment area are not what was signed",
                        what, begin, Min(begin + signed_digests.block_bytes, area));
    }
  }
  return Status::kOk;
}

}  // namespace arn
