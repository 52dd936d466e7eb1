// Signed bundles: keys, coverage of the signature, and when each part is verified.
#include <cstring>
#include <set>

#include "arenite/arenite.h"
#include "converter/write/signing_key.h"
#include "runtime/bundle/signature.h"
#include "sodium/crypto_sign_ed25519.h"
#include "tests/support/tiny_bundle.h"
#include "tests/unit/converter/bundle_fixture.h"

namespace arn::convert {
namespace {

using test::BundleBytes;
using test::ErrorOf;
using ::testing::HasSubstr;

// RFC 8032, 7.1, test 1, as 64 digits and in the format of `openssl genpkey`.
constexpr char kSeedHex[] = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
constexpr char kPublicHex[] = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
constexpr char kPem[] =
    "-----BEGIN PRIVATE KEY-----\n"
    "MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n"
    "-----END PRIVATE KEY-----\n";

class SigningKeyTest : public ::testing::Test {
 protected:
  std::filesystem::path File(const std::string& text) {
    const auto path = folder_ / "key";
    test::WriteFile(path, text);
    return path;
  }
  std::string ErrorOfKey(const std::string& text) {
    return ErrorOf([&] { SigningKey::Read(File(text)); });
  }

  test::TempFolder folder_;
};

TEST_F(SigningKeyTest, BothForms_GiveThePublishedPublicKey) {
  EXPECT_EQ(kPublicHex, SigningKey::Read(File(kSeedHex)).PublicHex());
  EXPECT_EQ(kPublicHex, SigningKey::Read(File(std::string(kSeedHex) + "\n")).PublicHex());
  EXPECT_EQ(kPublicHex, SigningKey::Read(File(kPem)).PublicHex());
}

TEST_F(SigningKeyTest, Sign_NoMessage_IsThePublishedSignature) {
  uint8_t signature[SigningKey::kSignatureBytes];
  SigningKey::Read(File(kSeedHex)).Sign({}, signature);
  const uint8_t wanted[] = {0xe5, 0x56, 0x43, 0x00, 0xc3, 0x60, 0xac, 0x72};  // its first bytes
  EXPECT_EQ(0, std::memcmp(wanted, signature, sizeof wanted));
}

TEST_F(SigningKeyTest, OtherFiles_AreRefusedByName) {
  EXPECT_THAT(ErrorOfKey("9d61"), HasSubstr("64 hexadecimal digits"));
  EXPECT_THAT(ErrorOfKey(std::string(64, 'g')), HasSubstr("64 hexadecimal digits"));
  EXPECT_THAT(ErrorOfKey("-----BEGIN RSA PRIVATE KEY-----\nMC4C\n"), HasSubstr("key: expected"));
  EXPECT_THAT(ErrorOfKey("-----BEGIN PRIVATE KEY-----\nMC4C"), HasSubstr("damaged"));
  EXPECT_THAT(ErrorOfKey("-----BEGIN PRIVATE KEY-----\nMC4*\n-----END PRIVATE KEY-----"),
              HasSubstr("damaged"));
  std::string x25519 = kPem;  // the same bytes except for the last of the algorithm id
  x25519.replace(x25519.find("K2VwBCIEI"), 4, "K2Vu");
  EXPECT_THAT(ErrorOfKey(x25519), HasSubstr("not an Ed25519 key"));
  EXPECT_THAT(ErrorOf([&] { SigningKey::Read(folder_ / "none"); }), HasSubstr("none"));
}

TEST(SignatureTest, BlockBytes_TheDigestsFitBeforeTheSegments) {
  EXPECT_EQ(65536u, SignedBlockBytes(1));
  EXPECT_EQ(65536u, SignedBlockBytes(65536ull * kMaxSignedBlocks));
  EXPECT_EQ(131072u, SignedBlockBytes(65536ull * kMaxSignedBlocks + 1));
  const uint64_t huge = 500ull << 30;
  EXPECT_LE((huge + SignedBlockBytes(huge) - 1) / SignedBlockBytes(huge), kMaxSignedBlocks);
}

// The results of opening a bundle and creating a session.
struct Outcome {
  arn_status open = ARN_OK;
  arn_status session = ARN_OK;
  std::string error;
};

class SignedBundleTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    test::TempFolder folder;
    const auto key_file = folder / "key";
    test::WriteFile(key_file, std::string(kSeedHex));
    const SigningKey key = SigningKey::Read(key_file);
    std::memcpy(public_key_, key.public_key(), sizeof public_key_);
    ConvertOptions options;
    options.folder = ARN_FABLE_DIR;
    options.output = folder / "plain.arn";
    options.formats = {DType::kInt8, DType::kInt8, DType::kInt8, FindPackTarget("portable")};
    Convert(options, {});
    plain_ = test::ReadFile(options.output);
    options.output = folder / "signed.arn";
    options.signing_key = &key;
    Convert(options, {});
    signed_ = test::ReadFile(options.output);
  }

  static BundleHeader Header() {
    BundleHeader header;
    std::memcpy(&header, signed_.data(), sizeof header);
    return header;
  }
  // A byte within the last weight, before the 128 bytes of padding.
  static size_t AWeightByte() { return Header().index_offset - 128 - 64; }

  // Opens a bundle in memory.
  static Outcome Open(const std::vector<uint8_t>& bytes, const uint8_t* key,
                      uint32_t hashes = ARN_HASHES_INDEX) {
    const BundleBytes aligned(bytes);
    arn_model_options options = ARN_MODEL_OPTIONS_INIT;
    options.public_key = key;
    options.verify_hashes = hashes;
    Outcome outcome;
    char error[512] = "";
    arn_model* model = nullptr;
    outcome.open =
        arn_model_open_memory(aligned.data(), bytes.size(), &options, error, sizeof error, &model);
    if (outcome.open == ARN_OK) {
      arn_session_options session_options = ARN_SESSION_OPTIONS_INIT;
      session_options.context_tokens = 16;
      arn_session* session = nullptr;
      outcome.session =
          arn_session_create(model, &session_options, nullptr, 0, error, sizeof error, &session);
      arn_session_destroy(session);
    }
    arn_model_close(model);
    outcome.error = error;
    return outcome;
  }

  static std::vector<uint8_t> Flipped(size_t at) {
    std::vector<uint8_t> bytes = signed_;
    bytes[at] ^= 1;
    return bytes;
  }

  static std::vector<uint8_t> plain_, signed_;
  static uint8_t public_key_[32];
};
std::vector<uint8_t> SignedBundleTest::plain_, SignedBundleTest::signed_;
uint8_t SignedBundleTest::public_key_[32];

TEST_F(SignedBundleTest, Signing_ChangesNothingButTheGapBehindTheHeader) {
  ASSERT_EQ(plain_.size(), signed_.size());
  EXPECT_EQ(0, std::memcmp(plain_.data(), signed_.data(), kSignatureOffset));
  EXPECT_EQ(0, std::memcmp(plain_.data() + 16384, signed_.data() + 16384, plain_.size() - 16384));
  EXPECT_NE(plain_, signed_);
}

// docs/bundle-format.md: what is hashed, byte by byte, so that nothing of it can be left out.
TEST_F(SignedBundleTest, WhatIsSigned_IsThatOfTheFormat) {
  const BundleBytes aligned(signed_);
  const auto* const file = reinterpret_cast<const std::byte*>(aligned.data());
  Bundle bundle;
  Diag diag;
  ASSERT_EQ(Status::kOk, OpenBundle({file, signed_.size()}, &bundle, &diag)) << diag.text();
  SignatureHeader signature;
  std::memcpy(&signature, signed_.data() + kSignatureOffset, sizeof signature);
  const size_t digests = kSignatureOffset + sizeof signature;
  const size_t digest_bytes = signature.n_blocks * size_t{64};

  const std::string domain("arenite bundle seal 1", 22);
  std::vector<uint8_t> hashed(domain.begin(), domain.end());
  const auto append = [&](size_t begin, size_t bytes) {
    hashed.insert(hashed.end(), signed_.begin() + begin, signed_.begin() + begin + bytes);
  };
  append(0, 64);
  append(Header().index_offset, Header().index_bytes);
  append(kSignatureOffset, 56);
  append(digests, digest_bytes);
  uint8_t message[kDigestBytes];
  BlockDigest({reinterpret_cast<const std::byte*>(hashed.data()), hashed.size()}, message);
  EXPECT_EQ(0, crypto_sign_ed25519_verify_detached(signature.signature, message, sizeof message,
                                                   public_key_));

  SignedDigests read;
  ASSERT_EQ(Status::kOk, CheckSignature(bundle, public_key_, &read, &diag)) << diag.text();
  EXPECT_EQ(signature.block_bytes, read.block_bytes);
  EXPECT_EQ(file + digests, read.digests.data());
  EXPECT_EQ(digest_bytes, read.digests.size());
}

TEST_F(SignedBundleTest, WithItsKeyOrNone_OpensAndRuns) {
  for (const uint32_t hashes : {ARN_HASHES_INDEX, ARN_HASHES_ALL, ARN_HASHES_ON_USE}) {
    for (const uint8_t* key : {static_cast<const uint8_t*>(public_key_), (const uint8_t*)nullptr}) {
      const Outcome outcome = Open(signed_, key, hashes);
      EXPECT_EQ(ARN_OK, outcome.open) << outcome.error;
      EXPECT_EQ(ARN_OK, outcome.session) << outcome.error;
    }
  }
}

TEST_F(SignedBundleTest, UnsignedOrAnothersBundle_IsRefused) {
  Outcome outcome = Open(plain_, public_key_);
  EXPECT_EQ(ARN_BAD_SIGNATURE, outcome.open);
  EXPECT_THAT(outcome.error, HasSubstr("not signed"));
  uint8_t other[32];
  std::memcpy(other, public_key_, sizeof other);
  other[0] ^= 1;
  outcome = Open(signed_, other);
  EXPECT_EQ(ARN_BAD_SIGNATURE, outcome.open);
  EXPECT_THAT(outcome.error, HasSubstr("key d75a9801.., not with d65a9801.."));
}

TEST_F(SignedBundleTest, AnyChangeOfTheSignature_IsRefused) {
  SignatureHeader header;
  std::memcpy(&header, signed_.data() + kSignatureOffset, sizeof header);
  ASSERT_GT(header.n_blocks, 8u);
  const size_t bytes = sizeof header + header.n_blocks * kDigestBytes;
  for (size_t at = 0; at < bytes; at += at < sizeof header ? 1 : 29) {
    EXPECT_EQ(ARN_BAD_SIGNATURE, Open(Flipped(kSignatureOffset + at), public_key_).open) << at;
  }
}

TEST_F(SignedBundleTest, SignaturesOfAbsurdSizes_AreRefused) {
  SignatureHeader header;
  std::memcpy(&header, signed_.data() + kSignatureOffset, sizeof header);
  for (const uint64_t block_bytes : {uint64_t{0}, uint64_t{1}, header.block_bytes - 1,
                                     header.block_bytes * 2, uint64_t{1} << 63, UINT64_MAX}) {
    for (const uint32_t n_blocks : {0u, 1u, header.n_blocks, kMaxSignedBlocks, ~0u}) {
      if (block_bytes == header.block_bytes && n_blocks == header.n_blocks) continue;
      SignatureHeader edited = header;
      edited.block_bytes = block_bytes;
      edited.n_blocks = n_blocks;
      std::vector<uint8_t> bytes = signed_;
      std::memcpy(bytes.data() + kSignatureOffset, &edited, sizeof edited);
      EXPECT_EQ(ARN_BAD_SIGNATURE, Open(bytes, public_key_).open) << block_bytes << " " << n_blocks;
    }
  }
}

TEST_F(SignedBundleTest, HeaderAndIndex_AreSigned) {
  const BundleHeader header = Header();
  std::set<arn_status> seen;
  for (size_t at = header.index_offset; at < signed_.size(); at += 97) {
    std::vector<uint8_t> bytes = Flipped(at);
    test::RepairHashes(bytes.data(), bytes.size());  // as an attacker without the key would
    const arn_status status = Open(bytes, public_key_).open;
    seen.insert(status);
    // Structural damage is reported first.
    EXPECT_TRUE(status == ARN_BAD_SIGNATURE || status == ARN_BAD_BUNDLE) << at << " " << status;
  }
  EXPECT_EQ(1u, seen.count(ARN_BAD_SIGNATURE));

  std::vector<uint8_t> shorter = signed_;
  BundleHeader edited = header;
  edited.segments_bytes -= 16;
  std::memcpy(shorter.data(), &edited, sizeof edited);
  test::RepairHashes(shorter.data(), shorter.size());
  EXPECT_EQ(ARN_BAD_SIGNATURE, Open(shorter, public_key_).open);
}

TEST_F(SignedBundleTest, Texts_AreCheckedWhileOpening) {
  const Outcome outcome = Open(Flipped(16384 + 5), public_key_);
  EXPECT_EQ(ARN_HASH_MISMATCH, outcome.open);
  EXPECT_THAT(outcome.error, HasSubstr("tokenizer"));
  EXPECT_THAT(outcome.error, HasSubstr("0..65536"));
}

TEST_F(SignedBundleTest, Weights_AreCheckedByTheFirstSession) {
  const std::vector<uint8_t> bytes = Flipped(AWeightByte());
  for (const uint32_t hashes : {ARN_HASHES_INDEX, ARN_HASHES_ON_USE}) {
    const Outcome outcome = Open(bytes, public_key_, hashes);
    EXPECT_EQ(ARN_OK, outcome.open) << outcome.error;
    EXPECT_EQ(ARN_HASH_MISMATCH, outcome.session);
    EXPECT_THAT(outcome.error, HasSubstr("not what was signed"));
  }
  EXPECT_EQ(ARN_HASH_MISMATCH, Open(bytes, public_key_, ARN_HASHES_ALL).open);
}

TEST_F(SignedBundleTest, HashesOnUse_NeedNoKey) {
  EXPECT_EQ(ARN_HASH_MISMATCH, Open(Flipped(16384 + 5), nullptr, ARN_HASHES_ON_USE).open);
  const Outcome outcome = Open(Flipped(AWeightByte()), nullptr, ARN_HASHES_ON_USE);
  EXPECT_EQ(ARN_OK, outcome.open) << outcome.error;
  EXPECT_EQ(ARN_HASH_MISMATCH, outcome.session);
  EXPECT_THAT(outcome.error, HasSubstr("the index says"));
  EXPECT_EQ(ARN_OK, Open(Flipped(AWeightByte()), nullptr).session);
}

TEST_F(SignedBundleTest, HashesOfAnotherKind_AreRefused) {
  const Outcome outcome = Open(signed_, nullptr, 3);
  EXPECT_EQ(ARN_BAD_ARGUMENT, outcome.open);
  EXPECT_THAT(outcome.error, HasSubstr("verify_hashes is 3"));
}

// A bundle read through a callback, as an app with its own decryption would.
struct Source {
  const std::vector<uint8_t>* bytes;
  uint64_t next = 0;
  uint64_t fail_at = UINT64_MAX;
};

int ReadSource(void* user, uint64_t offset, void* out, size_t bytes) {
  auto* source = static_cast<Source*>(user);
  EXPECT_EQ(source->next, offset);
  EXPECT_LE(bytes, size_t{4} << 20);
  source->next = offset + bytes;
  if (offset + bytes > source->fail_at) return -7;
  std::memcpy(out, source->bytes->data() + offset, bytes);
  return 0;
}

TEST_F(SignedBundleTest, Reader_IsReadOnceFromBeginningToEnd) {
  Source source{&signed_};
  const arn_reader reader = {sizeof reader, signed_.size(), &source, ReadSource};
  arn_model_options options = ARN_MODEL_OPTIONS_INIT;
  options.public_key = public_key_;
  char error[512] = "";
  arn_model* model = nullptr;
  ASSERT_EQ(ARN_OK, arn_model_open_reader(&reader, &options, error, sizeof error, &model)) << error;
  EXPECT_EQ(signed_.size(), source.next);
  arn_session* session = nullptr;
  EXPECT_EQ(ARN_OK, arn_session_create(model, nullptr, nullptr, 0, error, sizeof error, &session))
      << error;
  arn_session_destroy(session);
  arn_model_close(model);
}

TEST_F(SignedBundleTest, Reader_ThatFails_IsToldWithWhatItGave) {
  Source source{&signed_};
  source.fail_at = 100;
  arn_reader reader = {sizeof reader, signed_.size(), &source, ReadSource};
  char error[512] = "";
  arn_model* model = nullptr;
  EXPECT_EQ(ARN_IO, arn_model_open_reader(&reader, nullptr, error, sizeof error, &model));
  EXPECT_THAT(error, HasSubstr("the reader returned -7"));
  EXPECT_EQ(nullptr, model);
  reader.read = nullptr;
  EXPECT_EQ(ARN_BAD_ARGUMENT, arn_model_open_reader(&reader, nullptr, error, sizeof error, &model));
  reader.read = ReadSource;
  reader.bytes = 0;
  EXPECT_EQ(ARN_BAD_ARGUMENT, arn_model_open_reader(&reader, nullptr, error, sizeof error, &model));
  EXPECT_EQ(ARN_BAD_ARGUMENT, arn_model_open_reader(nullptr, nullptr, error, sizeof error, &model));
  reader.bytes = 100;  // a truncated bundle is refused and its memory freed
  source.fail_at = UINT64_MAX;
  source.next = 0;
  EXPECT_EQ(ARN_BUNDLE_TRUNCATED,
            arn_model_open_reader(&reader, nullptr, error, sizeof error, &model));
}

}  // namespace
}  // namespace arn::convert
