#include "runtime/bundle/bundle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "arenite/arenite.h"
#include "platform/base/arith.h"
#include "platform/base/hash.h"
#include "platform/base/layout.h"
#include "runtime/bundle/signature.h"
#include "tests/support/tiny_bundle.h"

namespace arn::test {
namespace {

// Opens the first `size` bytes of a file in memory. Returns the status and sets *error.
arn_status Open(const BundleBytes& bytes, size_t size, std::string* error, bool verify = false) {
  arn_model_options options = ARN_MODEL_OPTIONS_INIT;
  options.verify_hashes = verify ? 1 : 0;
  char text[512] = "";
  arn_model* model = nullptr;
  const arn_status status =
      arn_model_open_memory(bytes.data(), size, &options, text, sizeof text, &model);
  EXPECT_EQ(status == ARN_OK, model != nullptr);
  *error = text;
  arn_model_close(model);
  return status;
}

arn_status Open(const BundleBytes& bytes, std::string* error, bool verify = false) {
  return Open(bytes, bytes.size(), error, verify);
}

BundleHeader HeaderOf(const BundleBytes& bytes) {
  BundleHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  return header;
}

// Writes the header with a valid hash, as a malicious file would.
void SetHeader(BundleBytes* bytes, BundleHeader header) {
  std::memcpy(bytes->data(), &header, sizeof header);
  header.header_hash = Xxh64(bytes->data(), offsetof(BundleHeader, header_hash));
  std::memcpy(bytes->data(), &header, sizeof header);
}

TEST(Bundle_Open, Whole_Opens) {
  std::string error;
  EXPECT_EQ(ARN_OK, Open(MakeTinyBundle(TinyBundle()), &error, true)) << error;
}

TEST(Bundle_Open, EveryTruncation_IsAnErrorWithASentence) {
  const BundleBytes bytes = MakeTinyBundle(TinyBundle());
  for (size_t size = 0; size < bytes.size(); size += size < 200 ? 1 : 397) {
    std::string error;
    ASSERT_NE(ARN_OK, Open(bytes, size, &error)) << size;
    ASSERT_NE("", error);
    // The shortest of which more can be said than that it has no header.
    const bool has_header = error.find("the header puts the index at") != std::string::npos;
    EXPECT_EQ(size >= sizeof(BundleHeader), has_header) << size << ": " << error;
  }
}

TEST(Bundle_Header, OtherFiles_AreToldApart) {
  std::string error;
  BundleBytes bytes = MakeTinyBundle(TinyBundle());
  bytes.data()[0] = 'X';
  EXPECT_EQ(ARN_BAD_BUNDLE, Open(bytes, &error));
  EXPECT_NE(std::string::npos, error.find("not an Arenite bundle")) << error;

  bytes = MakeTinyBundle(TinyBundle());
  BundleHeader header = HeaderOf(bytes);
  header.version = 2;
  SetHeader(&bytes, header);
  EXPECT_EQ(ARN_BUNDLE_VERSION, Open(bytes, &error));
  EXPECT_NE(std::string::npos, error.find("version 2")) << error;
}

TEST(Bundle_Header, BytesBehindTheBundle_AreRefused) {
  const BundleBytes whole = MakeTinyBundle(TinyBundle());
  std::vector<uint8_t> longer(whole.data(), whole.data() + whole.size());
  longer.push_back(0);
  std::string error;
  EXPECT_EQ(ARN_BAD_BUNDLE, Open(BundleBytes(longer), &error));
  EXPECT_EQ("1 extra bytes after the end of the bundle at " + std::to_string(whole.size()), error);
  longer.resize(longer.size() + 100000);
  EXPECT_EQ(ARN_BAD_BUNDLE, Open(BundleBytes(longer), &error));
}

TEST(Bundle_Header, FilesOfOtherFormats_AreNamed) {
  using namespace std::string_literals;
  const auto error_of = [](std::string begin, size_t size) {
    begin.resize(size, ' ');
    std::string error;
    EXPECT_EQ(ARN_BAD_BUNDLE, Open(BundleBytes({begin.begin(), begin.end()}), size, &error));
    return error;
  };
  EXPECT_EQ("not an Arenite bundle: the file does not begin with ARENITE", error_of("GGU", 3));
  EXPECT_EQ("not an Arenite bundle: a GGUF file", error_of("GGUF", 4));
  for (const size_t size : {30u, 5000u}) {
    EXPECT_EQ("not an Arenite bundle: a GGUF file", error_of("GGUF\3\0\0\0"s, size));
    EXPECT_EQ("not an Arenite bundle: a safetensors file",
              error_of("\x10\x05\0\0\0\0\0\0{\"__metadata__\""s, size));
    EXPECT_NE(std::string::npos, error_of("PK\3\4"s, size).find("ZIP"));
    EXPECT_NE(std::string::npos, error_of("ARNPART"s, size).find("a later part of one"));
    EXPECT_NE(std::string::npos,
              error_of("version https://git-lfs.github.com/spec/v1\n", 140).find("Git LFS"));
    EXPECT_NE(std::string::npos, error_of("{", size).find("begin with ARENITE"));
  }
}

TEST(Bundle_Header, OneChangedByte_IsSeenByTheHash) {
  for (size_t at = 12; at < 64; ++at) {
    BundleBytes bytes = MakeTinyBundle(TinyBundle());
    bytes.data()[at] ^= 0x10;
    std::string error;
    EXPECT_EQ(ARN_HASH_MISMATCH, Open(bytes, &error)) << at;
  }
}

TEST(Bundle_Header, OtherSizes_AreDamage) {
  BundleBytes bytes = MakeTinyBundle(TinyBundle());
  BundleHeader header = HeaderOf(bytes);
  header.header_bytes += 8;
  SetHeader(&bytes, header);
  std::string error;
  EXPECT_EQ(ARN_HASH_MISMATCH, Open(bytes, &error));
  EXPECT_EQ("the header is damaged (its hash does not match)", error);
}

TEST(Bundle_Header, DamagedIndex_IsSeenByTheHash) {
  const BundleHeader header = HeaderOf(MakeTinyBundle(TinyBundle()));
  for (const uint64_t at : {uint64_t{0}, header.index_bytes / 2, header.index_bytes - 1}) {
    BundleBytes bytes = MakeTinyBundle(TinyBundle());
    bytes.data()[header.index_offset + at] ^= 1;
    std::string error;
    EXPECT_EQ(ARN_HASH_MISMATCH, Open(bytes, &error)) << at;
    EXPECT_EQ("the index is damaged (its hash does not match)", error);
  }
}

TEST(Bundle_Header, RangesThatWrap_AreTruncated) {
  const uint64_t file = MakeTinyBundle(TinyBundle()).size();
  for (uint64_t value : {file, UINT64_MAX, UINT64_MAX - 63, uint64_t{1} << 63}) {
    for (int field = 0; field < 4; ++field) {
      BundleBytes bytes = MakeTinyBundle(TinyBundle());
      BundleHeader header = HeaderOf(bytes);
      uint64_t* fields[] = {&header.index_offset, &header.index_bytes, &header.segments_offset,
                            &header.segments_bytes};
      *fields[field] = value;
      SetHeader(&bytes, header);
      std::string error;
      EXPECT_EQ(ARN_BUNDLE_TRUNCATED, Open(bytes, &error)) << field << ": " << error;
    }
  }
}

TEST(Bundle_Header, SegmentsMayBeTheWholeFile) {
  BundleBytes bytes = MakeTinyBundle(TinyBundle());
  BundleHeader header = HeaderOf(bytes);
  header.segments_offset = 0;
  header.segments_bytes = bytes.size();
  SetHeader(&bytes, header);
  Bundle bundle;
  Diag diag;
  ASSERT_EQ(
      Status::kOk,
      OpenBundle({reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()}, &bundle, &diag))
      << diag.text();
  const uint64_t most = bytes.size() - kOverreadBytes;
  EXPECT_EQ(Status::kOk, CheckSegment(bundle, fbs::Segment(0, most, 0), "all", &diag));
  EXPECT_EQ(Status::kBundleTruncated,
            CheckSegment(bundle, fbs::Segment(0, most + 1, 0), "all", &diag));
}

TEST(Bundle_Header, UnalignedParts_AreRefused) {
  for (const bool is_index : {true, false}) {
    BundleBytes bytes = MakeTinyBundle(TinyBundle());
    BundleHeader header = HeaderOf(bytes);
    if (is_index) {
      header.index_offset += 8;
      header.index_bytes -= 8;
    } else {
      header.segments_offset += 16;
    }
    SetHeader(&bytes, header);
    std::string error;
    EXPECT_EQ(ARN_BAD_BUNDLE, Open(bytes, &error)) << is_index;
    EXPECT_NE(std::string::npos, error.find("is not aligned")) << error;
  }
}

// An index with a valid hash that is none.
TEST(Bundle_Header, OtherIndexes_AreRefused) {
  const BundleBytes whole = MakeTinyBundle(TinyBundle());
  const uint64_t begin = HeaderOf(whole).index_offset;
  for (const size_t size : {size_t{0}, size_t{8}, size_t{15}, size_t{16}, size_t{400}}) {
    std::vector<uint8_t> file(whole.data(), whole.data() + begin);
    file.resize(begin + size, 0xFF);
    BundleHeader header = HeaderOf(whole);
    header.index_bytes = size;
    std::memcpy(file.data(), &header, sizeof header);
    RepairHashes(file.data(), file.size());
    std::string error;
    EXPECT_EQ(ARN_BAD_BUNDLE, Open(BundleBytes(file), &error)) << size;
    EXPECT_EQ("the index is not a valid FlatBuffer of a bundle", error);
  }
}

// A bundle with a segment of 100 bytes in every place that can have one, and tables without.
class AllSegments {
 public:
  using Change = std::function<void(size_t i, fbs::Segment* segment)>;
  explicit AllSegments(const Change& change = [](size_t, fbs::Segment*) {}) : change_(change) {
    using flatbuffers::Offset;
    const auto weight = Add("w"), low_rank = Add("adapter"), direction = Add("control vector"),
               state = Add("prefix state"), logits = Add("self-test logits");
    n_weights = names.size();
    fbs::Segment texts[10];
    const char* const kTexts[] = {
        "token_bytes", "token_offsets", "token_table",     "merge_table", "trie",
        "scores",      "byte_tree",     "start_byte_tree", "byte_places", "normalizers[].charsmap"};
    for (size_t i = 0; i < std::size(kTexts); ++i) {
      texts[i] = Add(std::string("tokenizer.") + kTexts[i]);
    }
    const auto program = Add("chat template");
    const std::vector<Offset<fbs::Tensor>> tensors = {
        fbs::CreateTensorDirect(fbb_, "w", fbs::DType::F32, nullptr, true, 1, 25, &weight),
        fbs::CreateTensorDirect(fbb_, "z", fbs::DType::F32)};
    const auto list = fbb_.CreateVectorOfSortedTables(
        const_cast<Offset<fbs::Tensor>*>(tensors.data()), tensors.size());
    fbs::ModelBuilder model(fbb_);
    model.add_tensors(list);
    const auto model_end = model.Finish();
    const std::vector<Offset<fbs::LowRank>> changes = {
        fbs::CreateLowRankDirect(fbb_, 0, 1, 1, fbs::DType::F32, 1, nullptr, &low_rank)};
    const std::vector<Offset<fbs::Direction>> directions = {
        fbs::CreateDirection(fbb_, 0, &direction)};
    const auto adapter = fbs::CreateAdapterDirect(fbb_, 0, nullptr, nullptr, &changes, &directions);
    const auto prefix = fbs::CreatePrefixDirect(fbb_, nullptr, &state);
    const auto self_test = fbs::CreateSelfTestDirect(fbb_, nullptr, nullptr, nullptr, &logits);
    fbs::NormalizerBuilder without(fbb_);
    const auto without_end = without.Finish();
    fbs::NormalizerBuilder with(fbb_);
    with.add_charsmap(&texts[9]);
    const std::vector<Offset<fbs::Normalizer>> steps = {without_end, with.Finish()};
    const auto step_list = fbb_.CreateVector(steps);
    fbs::TokenizerBuilder tokenizer(fbb_);
    tokenizer.add_token_bytes(&texts[0]);
    tokenizer.add_token_offsets(&texts[1]);
    tokenizer.add_token_table(&texts[2]);
    tokenizer.add_merge_table(&texts[3]);
    tokenizer.add_trie(&texts[4]);
    tokenizer.add_scores(&texts[5]);
    tokenizer.add_byte_tree(&texts[6]);
    tokenizer.add_start_byte_tree(&texts[7]);
    tokenizer.add_byte_places(&texts[8]);
    tokenizer.add_normalizers(step_list);
    const auto tokenizer_end = tokenizer.Finish();
    const std::vector<Offset<fbs::ChatProgram>> programs = {
        fbs::CreateChatProgramDirect(fbb_, "default", &program)};
    const auto chat = fbs::CreateChatDirect(fbb_, &programs);
    fbs::BundleBuilder bundle(fbb_);
    bundle.add_model(model_end);
    bundle.add_adapter(adapter);
    bundle.add_prefix(prefix);
    bundle.add_self_test(self_test);
    bundle.add_tokenizer(tokenizer_end);
    bundle.add_chat(chat);
    fbs::FinishBundleBuffer(fbb_, bundle.Finish());
    segments_.resize(segments_.size() + kOverreadBytes);
  }
  AllSegments(const AllSegments&) = delete;
  AllSegments& operator=(const AllSegments&) = delete;

  // For VerifySegments; valid as long as this is.
  Bundle Get() {
    Bundle bundle;
    bundle.index = fbs::GetBundle(fbb_.GetBufferPointer());
    bundle.segments = {reinterpret_cast<const std::byte*>(segments_.data()), segments_.size()};
    return bundle;
  }
  void Damage(size_t i) { segments_[i * 128 + 99] ^= 1; }

  std::vector<std::string> names;
  size_t n_weights = 0;

 private:
  fbs::Segment Add(const std::string& name) {
    const std::vector<uint8_t> bytes(100, static_cast<uint8_t>(names.size()));
    fbs::Segment segment(segments_.size(), bytes.size(), Xxh64(bytes.data(), bytes.size()));
    segments_.insert(segments_.end(), bytes.begin(), bytes.end());
    segments_.resize(AlignUp(segments_.size(), 128));
    change_(names.size(), &segment);
    names.push_back(name);
    return segment;
  }

  Change change_;
  flatbuffers::FlatBufferBuilder fbb_;
  std::vector<uint8_t> segments_;
};

TEST(Bundle_Segments, DamageAnywhere_IsFoundInItsPart) {
  const size_t n = AllSegments().names.size();
  ASSERT_EQ(16u, n);
  for (size_t i = 0; i < n; ++i) {
    AllSegments all;
    Diag diag;
    for (const BundleParts parts :
         {BundleParts::kAll, BundleParts::kTexts, BundleParts::kWeights}) {
      ASSERT_EQ(Status::kOk, VerifySegments(all.Get(), parts, nullptr, &diag)) << diag.text();
    }
    all.Damage(i);
    const bool is_weight = i < all.n_weights;
    EXPECT_EQ(Status::kHashMismatch, VerifySegments(all.Get(), BundleParts::kAll, nullptr, &diag));
    EXPECT_EQ(0u, std::string(diag.text()).find(all.names[i] + ": hash is ")) << diag.text();
    EXPECT_EQ(is_weight ? Status::kHashMismatch : Status::kOk,
              VerifySegments(all.Get(), BundleParts::kWeights, nullptr, &diag));
    EXPECT_EQ(is_weight ? Status::kOk : Status::kHashMismatch,
              VerifySegments(all.Get(), BundleParts::kTexts, nullptr, &diag));
  }
}

TEST(Bundle_Segments, RangesOutsideTheArea_AreRefused) {
  const size_t n = AllSegments().names.size();
  for (size_t i = 0; i < n; ++i) {
    const std::pair<std::pair<uint64_t, uint64_t>, Status> rows[] = {
        {{0, 0}, Status::kOk},  // no segment
        {{0, UINT64_MAX}, Status::kBundleTruncated},
        {{0, UINT64_MAX - kOverreadBytes}, Status::kBundleTruncated},
        {{UINT64_MAX, 100}, Status::kBundleTruncated},
        {{16 * 128, 1}, Status::kBundleTruncated},
        {{i * 128 + 4, 90}, Status::kBadBundle}};
    for (const auto& [range, status] : rows) {
      const auto& [offset, bytes] = range;
      AllSegments all([&, at = offset, size = bytes](size_t k, fbs::Segment* segment) {
        if (k == i) *segment = fbs::Segment(at, size, segment->hash());
      });
      Diag diag;
      EXPECT_EQ(status, VerifySegments(all.Get(), BundleParts::kAll, nullptr, &diag))
          << i << ": " << offset << "+" << bytes;
      if (status != Status::kOk) {
        EXPECT_EQ(0u, std::string(diag.text()).find(all.names[i] + ": ")) << diag.text();
      }
    }
  }
}

TEST(Bundle_Segments, TablesWithoutAny) {
  for (const bool has_tables : {true, false}) {
    flatbuffers::FlatBufferBuilder fbb;
    const auto model = fbs::ModelBuilder(fbb).Finish();
    const auto adapter = fbs::CreateAdapter(fbb);
    const auto tokenizer = fbs::TokenizerBuilder(fbb).Finish();
    const auto chat = fbs::CreateChat(fbb);
    fbs::BundleBuilder bundle(fbb);
    if (has_tables) {
      bundle.add_model(model);
      bundle.add_adapter(adapter);
      bundle.add_tokenizer(tokenizer);
      bundle.add_chat(chat);
    }
    fbs::FinishBundleBuffer(fbb, bundle.Finish());
    Bundle empty;
    empty.index = fbs::GetBundle(fbb.GetBufferPointer());
    Diag diag;
    EXPECT_EQ(Status::kOk, VerifySegments(empty, BundleParts::kAll, nullptr, &diag));
  }
}

TEST(Bundle_Signature, BlocksAreTheSmallestThatFit) {
  for (uint64_t block = kMinSignedBlockBytes; block < uint64_t{1} << 40; block *= 2) {
    EXPECT_EQ(block, SignedBlockBytes(block * kMaxSignedBlocks));
    EXPECT_EQ(block, SignedBlockBytes(block * kMaxSignedBlocks - block + 1));
    EXPECT_EQ(block * 2, SignedBlockBytes(block * kMaxSignedBlocks + 1));
  }
  EXPECT_EQ(kMinSignedBlockBytes, SignedBlockBytes(0));
}

// Makes the signature and the segment area those of blocks of one byte, as many as there is room
// for before the segments, and some more.
void FillRoom(uint32_t more, SignatureHeader* header, Bundle* bundle) {
  const uint64_t room = bundle->segments_offset - kSignatureOffset - sizeof *header;
  header->block_bytes = 1;
  header->n_blocks = static_cast<uint32_t>(room / kDigestBytes) + more;
  bundle->segments = bundle->segments.subspan(0, header->n_blocks);
}

TEST(Bundle_Signature, HeadersThatDoNotFit_AreRefused) {
  const TinyBundle options;
  using Change = void (*)(SignatureHeader*, Bundle*);
  const std::pair<Change, const char*> rows[] = {
      {[](SignatureHeader*, Bundle* b) { b->segments_offset = 64; }, "has no room"},
      {[](SignatureHeader* h, Bundle* b) { b->segments_offset = kSignatureOffset + sizeof *h; },
       "the signature has 1 digests"},
      {[](SignatureHeader* h, Bundle*) { h->magic[0] = 'X'; }, "the bundle is not signed"},
      {[](SignatureHeader* h, Bundle*) { h->reserved = 1; }, "the signature has 1 digests"},
      {[](SignatureHeader* h, Bundle*) { h->n_blocks = 2; }, "the signature has 2 digests"},
      {[](SignatureHeader* h, Bundle*) { h->block_bytes = h->n_blocks = 0; }, "has 0 digests"},
      {[](SignatureHeader* h, Bundle* b) {
         h->n_blocks = 0;
         b->segments = {};
       },
       "has 0 digests"},
      {[](SignatureHeader* h, Bundle* b) {
         h->block_bytes = 1;
         h->n_blocks = static_cast<uint32_t>(b->segments.size());
       },
       "digests of blocks of 1 bytes"},
      {[](SignatureHeader* h, Bundle* b) { FillRoom(1, h, b); }, "digests of blocks of 1 bytes"},
      {[](SignatureHeader* h, Bundle* b) { FillRoom(0, h, b); }, "the signature does not match"},
      {[](SignatureHeader* h, Bundle*) { h->public_key[0] = 0xAB; }, "the key ab000000.., not"},
      {[](SignatureHeader*, Bundle*) {}, "the signature does not match"},
  };
  for (const auto& [change, words] : rows) {
    BundleBytes bytes = MakeTinyBundle(options);
    Bundle bundle;
    Diag diag;
    ASSERT_EQ(Status::kOk,
              OpenBundle({reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()}, &bundle,
                         &diag));
    SignatureHeader header = {};
    std::memcpy(header.magic, "ARNSEAL", 8);
    header.block_bytes = 1 << 20;
    header.n_blocks = 1;
    ASSERT_LT(bundle.segments.size(), header.block_bytes);
    change(&header, &bundle);
    std::memcpy(bytes.data() + kSignatureOffset, &header, sizeof header);
    const uint8_t key[kPublicKeyBytes] = {};
    SignedDigests digests;
    EXPECT_EQ(Status::kBadSignature, CheckSignature(bundle, key, &digests, &diag)) << words;
    EXPECT_NE(std::string::npos, std::string(diag.text()).find(words)) << diag.text();
  }
}

// Digests of blocks of 256 bytes: two segments in each.
class SealedSegments : public testing::Test {
 protected:
  SealedSegments() {
    const Bundle bundle = all_.Get();
    const size_t n = bundle.segments.size();
    digests_.resize((n + 255) / 256 * kDigestBytes);
    for (size_t i = 0; i * 256 < n; ++i) {
      BlockDigest(bundle.segments.subspan(i * 256, std::min<size_t>(256, n - i * 256)),
                  digests_.data() + i * kDigestBytes);
    }
  }
  Status Verify(AllSegments* all, BundleParts parts) {
    const SignedDigests sealed = {
        256, {reinterpret_cast<const std::byte*>(digests_.data()), digests_.size()}};
    diag_.Clear();
    return VerifySegments(all->Get(), parts, &sealed, &diag_);
  }

  AllSegments all_;
  std::vector<uint8_t> digests_;
  Diag diag_;
};

TEST_F(SealedSegments, DamageAnywhere_IsFoundInItsBlock) {
  for (const BundleParts parts : {BundleParts::kAll, BundleParts::kTexts, BundleParts::kWeights}) {
    EXPECT_EQ(Status::kOk, Verify(&all_, parts)) << diag_.text();
  }
  // Five weights: the last one shares its block with the first text.
  ASSERT_EQ(5u, all_.n_weights);
  for (size_t i = 0; i < all_.names.size(); ++i) {
    AllSegments all;
    all.Damage(i);
    const std::string block = ": bytes " + std::to_string(i / 2 * 256) + ".." +
                              std::to_string(i / 2 * 256 + 256) +
                              " of the segment area are not what was signed";
    for (const BundleParts parts : {BundleParts::kAll, BundleParts::kWeights}) {
      EXPECT_EQ(Status::kHashMismatch, Verify(&all, parts)) << i;
      EXPECT_EQ("weights" + block, diag_.text());
    }
    EXPECT_EQ(i < 4 ? Status::kOk : Status::kHashMismatch, Verify(&all, BundleParts::kTexts)) << i;
    if (i >= 4) {
      EXPECT_EQ("tokenizer and chat templates" + block, diag_.text());
    }
  }
}

TEST_F(SealedSegments, TextsOutsideTheArea_AreRefused) {
  AllSegments outside([](size_t i, fbs::Segment* segment) {
    if (i == 7) *segment = fbs::Segment(1 << 20, 100, segment->hash());
  });
  EXPECT_EQ(Status::kBundleTruncated, Verify(&outside, BundleParts::kTexts));
  EXPECT_EQ(0u, std::string(diag_.text()).find("tokenizer.token_table: 100 bytes at 1048576"));
  AllSegments empty(
      [](size_t, fbs::Segment* segment) { *segment = fbs::Segment(0, 0, segment->hash()); });
  EXPECT_EQ(Status::kOk, Verify(&empty, BundleParts::kTexts));
  AllSegments of_one_byte([this](size_t i, fbs::Segment* segment) {
    const uint64_t bytes = i == 7 ? 1 : i < all_.n_weights ? segment->bytes() : 0;
    *segment = fbs::Segment(bytes == 0 ? 0 : segment->offset(), bytes, segment->hash());
  });
  EXPECT_EQ(Status::kOk, Verify(&of_one_byte, BundleParts::kTexts)) << diag_.text();
  of_one_byte.Damage(7);
  EXPECT_EQ(Status::kHashMismatch, Verify(&of_one_byte, BundleParts::kTexts));
  flatbuffers::FlatBufferBuilder fbb;
  const std::vector<flatbuffers::Offset<fbs::ChatProgram>> programs = {
      fbs::CreateChatProgramDirect(fbb, "default")};
  const auto chat = fbs::CreateChatDirect(fbb, &programs);
  fbs::BundleBuilder bundle(fbb);
  bundle.add_chat(chat);
  fbs::FinishBundleBuffer(fbb, bundle.Finish());
  Bundle without = all_.Get();
  without.index = fbs::GetBundle(fbb.GetBufferPointer());
  const SignedDigests none = {256, {}};
  EXPECT_EQ(Status::kOk, VerifySegments(without, BundleParts::kTexts, &none, &diag_));
  digests_[0] ^= 1;  // of a block without texts
  EXPECT_EQ(Status::kOk, Verify(&all_, BundleParts::kTexts));
  EXPECT_EQ(Status::kHashMismatch, Verify(&all_, BundleParts::kWeights));
}

TEST(Bundle_Signature, DigestsAreOfEachBlock) {
  std::vector<uint8_t> area(1000);
  for (size_t i = 0; i < area.size(); ++i) area[i] = static_cast<uint8_t>(i * 7);
  Bundle bundle;
  bundle.segments = {reinterpret_cast<const std::byte*>(area.data()), area.size()};
  std::vector<uint8_t> digests(4 * kDigestBytes);
  for (size_t b = 0; b < 4; ++b) {
    BlockDigest(bundle.segments.subspan(b * 256, std::min<size_t>(256, 1000 - b * 256)),
                digests.data() + b * kDigestBytes);
  }
  const SignedDigests is_signed = {
      256, {reinterpret_cast<const std::byte*>(digests.data()), digests.size()}};
  Diag diag;
  const auto check = [&](uint64_t offset, uint64_t bytes) {
    return CheckDigests(bundle, is_signed, offset, bytes, "part", &diag);
  };
  EXPECT_EQ(Status::kOk, check(0, 1000));
  EXPECT_EQ(Status::kOk, check(5000, 0));
  for (const auto& [offset, bytes] :
       {std::pair<uint64_t, uint64_t>{0, 1001}, {1000, 1}, {1, 1000}, {UINT64_MAX, 2}}) {
    EXPECT_EQ(Status::kBundleTruncated, check(offset, bytes)) << offset;
    EXPECT_EQ(0u, std::string(diag.text()).find("part: ")) << diag.text();
  }
  area[511] ^= 1;
  EXPECT_EQ(Status::kOk, check(0, 256));
  EXPECT_EQ(Status::kOk, check(512, 488));
  for (const auto& [offset, bytes] : {std::pair<uint64_t, uint64_t>{255, 2}, {300, 1}, {511, 2}}) {
    EXPECT_EQ(Status::kHashMismatch, check(offset, bytes)) << offset;
    EXPECT_EQ("part: bytes 256..512 of the segment area are not what was signed",
              std::string(diag.text()));
  }
}

// Returns a bundle with another index, the hashes of which hold.
BundleBytes WithIndex(const flatbuffers::FlatBufferBuilder& fbb) {
  const BundleBytes whole = MakeTinyBundle(TinyBundle());
  BundleHeader header = HeaderOf(whole);
  header.index_bytes = fbb.GetSize();
  header.index_hash = Xxh64(fbb.GetBufferPointer(), fbb.GetSize());
  std::vector<uint8_t> file(whole.data(), whole.data() + header.index_offset);
  file.insert(file.end(), fbb.GetBufferPointer(), fbb.GetBufferPointer() + fbb.GetSize());
  BundleBytes bytes(file);
  SetHeader(&bytes, header);
  return bytes;
}

TEST(Bundle_Index, TheShortestThatIsWhole_IsRead) {
  flatbuffers::FlatBufferBuilder fbb;
  fbs::FinishBundleBuffer(fbb, fbs::BundleBuilder(fbb).Finish());
  const BundleBytes bytes = WithIndex(fbb);
  Bundle bundle;
  Diag diag;
  EXPECT_EQ(
      Status::kOk,
      OpenBundle({reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()}, &bundle, &diag))
      << fbb.GetSize() << " bytes: " << diag.text();
  EXPECT_EQ(nullptr, bundle.index->model());
  std::string error;
  EXPECT_EQ(ARN_BAD_BUNDLE, Open(bytes, &error));
}

TEST(Bundle_Segments, DamagedWeights_AreFoundWhenAskedFor) {
  BundleBytes bytes = MakeTinyBundle(TinyBundle());
  bytes.data()[HeaderOf(bytes).segments_offset + 5] ^= 1;
  std::string error;
  EXPECT_EQ(ARN_OK, Open(bytes, &error)) << error;
  EXPECT_EQ(ARN_HASH_MISMATCH, Open(bytes, &error, true));
  EXPECT_NE(std::string::npos, error.find("layers.0.attention_norm")) << error;
}

TinyBundle WithSomeTest() {
  TinyBundle bundle;
  bundle.self_test = {{1, 2, 60}, {2, 1}, {0.5f, 0.0f}, {}, 7};
  bundle.self_test.logits.assign(2 * bundle.vocab, 9);
  return bundle;
}

TEST(SelfTest_Read, WhatDoesNotAgree_IsRefused) {
  std::string error;
  ASSERT_EQ(ARN_OK, Open(MakeTinyBundle(WithSomeTest()), &error, true)) << error;
  using Change = void (*)(TinySelfTest*);
  const Change changes[] = {
      [](TinySelfTest* t) { t->ids[1] = 61; },
      [](TinySelfTest* t) { t->ids[2] = -1; },
      [](TinySelfTest* t) { t->ids.push_back(0); },
      [](TinySelfTest* t) { t->ids.clear(); },
      [](TinySelfTest* t) {
        t->run_tokens = {3, 0};
      },
      [](TinySelfTest* t) {
        t->run_tokens = {UINT32_MAX, 4};
      },  // sums to 3 in 32 bits
      [](TinySelfTest* t) {
        t->run_tokens = {1, 1, 1};
      },
      [](TinySelfTest* t) { t->scales = {1.0f}; },
      [](TinySelfTest* t) { t->scales[0] = -1.0f; },
      [](TinySelfTest* t) { t->scales[1] = HUGE_VALF; },
      [](TinySelfTest* t) { t->scales[1] = std::nanf(""); },
      [](TinySelfTest* t) { t->logits.pop_back(); },
      [](TinySelfTest* t) { t->logits.push_back(1); },
      [](TinySelfTest* t) {  // more runs than the limit, consistent otherwise
        t->ids = {1, 2, 3, 4, 5};
        t->run_tokens = {1, 1, 1, 1, 1};
        t->scales.assign(5, 1.0f);
        t->logits.assign(5 * 61, 1);
      },
      [](TinySelfTest* t) {  // more tokens than the limit
        t->ids.assign(65, 1);
        t->run_tokens = {64, 1};
      },
  };
  for (size_t i = 0; i < std::size(changes); ++i) {
    TinyBundle bundle = WithSomeTest();
    changes[i](&bundle.self_test);
    EXPECT_EQ(ARN_BAD_BUNDLE, Open(MakeTinyBundle(bundle), &error)) << i;
    EXPECT_NE(std::string::npos, error.find("self-test")) << error;
  }
  TinyBundle bundle = WithSomeTest();
  bundle.max_context = 2;
  EXPECT_EQ(ARN_BAD_BUNDLE, Open(MakeTinyBundle(bundle), &error));
  // Prefix and self-test both store the model hash; they must agree.
  bundle = WithSomeTest();
  bundle.prefix = {{1}, {0}, 8};
  EXPECT_EQ(ARN_BAD_BUNDLE, Open(MakeTinyBundle(bundle), &error));
  bundle.prefix.model_hash = 7;
  EXPECT_EQ(ARN_OK, Open(MakeTinyBundle(bundle), &error)) << error;
}

TEST(SelfTest_Read, DamagedLogits_AreFoundWhenAskedFor) {
  // The logits follow the weights.
  const TinyBundle bundle = WithSomeTest();
  BundleBytes bytes = MakeTinyBundle(bundle);
  const BundleHeader header = HeaderOf(bytes);
  const std::vector<int16_t>& logits = bundle.self_test.logits;
  uint8_t* end = bytes.data() + header.segments_offset + header.segments_bytes;
  const auto* sought = reinterpret_cast<const uint8_t*>(logits.data());
  uint8_t* found = std::find_end(bytes.data(), end, sought, sought + logits.size() * 2);
  ASSERT_NE(end, found);
  found[3] ^= 1;
  std::string error;
  EXPECT_EQ(ARN_OK, Open(bytes, &error)) << error;
  EXPECT_EQ(ARN_HASH_MISMATCH, Open(bytes, &error, true));
  EXPECT_NE(std::string::npos, error.find("self-test")) << error;
}

TEST(ModelSpec_Read, ImpossibleModels_AreRefusedByField) {
  struct Case {
    TinyBundle bundle;
    const char* word;
  };
  std::vector<Case> cases;
  auto add = [&](const char* word, auto change) {
    Case c{TinyBundle(), word};
    change(&c.bundle);
    cases.push_back(c);
  };
  add("kv heads", [](TinyBundle* b) { b->kv_heads = 3; });
  add("n_kv_heads", [](TinyBundle* b) { b->kv_heads = 5; });
  add("max_context", [](TinyBundle* b) { b->max_context = 0; });
  add("max_context", [](TinyBundle* b) { b->max_context = 1u << 30; });
  add("window", [](TinyBundle* b) { b->window = 1u << 30; });
  add("layers", [](TinyBundle* b) { b->layers = 0; });
  for (const Case& c : cases) {
    std::string error;
    EXPECT_EQ(ARN_BAD_BUNDLE, Open(MakeTinyBundle(c.bundle), &error)) << c.word;
    EXPECT_NE(std::string::npos, error.find(c.word)) << error;
  }
}

}  // namespace
}  // namespace arn::test
