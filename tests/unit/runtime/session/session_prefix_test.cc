// A precomputed prefix in the bundle: a session that starts after it gives the same tokens as one
// that prefilled it, and runs none of its tokens.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/layer_shapes.h"
#include "tests/support/logits_support.h"
#include "tests/support/prefix_support.h"
#include "tests/support/state_bytes.h"

namespace arn::test {
namespace {

constexpr uint32_t kVocab = 61;
constexpr size_t kPrefixTokens = 45;

arn_session_options Options(uint32_t kv_type, uint32_t sequences = 1) {
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.kv_type = kv_type;
  options.n_threads = 1;
  options.context_tokens = 128;
  options.kv_page_tokens = 8;
  options.prefill_chunk = 13;
  options.max_sequences = sequences;
  if (kv_type == ARN_KV_INT4 || kv_type == ARN_KV_INT2) options.kv_residual = 16;
  return options;
}

std::vector<int32_t> Prefix() { return SomeIds(kPrefixTokens, kVocab); }

std::vector<int32_t> Joined(std::vector<int32_t> a, const std::vector<int32_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

uint64_t PrefillTokens(const arn_session* session) {
  arn_session_stats_data stats = ARN_SESSION_STATS_INIT;
  EXPECT_EQ(ARN_OK, arn_session_stats(session, &stats));
  return stats.prefill_tokens;
}

// A bundle in a temporary file.
class BundleFile {
 public:
  explicit BundleFile(const BundleBytes& bytes) {
    static int count = 0;
    path_ = testing::TempDir() + "prefix_" + std::to_string(getpid()) + "_" +
            std::to_string(count++) + ".arn";
    std::ofstream(path_, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<long>(bytes.size()));
  }
  ~BundleFile() { std::remove(path_.c_str()); }
  BundleFile(const BundleFile&) = delete;
  BundleFile& operator=(const BundleFile&) = delete;
  const std::string& path() const { return path_; }
  ModelPtr Open(bool verify_hashes = false) const {
    arn_model_options options = ARN_MODEL_OPTIONS_INIT;
    options.verify_hashes = verify_hashes ? 1 : 0;
    arn_model* model = nullptr;
    char error[256];
    EXPECT_EQ(ARN_OK, arn_model_open(path_.c_str(), &options, error, sizeof error, &model))
        << error;
    return ModelPtr(model);
  }
  bool IsMappedTwice() const {
    std::ifstream maps("/proc/self/maps");
    const std::string all(std::istreambuf_iterator<char>(maps), {});
    const size_t first = all.find(path_);
    return first != std::string::npos && all.find(path_, first + 1) != std::string::npos;
  }

 private:
  std::string path_;
};

std::vector<uint8_t> ReadBack(const BundleFile& file) {
  std::ifstream in(file.path(), std::ios::binary);
  return std::vector<uint8_t>(std::istreambuf_iterator<char>(in), {});
}

class SessionPrefixTest : public testing::TestWithParam<Shape> {
 protected:
  TinyBundle Plain() const {
    TinyBundle bundle;
    bundle.vocab = kVocab;
    bundle.layer_kinds = GetParam().layers;
    return bundle;
  }
};

TEST_P(SessionPrefixTest, Started_SaysWhatAPrefillSays) {
  for (uint32_t kv : {ARN_KV_F32, ARN_KV_F16, ARN_KV_INT8, ARN_KV_INT4, ARN_KV_INT2}) {
    const BundleFile file(MakeTinyBundle(WithPrefix(Plain(), Options(kv), Prefix())));
    const ModelPtr mapped = file.Open();
    const BundleBytes bytes = MakeTinyBundle(WithPrefix(Plain(), Options(kv), Prefix()));
    const ModelPtr copied = OpenBytes(bytes);
    for (const arn_model* model : {mapped.get(), copied.get()}) {
      SCOPED_TRACE(testing::Message() << "kv " << kv << (model == mapped.get() ? " mapped" : ""));
      arn_model_info info = ARN_MODEL_INFO_INIT;
      ASSERT_EQ(ARN_OK, arn_model_get_info(model, &info));
      EXPECT_EQ(kPrefixTokens, info.prefix_tokens);
      const SessionPtr session = NewSession(model, Options(kv));
      const std::vector<int32_t> other = SomeIds(30, 7);
      ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), other.data(), other.size()));
      ASSERT_EQ(ARN_OK, arn_session_reset_stats(session.get()));
      ASSERT_EQ(ARN_OK, arn_session_use_prefix(session.get()))
          << arn_session_last_error(session.get());
      const SessionPtr truth = NewSession(model, Options(kv));
      const std::vector<int32_t> prefix = Prefix();
      ASSERT_EQ(ARN_OK, arn_session_prefill(truth.get(), prefix.data(), prefix.size()));
      EXPECT_EQ(prefix, TokensOf(session.get()));
      EXPECT_EQ(0.0, LogitDifference(session.get(), truth.get(), kVocab));
      // Decodes past a page end, so that pages shared with the file are written.
      EXPECT_EQ(Decode(truth.get(), 60), Decode(session.get(), 60));
      EXPECT_EQ(0u, PrefillTokens(session.get()));
    }
    EXPECT_EQ(ReadBack(file), std::vector<uint8_t>(bytes.data(), bytes.data() + bytes.size()));
  }
}

TEST_P(SessionPrefixTest, Follow_StartsAfterItByItself) {
  const BundleBytes bytes = MakeTinyBundle(WithPrefix(Plain(), Options(ARN_KV_F32), Prefix()));
  const ModelPtr model = OpenBytes(bytes);
  const BundleBytes plain_bytes = MakeTinyBundle(Plain());
  const ModelPtr plain = OpenBytes(plain_bytes);
  const SessionPtr session = NewSession(model.get(), Options(ARN_KV_F32));
  const std::vector<int32_t> prefix = Prefix();
  struct Case {
    std::vector<int32_t> ids;
    bool all_of_it;
  };
  const std::vector<Case> cases = {
      {Joined(prefix, SomeIds(20, 9)), true},
      {Joined(SomeIds(3, 5), prefix), false},
      {prefix, true},
      {Joined(prefix, SomeIds(50, 23)), true},
      {{prefix.begin(), prefix.begin() + 44}, false},  // a rewind into the prefix, if allowed
      {SomeIds(2, 11), false},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.ids.size());
    ASSERT_EQ(ARN_OK, arn_session_reset(session.get()));
    ASSERT_EQ(ARN_OK, arn_session_reset_stats(session.get()));
    uint32_t kept = 0;
    ASSERT_EQ(ARN_OK, arn_session_follow(session.get(), c.ids.data(), c.ids.size(), &kept))
        << arn_session_last_error(session.get());
    EXPECT_EQ(c.ids.size() - kept, PrefillTokens(session.get()));
    EXPECT_EQ(c.ids, TokensOf(session.get()));
    if (c.all_of_it) {
      EXPECT_EQ(kPrefixTokens, kept);
    }
    const SessionPtr truth = NewSession(plain.get(), Options(ARN_KV_F32));
    ASSERT_EQ(ARN_OK, arn_session_prefill(truth.get(), c.ids.data(), c.ids.size()));
    EXPECT_LT(LogitDifference(session.get(), truth.get(), kVocab), 3e-5);
  }
  // A longer common prefix in the sequence takes precedence.
  std::vector<int32_t> longer = Joined(prefix, SomeIds(30, 9));
  ASSERT_EQ(ARN_OK, arn_session_follow(session.get(), longer.data(), longer.size(), nullptr));
  longer.push_back(1);
  uint32_t kept = 0;
  ASSERT_EQ(ARN_OK, arn_session_follow(session.get(), longer.data(), longer.size(), &kept));
  EXPECT_EQ(kPrefixTokens + 30, kept);
}

// Other sequences keep their tokens, and each sequence gets its own pages.
TEST_P(SessionPrefixTest, AmongOthers_LeavesThemAndTakesPages) {
  for (uint32_t kv : {ARN_KV_F32, ARN_KV_INT8, ARN_KV_INT4}) {
    SCOPED_TRACE(kv);
    const BundleFile file(MakeTinyBundle(WithPrefix(Plain(), Options(kv), Prefix())));
    const ModelPtr model = file.Open();
    const SessionPtr session = NewSession(model.get(), Options(kv, 4));
    std::vector<std::vector<int32_t>> expected;
    const std::vector<int32_t> other = SomeIds(33, 7);
    for (uint32_t s : {2u, 0u, 3u}) {
      ASSERT_EQ(ARN_OK, arn_session_select(session.get(), s));
      if (s == 2) {
        ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), other.data(), other.size()));
      } else {
        ASSERT_EQ(ARN_OK, arn_session_use_prefix(session.get()))
            << arn_session_last_error(session.get());
      }
      const SessionPtr truth = NewSession(model.get(), Options(kv));
      expected.push_back(Greedy(truth.get(), s == 2 ? other : Prefix(), 30));
    }
    size_t i = 0;
    for (uint32_t s : {2u, 0u, 3u}) {
      ASSERT_EQ(ARN_OK, arn_session_select(session.get(), s));
      EXPECT_EQ(expected[i++], Decode(session.get(), 30)) << s;
    }
    // All pages are returned.
    for (uint32_t s : {0u, 2u, 3u}) {
      ASSERT_EQ(ARN_OK, arn_session_select(session.get(), s));
      ASSERT_EQ(ARN_OK, arn_session_reset(session.get()));
    }
    arn_session_stats_data stats = ARN_SESSION_STATS_INIT;
    ASSERT_EQ(ARN_OK, arn_session_stats(session.get(), &stats));
    EXPECT_EQ(0u, stats.kv_used_bytes);
    EXPECT_EQ(33u, stats.prefill_tokens);
  }
}

INSTANTIATE_TEST_SUITE_P(Layers, SessionPrefixTest, testing::ValuesIn(Shapes()), ShapeName);
INSTANTIATE_TEST_SUITE_P(Widths, SessionPrefixTest, testing::ValuesIn(WidthShapes()), ShapeName);
INSTANTIATE_TEST_SUITE_P(StateWidths, SessionPrefixTest, testing::ValuesIn(StateWidthShapes()),
                         ShapeName);
INSTANTIATE_TEST_SUITE_P(LinearAttention, SessionPrefixTest, testing::ValuesIn(LinearShapes()),
                         ShapeName);
INSTANTIATE_TEST_SUITE_P(States, SessionPrefixTest, testing::ValuesIn(StateShapes()), ShapeName);

class OnePrefix : public testing::Test {
 protected:
  OnePrefix()
      : bundle_(WithPrefix(TinyBundle(), Options(ARN_KV_INT8), Prefix())),
        bytes_(MakeTinyBundle(bundle_)),
        model_(OpenBytes(bytes_)) {}
  void ExpectRefused(const arn_model* model, const arn_session_options& options, arn_status status,
                     const std::string& word) {
    const SessionPtr session = NewSession(model, options);
    const std::vector<int32_t> ids = SomeIds(11, 13);
    ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), ids.data(), ids.size()));
    EXPECT_EQ(status, arn_session_use_prefix(session.get()));
    const std::string said = arn_session_last_error(session.get());
    EXPECT_NE(std::string::npos, said.find(word)) << said;
    EXPECT_EQ(ids, TokensOf(session.get()));
    const float* logits = nullptr;
    EXPECT_EQ(ARN_OK, arn_session_logits(session.get(), &logits));
  }
  TinyBundle bundle_;
  BundleBytes bytes_;
  ModelPtr model_;
};
using SessionPrefixFile = OnePrefix;
using SessionPrefixRefusals = OnePrefix;

TEST_F(SessionPrefixFile, OwnMemory_PagesAreMapped) {
  TinyBundle larger;
  larger.head_dim = 64;
  larger.max_context = 1024;
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.context_tokens = 1024;
  const std::vector<int32_t> ids = SomeIds(700, kVocab);
  const BundleFile file(MakeTinyBundle(WithPrefix(larger, options, ids)));
  {
    const ModelPtr model = file.Open(true);
    const SessionPtr session = NewSession(model.get(), options);
    EXPECT_FALSE(file.IsMappedTwice());
    ASSERT_EQ(ARN_OK, arn_session_use_prefix(session.get()));
    EXPECT_TRUE(file.IsMappedTwice());
    const SessionPtr truth = NewSession(model.get(), options);
    EXPECT_EQ(Greedy(truth.get(), ids, 50), Decode(session.get(), 50));
    // Repeats over existing mappings, and after a trim.
    ASSERT_EQ(ARN_OK, arn_session_reset(session.get()));
    ASSERT_EQ(ARN_OK, arn_session_trim(session.get(), nullptr));
    ASSERT_EQ(ARN_OK, arn_session_use_prefix(session.get()));
    ASSERT_EQ(ARN_OK, arn_session_use_prefix(session.get()));
    ASSERT_EQ(ARN_OK, arn_session_reset(truth.get()));
    EXPECT_EQ(Greedy(truth.get(), ids, 50), Decode(session.get(), 50));
  }
  std::ifstream maps("/proc/self/maps");
  const std::string all(std::istreambuf_iterator<char>(maps), {});
  EXPECT_EQ(std::string::npos, all.find(file.path()));
}

// Speed. The limit is far from the measured value, so that a busy machine does not fail.
TEST_F(SessionPrefixFile, FirstTokenAfterIt_TakesAFractionOfThePrefill) {
  using Clock = std::chrono::steady_clock;
  const auto us = [](Clock::duration d) {
    return static_cast<double>(std::chrono::duration_cast<std::chrono::nanoseconds>(d).count()) /
           1000.0;
  };
  TinyBundle larger;
  larger.head_dim = 64;
  larger.max_context = 4096;
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.n_threads = 1;
  const std::vector<int32_t> ids = SomeIds(2000, kVocab);
  const BundleFile file(MakeTinyBundle(WithPrefix(larger, options, ids)));
  const ModelPtr model = file.Open();
  const SessionPtr truth = NewSession(model.get(), options);
  const Clock::time_point begin = Clock::now();
  const std::vector<int32_t> expected = Greedy(truth.get(), ids, 1);
  const double prefill = us(Clock::now() - begin);
  double best = prefill;
  for (int i = 0; i < 5; ++i) {
    const SessionPtr session = NewSession(model.get(), options);
    const Clock::time_point start = Clock::now();
    ASSERT_EQ(ARN_OK, arn_session_use_prefix(session.get()));
    EXPECT_EQ(expected, Decode(session.get(), 1));
    best = std::min(best, us(Clock::now() - start));
  }
  std::printf("2000 tokens: prefill and one token %.0f us, prefix and one token %.0f us: %.2f %%\n",
              prefill, best, 100 * best / prefill);
  EXPECT_LT(best, 0.25 * prefill);
}

// At an offset in a larger file, with the descriptor closed right after opening.
TEST_F(SessionPrefixFile, Descriptor_PagesAreFoundBehindTheOffset) {
  constexpr size_t kOffset = 2 * 16384;
  std::vector<uint8_t> padded(kOffset + bytes_.size(), 0xEE);
  std::memcpy(padded.data() + kOffset, bytes_.data(), bytes_.size());
  const BundleFile file{BundleBytes(padded)};
  FILE* opened = std::fopen(file.path().c_str(), "rb");
  ASSERT_NE(nullptr, opened);
  arn_model* model = nullptr;
  char error[256];
  ASSERT_EQ(ARN_OK,
            arn_model_open_fd(fileno(opened), kOffset, 0, nullptr, error, sizeof error, &model))
      << error;
  std::fclose(opened);
  const ModelPtr owner(model);
  const SessionPtr session = NewSession(model, Options(ARN_KV_INT8));
  ASSERT_EQ(ARN_OK, arn_session_use_prefix(session.get()));
  const SessionPtr truth = NewSession(model, Options(ARN_KV_INT8));
  EXPECT_EQ(Greedy(truth.get(), Prefix(), 40), Decode(session.get(), 40));
}

// States belong to the model, whether or not the bundle has a prefix.
TEST_F(SessionPrefixFile, SavedStates_GoFromOneBundleToTheOther) {
  TinyBundle without = bundle_;
  without.prefix = TinyPrefix();
  const BundleBytes plain_bytes = MakeTinyBundle(without);
  const ModelPtr plain = OpenBytes(plain_bytes);
  const SessionPtr a = NewSession(model_.get(), Options(ARN_KV_INT8));
  const SessionPtr b = NewSession(plain.get(), Options(ARN_KV_INT8));
  ASSERT_EQ(ARN_OK, arn_session_use_prefix(a.get()));
  ASSERT_EQ(ARN_OK, Restore(b.get(), Save(a.get()))) << arn_session_last_error(b.get());
  EXPECT_EQ(Save(a.get()), Save(b.get()));
  ASSERT_EQ(ARN_OK, Restore(a.get(), Save(b.get())));
  EXPECT_EQ(ARN_NOT_FOUND, arn_session_use_prefix(b.get()));
}

TEST_F(SessionPrefixFile, Ids_AreTheModels) {
  const int32_t* ids = nullptr;
  uint32_t n = 0;
  ASSERT_EQ(ARN_OK, arn_model_prefix(model_.get(), &ids, &n));
  EXPECT_EQ(Prefix(), std::vector<int32_t>(ids, ids + n));
  const BundleBytes plain_bytes = MakeTinyBundle(TinyBundle());
  const ModelPtr plain = OpenBytes(plain_bytes);
  EXPECT_EQ(ARN_NOT_FOUND, arn_model_prefix(plain.get(), &ids, &n));
  EXPECT_EQ(nullptr, ids);
  EXPECT_EQ(0u, n);
}

TEST_F(SessionPrefixRefusals, OtherKindsOfSessions_AreNamedAndComputeInFollow) {
  struct Case {
    arn_session_options options;
    arn_status status;
    const char* word;
  };
  std::vector<Case> cases(4, {Options(ARN_KV_INT8), ARN_SAVE_MISMATCH, ""});
  cases[0].options.kv_type = ARN_KV_F16;
  cases[0].word = "keys of KV type int8 (2) were saved, this session has f16";
  cases[1].options.kv_page_tokens = 16;
  cases[1].word = "kv_page_tokens: 8 was saved";
  cases[2].options.context_tokens = 44;
  cases[2].status = ARN_CONTEXT_FULL;
  cases[2].word = "saved with 45 tokens";
  cases[3].options.no_cache = 1;
  cases[3].status = ARN_UNSUPPORTED;
  cases[3].word = "without a cache";
  for (const Case& c : cases) {
    SCOPED_TRACE(c.word);
    ASSERT_NO_FATAL_FAILURE(ExpectRefused(model_.get(), c.options, c.status, c.word));
    const SessionPtr session = NewSession(model_.get(), c.options);
    const std::vector<int32_t> prefix = Prefix();
    const size_t n = c.options.context_tokens == 44 ? 40 : 45;
    uint32_t kept = 1;
    EXPECT_EQ(ARN_OK, arn_session_follow(session.get(), prefix.data(), n, &kept));
    EXPECT_EQ(0u, kept);
    EXPECT_EQ(n, PrefillTokens(session.get()));
    EXPECT_STREQ("", arn_session_last_error(session.get()));
  }
  TinyBundle without = bundle_;
  without.prefix = TinyPrefix();
  const BundleBytes plain_bytes = MakeTinyBundle(without);
  const ModelPtr plain = OpenBytes(plain_bytes);
  ExpectRefused(plain.get(), Options(ARN_KV_INT8), ARN_NOT_FOUND, "has no prefix");
}

// Damage is reported, by follow too.
TEST_F(SessionPrefixRefusals, Damage_IsFound) {
  const StateHeader header = StateHeaderOf(bundle_.prefix.state);
  const uint64_t places[] = {3,
                             60,
                             header.index.offset + 5,
                             header.tokens.offset + 1,
                             header.logits.offset + 9,
                             bundle_.prefix.state.size() - 1};
  for (const uint64_t at : places) {
    SCOPED_TRACE(at);
    TinyBundle damaged = bundle_;
    damaged.prefix.state[at] ^= 4;
    const BundleBytes bytes = MakeTinyBundle(damaged);
    const ModelPtr model = OpenBytes(bytes);
    const arn_status status = at == 3 ? ARN_BAD_SAVE : ARN_HASH_MISMATCH;
    ASSERT_NO_FATAL_FAILURE(
        ExpectRefused(model.get(), Options(ARN_KV_INT8), status, "the bundle's prefix"));
    const SessionPtr session = NewSession(model.get(), Options(ARN_KV_INT8));
    const std::vector<int32_t> prefix = Prefix();
    EXPECT_EQ(status, arn_session_follow(session.get(), prefix.data(), prefix.size(), nullptr));
  }
  // The bundle's hash of the state, which covers the pages that are mapped unread.
  BundleBytes bytes = MakeTinyBundle(bundle_);
  const auto* state = bundle_.prefix.state.data();
  uint8_t* found = bytes.data();
  while (std::memcmp(found, state, 64) != 0) found += 64;
  found[bundle_.prefix.state.size() - 1] ^= 4;
  const BundleFile file(bytes);
  arn_model_options options = ARN_MODEL_OPTIONS_INIT;
  options.verify_hashes = 1;
  arn_model* model = nullptr;
  char error[256];
  EXPECT_EQ(ARN_HASH_MISMATCH,
            arn_model_open(file.path().c_str(), &options, error, sizeof error, &model));
  EXPECT_NE(std::string::npos, std::string(error).find("prefix state")) << error;
}

TEST_F(SessionPrefixRefusals, WhatIsNotThePrefixOfThisModel_IsRefused) {
  TinyBundle other = bundle_;
  other.prefix.model_hash ^= 1;
  const BundleBytes of_another = MakeTinyBundle(other);
  const ModelPtr another = OpenBytes(of_another);
  ExpectRefused(another.get(), Options(ARN_KV_INT8), ARN_SAVE_MISMATCH, "another model");
  other = bundle_;
  other.prefix.ids[7] ^= 1;
  const BundleBytes of_others = MakeTinyBundle(other);
  const ModelPtr others = OpenBytes(of_others);
  ExpectRefused(others.get(), Options(ARN_KV_INT8), ARN_BAD_SAVE, "with its 45 tokens");
  const auto not_opened = [this](const std::vector<int32_t>& ids, const std::string& word) {
    TinyBundle bad = bundle_;
    bad.prefix.ids = ids;
    const BundleBytes bytes = MakeTinyBundle(bad);
    arn_model* model = nullptr;
    char error[256];
    EXPECT_EQ(ARN_BAD_BUNDLE, arn_model_open_memory(bytes.data(), bytes.size(), nullptr, error,
                                                    sizeof error, &model));
    EXPECT_NE(std::string::npos, std::string(error).find(word)) << error;
  };
  not_opened({3, 61}, "prefix: token 1 is 61");
  not_opened({-1}, "prefix: token 0 is -1");
  not_opened(std::vector<int32_t>(257, 3), "prefix: 257 tokens, expected 1..256");
}

// Next to other sequences the prefix needs its own pages.
TEST_F(SessionPrefixRefusals, NoPagesLeft_SaysSo) {
  arn_session_options options = Options(ARN_KV_INT8, 2);
  options.kv_tokens = 128;
  const SessionPtr session = NewSession(model_.get(), options);
  const std::vector<int32_t> other = SomeIds(100, 7);
  ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), other.data(), other.size()));
  ASSERT_EQ(ARN_OK, arn_session_select(session.get(), 1));
  EXPECT_EQ(ARN_CONTEXT_FULL, arn_session_use_prefix(session.get()));
  EXPECT_NE(std::string::npos,
            std::string(arn_session_last_error(session.get())).find("45 tokens"));
  EXPECT_EQ(0u, arn_session_length(session.get()));
  ASSERT_EQ(ARN_OK, arn_session_select(session.get(), 0));
  EXPECT_EQ(other, TokensOf(session.get()));
}

}  // namespace
}  // namespace arn::test
