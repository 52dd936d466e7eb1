#include "runtime/bundle/seal.h"

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

uint64_t SealBlockBytes(uint64_t segments_bytes) {
  uint64_t block_bytes = kMinSealBlockBytes;
  while (Blocks(segments_bytes, block_bytes) > kMaxSealBlocks) block_bytes *= 2;
  return block_bytes;
}

void SealDigest(Span<const std::byte> bytes, uint8_t* out) {
  Sha512 hash;
  hash.Update(bytes.data(), bytes.size());
  hash.Final(out);
}

void SealMessage(const Bundle& bundle, const SealHeader& seal, const uint8_t* digests,
                 uint8_t* out) {
  BundleHeader header;
  std::memcpy(&header, bundle.file.data(), sizeof header);
  Sha512 hash;
  hash.Update(kDomain, sizeof kDomain);
  hash.Update(&header, sizeof header);
  hash.Update(bundle.file.data() + header.index_offset, static_cast<size_t>(header.index_bytes));
  hash.Update(&seal, offsetof(SealHeader, signature));
  hash.Update(digests, size_t{seal.n_blocks} * kDigestBytes);
  hash.Final(out);
}

Status OpenSeal(const Bundle& bundle, Span<const uint8_t> public_key, Seal* out, Diag* diag) {
  *out = Seal();
  SealHeader seal;
  const uint64_t begin = kSealOffset + sizeof seal;
  if (bundle.segments_offset < begin) {
    return diag->Fail(Status::kBadSignature, "the bundle is not signed: it has no room for a seal");
  }
  std::memcpy(&seal, bundle.file.data() + kSealOffset, sizeof seal);
  if (std::memcmp(seal.magic, "ARNSEAL", 8) != 0) {
    return diag->Fail(Status::kBadSignature, "the bundle is not signed");
  }
  const uint64_t blocks = bundle.segments.size() == 0 || seal.block_bytes == 0
                              ? 0
                              : Blocks(bundle.segments.size(), seal.block_bytes);
  if (seal.reserved != 0 || seal.n_blocks != blocks || seal.n_blocks == 0 ||
      seal.n_blocks > (bundle.segments_offset - begin) / kDigestBytes) {
    return diag->Fail(Status::kBadSignature,
                      "the seal has %u digests of blocks of %" PRIu64
                      " bytes, the segment area has %zu bytes",
                      seal.n_blocks, seal.block_bytes, bundle.segments.size());
  }
  if (std::memcmp(seal.public_key, public_key.data(), kPublicKeyBytes) != 0) {
    return diag->Fail(Status::kBadSignature,
                      "the bundle is signed with the key %02x%02x%02x%02x.., not with "
                      "%02x%02x%02x%02x..",
                      seal.public_key[0], seal.public_key[1], seal.public_key[2],
                      seal.public_key[3], public_key[0], public_key[1], public_key[2],
                      public_key[3]);
  }
  const std::byte* digests = bundle.file.data() + begin;
  uint8_t message[kDigestBytes];
  SealMessage(bundle, seal, reinterpret_cast<const uint8_t*>(digests), message);
  if (crypto_sign_ed25519_verify_detached(seal.signature, message, sizeof message,
                                          public_key.data()) != 0) {
    return diag->Fail(Status::kBadSignature,
                      "the signature does not match: the bundle is not what was signed");
  }
  out->block_bytes = seal.block_bytes;
  out->digests = {digests, size_t{seal.n_blocks} * kDigestBytes};
  return Status::kOk;
}

Status CheckSealed(const Bundle& bundle, const Seal& seal, uint64_t offset, uint64_t bytes,
                   const char* what, Diag* diag) {
  const uint64_t area = bundle.segments.size();
  if (bytes == 0) return Status::kOk;
  if (bytes > area || offset > area - bytes) {
    return diag->Fail(Status::kBundleTruncated,
                      "%s: %" PRIu64 " bytes at %" PRIu64 " leave the segment area of %" PRIu64
                      " bytes",
                      what, bytes, offset, area);
  }
  const uint64_t last = (offset + bytes - 1) / seal.block_bytes;
  for (uint64_t block = offset / seal.block_bytes; block <= last; ++block) {
    const uint64_t begin = block * seal.block_bytes;
    uint8_t digest[kDigestBytes];
    SealDigest(bundle.segments.subspan(static_cast<size_t>(begin),
                                       static_cast<size_t>(Min(seal.block_bytes, area - begin))),
               digest);
    if (std::memcmp(digest, seal.digests.data() + block * kDigestBytes, kDigestBytes) != 0) {
      return diag->Fail(Status::kHashMismatch,
                        "%s: bytes %" PRIu64 "..%" PRIu64
                        " of the segment area are not what was signed",
                        what, begin, Min(begin + seal.block_bytes, area));
    }
  }
  return Status::kOk;
}

}  // namespace arn
