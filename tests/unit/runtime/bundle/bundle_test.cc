#include "runtime/bundle/bundle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <string>
#include <vector>

#include "arenite/arenite.h"
#include "platform/base/hash.h"
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
  for (const size_t size : {30u, 5000u}) {
    EXPECT_EQ("not an Arenite bundle: a GGUF file", error_of("GGUF\3\0\0\0"s, size));
    EXPECT_EQ("not an Arenite bundle: a safetensors file",
              error_of("\x10\x05\0\0\0\0\0\0{\"__metadata__\""s, size));
    EXPECT_NE(std::string::npos, error_of("PK\3\4"s, size).find("ZIP"));
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
