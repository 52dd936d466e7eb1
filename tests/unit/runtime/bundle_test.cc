#include "runtime/bundle/bundle.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "arenite/arenite.h"
#include "platform/base/hash.h"
#include "tests/support/tiny_bundle.h"

namespace arn::test {
namespace {

// Opens `size` bytes of a file in memory; returns the status and, in *error, the sentence.
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

// Writes the header back with a hash that fits, as a malicious file would.
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

TEST(Bundle_Header, OneChangedByte_IsSeenByTheHash) {
  for (size_t at = 12; at < 64; ++at) {
    BundleBytes bytes = MakeTinyBundle(TinyBundle());
    bytes.data()[at] ^= 0x10;
    std::string error;
    EXPECT_EQ(ARN_HASH_MISMATCH, Open(bytes, &error)) << at;
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

TEST(Bundle_Segments, DamagedWeights_AreFoundWhenAskedFor) {
  BundleBytes bytes = MakeTinyBundle(TinyBundle());
  bytes.data()[HeaderOf(bytes).segments_offset + 5] ^= 1;
  std::string error;
  EXPECT_EQ(ARN_OK, Open(bytes, &error)) << error;
  EXPECT_EQ(ARN_HASH_MISMATCH, Open(bytes, &error, true));
  EXPECT_NE(std::string::npos, error.find("layers.0.attention_norm")) << error;
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
