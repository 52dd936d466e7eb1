// Adapters of sequences: every path that runs tokens uses those of the sequence, and what was
// computed with some is not mixed with what was computed with others.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tests/support/prefix_support.h"
#include "tests/support/row_bits.h"
#include "tests/support/state_support.h"
#include "tests/support/tiny_adapter.h"

namespace arn::test {
namespace {

using Ids = std::vector<int32_t>;
using testing::HasSubstr;
constexpr uint32_t kVocab = 61;

// Adapters of a session, by index, and their scales.
struct Use {
  std::vector<uint32_t> adapters;
  std::vector<float> scales;
};
const Use kNone, kFirst = {{0}, {1.0f}}, kHalf = {{0}, {0.5f}}, kSecond = {{1}, {1.0f}},
                 kBoth = {{0, 1}, {1.0f, -0.5f}};

TinyBundle BaseOptions() {
  TinyBundle bundle;
  bundle.vocab = kVocab;
  bundle.weights = DType::kF16;  // a row has the same bits in any run, on every CPU
  bundle.seed = 9;
  return bundle;
}

TinyAdapter AdapterOf(uint32_t rank, uint64_t seed, DType dtype = DType::kF16) {
  TinyAdapter options;
  options.dtype = dtype;
  options.rank = rank;
  options.seed = seed;
  return options;
}

class AdapterTest : public testing::Test {
 protected:
  explicit AdapterTest(const TinyBundle& base = BaseOptions(), DType dtype = DType::kF16)
      : base_(MakeTinyBundle(base)),
        model_(OpenBytes(base_)),
        first_file_(MakeTinyAdapter(base_, AdapterOf(3, 5, dtype))),
        second_file_(MakeTinyAdapter(base_, AdapterOf(5, 6, dtype))),
        first_(first_file_.Open(model_.get())),
        second_(second_file_.Open(model_.get())),
        handles_{first_.get(), second_.get()} {}

  arn_session_options Options(uint32_t sequences = 1) const {
    arn_session_options options = ARN_SESSION_OPTIONS_INIT;
    options.kv_type = ARN_KV_F32;
    options.n_threads = 2;
    options.context_tokens = 96;
    options.kv_page_tokens = 8;
    options.prefill_chunk = 16;
    options.max_sequences = sequences;
    options.adapters = handles_;
    options.n_adapters = 2;
    return options;
  }
  SessionPtr New(const arn_session_options& options, const Use& use = kNone) const {
    SessionPtr session = NewSession(model_.get(), options);
    EXPECT_EQ(ARN_OK, Set(session.get(), use)) << arn_session_last_error(session.get());
    return session;
  }
  static arn_status Set(arn_session* session, const Use& use) {
    return arn_session_set_adapters(session, use.adapters.data(), use.scales.data(),
                                    use.adapters.size());
  }
  static std::vector<float> LogitsOf(const arn_session* session) {
    const float* logits = nullptr;
    EXPECT_EQ(ARN_OK, arn_session_logits(session, &logits)) << arn_session_last_error(session);
    return {logits, logits + kVocab};
  }
  std::vector<float> LogitsAfter(arn_session* session, const Ids& ids) const {
    EXPECT_EQ(ARN_OK, arn_session_prefill(session, ids.data(), ids.size()))
        << arn_session_last_error(session);
    return LogitsOf(session);
  }
  static void ExpectStatus(arn_status expected, arn_status found, const arn_session* session,
                           const std::string& part) {
    EXPECT_EQ(expected, found);
    EXPECT_THAT(arn_session_last_error(session), HasSubstr(part));
  }

  BundleBytes base_;
  ModelPtr model_;
  AdapterFile first_file_, second_file_;
  AdapterPtr first_, second_;
  const arn_adapter* handles_[2];
  const Ids prompt_ = SomeIds(20, kVocab);
};

TEST_F(AdapterTest, EachSelection_GivesOtherLogits) {
  std::vector<std::vector<float>> found;
  for (const Use& use : {kNone, kFirst, kHalf, kSecond, kBoth}) {
    found.push_back(LogitsAfter(New(Options(), use).get(), prompt_));
    for (size_t i = 0; i + 1 < found.size(); ++i) EXPECT_NE(found[i], found.back());
  }
  arn_session_options plain = Options();
  plain.n_adapters = 0;
  EXPECT_EQ(found[0], LogitsAfter(NewSession(model_.get(), plain).get(), prompt_));
}

TEST_F(AdapterTest, NullScales_AreOne) {
  const SessionPtr session = New(Options());
  const uint32_t first = 0;
  ASSERT_EQ(ARN_OK, arn_session_set_adapters(session.get(), &first, nullptr, 1));
  EXPECT_EQ(LogitsAfter(New(Options(), kFirst).get(), prompt_),
            LogitsAfter(session.get(), prompt_));
}

TEST_F(AdapterTest, Reference_AgreesWithTheCpu) {
  arn_session_options options = Options();
  const std::vector<float> found = LogitsAfter(New(options, kBoth).get(), prompt_);
  options.backend = ARN_BACKEND_REFERENCE;
  const std::vector<float> expected = LogitsAfter(New(options, kBoth).get(), prompt_);
  for (uint32_t i = 0; i < kVocab; ++i) EXPECT_NEAR(expected[i], found[i], 2e-4);
}

TinyBundle IntegerBase() {
  TinyBundle bundle = BaseOptions();
  bundle.weights = DType::kInt8;
  return bundle;
}

class IntegerAdapterTest : public AdapterTest, public testing::WithParamInterface<DType> {
 protected:
  IntegerAdapterTest() : AdapterTest(IntegerBase(), GetParam()) {}
};
INSTANTIATE_TEST_SUITE_P(Types, IntegerAdapterTest, testing::Values(DType::kInt8, DType::kInt4),
                         [](const auto& type) { return std::string(DTypeName(type.param)); });

TEST_P(IntegerAdapterTest, Reference_AgreesWithTheCpu) {
  arn_session_options options = Options();
  for (const uint32_t activation_bits : {8u, 16u}) {
    options.activation_bits = activation_bits;
    for (const Use& use : {kFirst, kBoth}) {
      options.backend = ARN_BACKEND_CPU;
      const std::vector<float> found = LogitsAfter(New(options, use).get(), prompt_);
      options.backend = ARN_BACKEND_REFERENCE;
      const std::vector<float> expected = LogitsAfter(New(options, use).get(), prompt_);
      float largest = 0.0f;
      for (const float logit : expected) largest = std::max(largest, std::abs(logit));
      for (uint32_t i = 0; i < kVocab; ++i) EXPECT_NEAR(expected[i], found[i], 0.02f * largest);
    }
  }
}

TEST_P(IntegerAdapterTest, SequencesOfOneRun_HaveTheBitsOfTheirOwnRuns) {
  if (!RowsKeepTheirBits(DType::kInt8)) {
    GTEST_SKIP() << "this CPU's kernels round one row and several differently";
  }
  const std::vector<Use> uses = {kNone, kFirst, kBoth, kFirst, kSecond};
  const auto n = static_cast<uint32_t>(uses.size());
  const SessionPtr together = New(Options(n));
  std::vector<uint32_t> sequences;
  for (uint32_t s = 0; s < n; ++s) {
    sequences.push_back(s);
    ASSERT_EQ(ARN_OK, arn_session_select(together.get(), s));
    ASSERT_EQ(ARN_OK, Set(together.get(), uses[s]));
    LogitsAfter(together.get(), prompt_);
  }
  const std::vector<int32_t> step(n, 7);
  ASSERT_EQ(ARN_OK, arn_session_step(together.get(), sequences.data(), step.data(), n));
  for (uint32_t s = 0; s < n; ++s) {
    ASSERT_EQ(ARN_OK, arn_session_select(together.get(), s));
    const SessionPtr alone = New(Options(), uses[s]);
    LogitsAfter(alone.get(), prompt_);
    EXPECT_EQ(LogitsAfter(alone.get(), {7}), LogitsOf(together.get())) << s;
  }
}

TEST_F(AdapterTest, SequenceWithTokens_KeepsItsAdapters) {
  const SessionPtr session = New(Options(), kFirst);
  const std::vector<float> expected = LogitsAfter(session.get(), prompt_);
  ExpectStatus(ARN_BAD_STATE, Set(session.get(), kSecond), session.get(), "reset");
  ASSERT_EQ(ARN_OK, arn_session_rewind(session.get(), 0));
  ASSERT_EQ(ARN_OK, Set(session.get(), kSecond));
  EXPECT_EQ(LogitsAfter(New(Options(), kSecond).get(), prompt_),
            LogitsAfter(session.get(), prompt_));
  ASSERT_EQ(ARN_OK, arn_session_reset(session.get()));
  ASSERT_EQ(ARN_OK, Set(session.get(), kFirst));
  ASSERT_EQ(ARN_OK, arn_session_reset(session.get()));  // keeps them
  EXPECT_EQ(expected, LogitsAfter(session.get(), prompt_));
}

TEST_F(AdapterTest, BadSelections_AreRefused) {
  const SessionPtr session = New(Options(), kFirst);
  ExpectStatus(ARN_BAD_ARGUMENT, Set(session.get(), {{2}, {1.0f}}), session.get(), "adapter 2");
  ExpectStatus(ARN_BAD_ARGUMENT, Set(session.get(), {{1, 1}, {1, 1}}), session.get(), "twice");
  ExpectStatus(ARN_BAD_ARGUMENT, Set(session.get(), {{0}, {NAN}}), session.get(), "finite");
  EXPECT_EQ(ARN_BAD_ARGUMENT, arn_session_set_adapters(session.get(), nullptr, nullptr, 1));
  EXPECT_EQ(ARN_BAD_ARGUMENT, arn_session_set_adapters(nullptr, nullptr, nullptr, 0));
  EXPECT_EQ(LogitsAfter(New(Options(), kFirst).get(), prompt_),
            LogitsAfter(session.get(), prompt_));
}

TEST_F(AdapterTest, Fork_CopiesThem) {
  const SessionPtr session = New(Options(2), kBoth);
  LogitsAfter(session.get(), prompt_);
  ASSERT_EQ(ARN_OK, arn_session_fork(session.get(), 0, 1));
  ASSERT_EQ(ARN_OK, arn_session_select(session.get(), 1));
  const Ids more = {7, 8, 9};
  const std::vector<float> found = LogitsAfter(session.get(), more);
  const SessionPtr alone = New(Options(), kBoth);
  LogitsAfter(alone.get(), prompt_);
  EXPECT_EQ(LogitsAfter(alone.get(), more), found);
  // And goes on with them.
  ASSERT_EQ(ARN_OK, arn_session_reset(session.get()));
  EXPECT_EQ(LogitsAfter(New(Options(), kBoth).get(), prompt_), LogitsAfter(session.get(), prompt_));
}

// Beyond the context, so that every sequence shifts.
TEST_F(AdapterTest, SequencesTogether_GiveTheTokensOfEachAlone) {
  const std::vector<Use> uses = {kNone, kFirst, kHalf, kBoth, kSecond};
  arn_session_options options = Options(static_cast<uint32_t>(uses.size()));
  options.overflow = ARN_OVERFLOW_SHIFT;
  const SessionPtr together = New(options);
  std::vector<uint32_t> sequences;
  for (uint32_t s = 0; s < uses.size(); ++s) {
    sequences.push_back(s);
    ASSERT_EQ(ARN_OK, arn_session_select(together.get(), s));
    ASSERT_EQ(ARN_OK, Set(together.get(), uses[s]));
    LogitsAfter(together.get(), prompt_);
  }
  std::vector<Ids> found(uses.size());
  Ids step(uses.size());
  for (int i = 0; i < 150; ++i) {
    ASSERT_EQ(ARN_OK, arn_session_decode_batch(together.get(), sequences.data(), sequences.size(),
                                               step.data()));
    for (size_t s = 0; s < uses.size(); ++s) found[s].push_back(step[s]);
  }
  options.max_sequences = 1;
  for (size_t s = 0; s < uses.size(); ++s) {
    EXPECT_EQ(Greedy(New(options, uses[s]).get(), prompt_, 150), found[s]) << s;
  }
  EXPECT_NE(found[0], found[1]);
}

TEST_F(AdapterTest, WithoutCache_GivesTheSameTokens) {
  arn_session_options options = Options();
  const Ids expected = Greedy(New(options, kBoth).get(), prompt_, 20);
  options.no_cache = 1;
  EXPECT_EQ(expected, Greedy(New(options, kBoth).get(), prompt_, 20));
}

#ifndef ARENITE_NO_SPECULATION
TEST_F(AdapterTest, Speculation_GivesTheSameTokens) {
  arn_session_options options = Options();
  const auto generate = [&] {
    const SessionPtr session = New(options, kFirst);
    LogitsAfter(session.get(), prompt_);
    arn_generate_options limits = ARN_GENERATE_OPTIONS_INIT;
    limits.max_tokens = 60;
    limits.ignore_eos = 1;
    EXPECT_EQ(ARN_OK, arn_session_generate(session.get(), &limits, nullptr));
    return TokensOf(session.get());
  };
  const Ids expected = generate();
  options.speculation = ARN_SPECULATE_NGRAM;
  options.guess_always = 1;
  EXPECT_EQ(expected, generate());
}

// A multi-token prediction head guesses for the model without adapters alone.
TEST(AdapterMtp, AHeadIsRefusedByName_AndLeftOutOfAuto) {
  TinyBundle bundle = BaseOptions();
  bundle.mtp = TinyMtp::kRandom;
  const BundleBytes base = MakeTinyBundle(bundle);
  const ModelPtr model = OpenBytes(base);
  const AdapterFile file(MakeTinyAdapter(base, AdapterOf(3, 5)));
  const AdapterPtr adapter = file.Open(model.get());
  const arn_adapter* handles[] = {adapter.get()};
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.adapters = handles;
  options.n_adapters = 1;
  options.speculation = ARN_SPECULATE_MTP;
  arn_memory_plan plan = ARN_MEMORY_PLAN_INIT;
  char error[256] = "";
  EXPECT_EQ(ARN_UNSUPPORTED, arn_session_plan(model.get(), &options, error, sizeof error, &plan));
  EXPECT_THAT(error, HasSubstr("does not know the session's adapters"));
  options.speculation = ARN_SPECULATE_AUTO;
  EXPECT_EQ(ARN_OK, arn_session_plan(model.get(), &options, error, sizeof error, &plan)) << error;
  EXPECT_EQ(0u, plan.draft_bytes);
}
#endif

TEST_F(AdapterTest, Beams_UseThoseOfTheirPrompt) {
  const auto search = [&](arn_session* session, uint32_t selected) {
    EXPECT_EQ(ARN_OK, arn_session_select(session, selected));
    LogitsAfter(session, prompt_);
    arn_beam_options options = ARN_BEAM_OPTIONS_INIT;
    options.num_beams = options.num_return_sequences = 3;
    options.max_tokens = 12;
    options.ignore_eos = 1;
    arn_beam_result result = ARN_BEAM_RESULT_INIT;
    EXPECT_EQ(ARN_OK, arn_session_beam_search(session, &options, &result))
        << arn_session_last_error(session);
    std::vector<Ids> found;
    for (uint32_t i = 0; i < result.n_sequences; ++i) {
      Ids ids(options.max_tokens);
      size_t n = 0;
      float score = 0;
      EXPECT_EQ(ARN_OK, arn_session_beam(session, i, ids.data(), ids.size(), &n, &score));
      found.push_back(ids);
    }
    return found;
  };
  const SessionPtr all = New(Options(3), kFirst);
  for (const uint32_t s : {1u, 2u}) {
    ASSERT_EQ(ARN_OK, arn_session_select(all.get(), s));
    ASSERT_EQ(ARN_OK, Set(all.get(), kFirst));
  }
  const SessionPtr one = New(Options(3), kSecond);  // of sequence 0
  ASSERT_EQ(ARN_OK, arn_session_select(one.get(), 2));
  ASSERT_EQ(ARN_OK, Set(one.get(), kFirst));
  EXPECT_EQ(search(all.get(), 0), search(one.get(), 2));
  // The sequences still have their own.
  ASSERT_EQ(ARN_OK, arn_session_select(one.get(), 0));
  EXPECT_EQ(LogitsAfter(New(Options(), kSecond).get(), prompt_), LogitsAfter(one.get(), prompt_));
}

TEST_F(AdapterTest, Follow_KeepsWhatTheSequenceHolds) {
  const SessionPtr session = New(Options(), kFirst);
  LogitsAfter(session.get(), prompt_);
  Ids longer = prompt_;
  longer.insert(longer.end(), {1, 2, 3});
  uint32_t kept = 0;
  ASSERT_EQ(ARN_OK, arn_session_follow(session.get(), longer.data(), longer.size(), &kept));
  EXPECT_EQ(prompt_.size(), kept);
  EXPECT_EQ(LogitsAfter(New(Options(), kFirst).get(), longer), LogitsOf(session.get()));
}

TEST_F(AdapterTest, SavedState_NeedsTheSameAdapters) {
  const SessionPtr session = New(Options(2), kBoth);
  LogitsAfter(session.get(), prompt_);
  const std::vector<uint8_t> state = Save(session.get());
  const SessionPtr other = New(Options(2));
  ExpectStatus(ARN_SAVE_MISMATCH, Restore(other.get(), state), other.get(),
               "saved with 2 adapters, the session's sequence uses 0");
  ASSERT_EQ(ARN_OK, Set(other.get(), {{1, 0}, {1.0f, -0.5f}}));
  ExpectStatus(ARN_SAVE_MISMATCH, Restore(other.get(), state), other.get(), "adapter 0");
  ASSERT_EQ(ARN_OK, Set(other.get(), {{0, 1}, {1.0f, -0.25f}}));
  ExpectStatus(ARN_SAVE_MISMATCH, Restore(other.get(), state), other.get(),
               "adapter 1: saved with ");
  EXPECT_THAT(arn_session_last_error(other.get()), HasSubstr("at scale -0.5"));
  ASSERT_EQ(ARN_OK, Set(other.get(), kBoth));
  ASSERT_EQ(ARN_OK, Restore(other.get(), state)) << arn_session_last_error(other.get());
  const Ids more = {3, 4};
  EXPECT_EQ(LogitsAfter(session.get(), more), LogitsAfter(other.get(), more));
}

TEST_F(AdapterTest, StateOfTheBase_NeedsNone) {
  const SessionPtr session = New(Options());
  LogitsAfter(session.get(), prompt_);
  const std::vector<uint8_t> state = Save(session.get());
  const SessionPtr other = New(Options(), kFirst);
  ExpectStatus(ARN_SAVE_MISMATCH, Restore(other.get(), state), other.get(), "uses 1");
  ASSERT_EQ(ARN_OK, Set(other.get(), kNone));
  EXPECT_EQ(ARN_OK, Restore(other.get(), state));
}

TEST_F(AdapterTest, Plan_HasTheirBytes) {
  arn_session_options options = Options();
  arn_memory_plan plain = ARN_MEMORY_PLAN_INIT, with = ARN_MEMORY_PLAN_INIT;
  ASSERT_EQ(ARN_OK, arn_session_plan(model_.get(), &options, nullptr, 0, &with));
  options.n_adapters = 0;
  ASSERT_EQ(ARN_OK, arn_session_plan(model_.get(), &options, nullptr, 0, &plain));
  EXPECT_EQ(2u, with.n_adapters);
  EXPECT_EQ(0u, plain.n_adapters + plain.adapters_bytes + plain.adapter_files_bytes);
  // A row of 2 x 5 ranks, padded to 16, for each of a chunk.
  EXPECT_GE(with.adapters_bytes, uint64_t{16} * options.prefill_chunk * sizeof(float));
  EXPECT_GE(with.total_bytes, plain.total_bytes);
  arn_adapter_info first = ARN_ADAPTER_INFO_INIT, second = ARN_ADAPTER_INFO_INIT;
  ASSERT_EQ(ARN_OK, arn_adapter_get_info(first_.get(), &first));
  ASSERT_EQ(ARN_OK, arn_adapter_get_info(second_.get(), &second));
  EXPECT_EQ(first.file_bytes + second.file_bytes, with.adapter_files_bytes);
  EXPECT_EQ(6u, first.max_rank);
  EXPECT_EQ(8u, second.n_changes);
}

TEST_F(AdapterTest, BadOptions_AreRefused) {
  TinyBundle other = BaseOptions();
  other.seed = 10;
  const BundleBytes other_bytes = MakeTinyBundle(other);
  const ModelPtr other_model = OpenBytes(other_bytes);
  const AdapterFile file(MakeTinyAdapter(other_bytes));
  const AdapterPtr foreign = file.Open(other_model.get());
  const AdapterPtr without_base = file.Open(nullptr);
  arn_memory_plan plan = ARN_MEMORY_PLAN_INIT;
  char error[256] = "";
  for (const arn_adapter* bad :
       {static_cast<const arn_adapter*>(nullptr), static_cast<const arn_adapter*>(foreign.get()),
        static_cast<const arn_adapter*>(without_base.get())}) {
    const arn_adapter* list[2] = {first_.get(), bad};
    arn_session_options options = Options();
    options.adapters = list;
    EXPECT_EQ(ARN_BAD_ARGUMENT,
              arn_session_plan(model_.get(), &options, error, sizeof error, &plan));
    EXPECT_THAT(error, HasSubstr("adapters[1]"));
  }
  arn_session_options options = Options();
  options.adapters = nullptr;
  EXPECT_EQ(ARN_BAD_ARGUMENT, arn_session_plan(model_.get(), &options, error, sizeof error, &plan));
  EXPECT_THAT(error, HasSubstr("adapters is NULL"));
}

TEST_F(AdapterTest, Gpus_LeaveThemToTheCpu) {
  arn_session_options options = Options();
  arn_memory_plan plan = ARN_MEMORY_PLAN_INIT;
  options.backend = ARN_BACKEND_VULKAN;
  EXPECT_EQ(ARN_UNSUPPORTED, arn_session_plan(model_.get(), &options, nullptr, 0, &plan));
  const std::vector<float> expected = LogitsAfter(New(Options(), kFirst).get(), prompt_);
  for (const uint32_t backend : {ARN_BACKEND_AUTO, ARN_BACKEND_VULKAN_CPU}) {
    options.backend = backend;
    const SessionPtr session = New(options, kFirst);
    arn_backend_info info = ARN_BACKEND_INFO_INIT;
    ASSERT_EQ(ARN_OK, arn_session_backend(session.get(), &info));
    EXPECT_EQ(uint32_t{ARN_BACKEND_CPU}, info.backend);
    EXPECT_EQ(expected, LogitsAfter(session.get(), prompt_));
  }
}

TinyBundle PrefixBundle() {
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.kv_type = ARN_KV_F32;
  options.kv_page_tokens = 8;
  options.n_threads = 1;
  options.context_tokens = 96;
  return WithPrefix(BaseOptions(), options, SomeIds(10, kVocab));
}

class AdapterPrefixTest : public AdapterTest {
 protected:
  AdapterPrefixTest() : AdapterTest(PrefixBundle()) {}
};

TEST_F(AdapterPrefixTest, BundlesPrefix_IsOfTheBase) {
  const SessionPtr session = New(Options());
  uint32_t kept = 0;
  EXPECT_EQ(ARN_OK, arn_session_use_prefix(session.get())) << arn_session_last_error(session.get());
  ASSERT_EQ(ARN_OK, arn_session_reset(session.get()));
  ASSERT_EQ(ARN_OK, arn_session_follow(session.get(), prompt_.data(), prompt_.size(), &kept));
  EXPECT_EQ(10u, kept);
  ASSERT_EQ(ARN_OK, arn_session_reset(session.get()));
  ASSERT_EQ(ARN_OK, Set(session.get(), kFirst));
  ExpectStatus(ARN_SAVE_MISMATCH, arn_session_use_prefix(session.get()), session.get(),
               "without the adapters");
  ASSERT_EQ(ARN_OK, arn_session_follow(session.get(), prompt_.data(), prompt_.size(), &kept));
  EXPECT_EQ(0u, kept);
  EXPECT_EQ(LogitsAfter(New(Options(), kFirst).get(), prompt_), LogitsOf(session.get()));
}

}  // namespace
}  // namespace arn::test
