// The scheduler: requests that join, leave, pause, share beginnings and wait for each other get the
// tokens that they get alone, bit for bit, within the rows of a step and the pages of the session.
#include <algorithm>
#include <cstring>
#include <random>
#include <string>

#include "tests/support/layer_shapes.h"
#include "tests/support/row_bits.h"
#include "tests/support/scheduler_support.h"
#include "tests/support/tiny_adapter.h"

namespace arn::test {
namespace {

// Asks at random, with prompts that begin as others did.
class Crowd {
 public:
  Crowd(uint32_t seed, size_t n_adapters) : random_(seed), n_adapters_(n_adapters) {}

  std::unique_ptr<Asked> New() {
    auto asked = std::make_unique<Asked>();
    if (!all_.empty() && random_() % 3 != 0) {
      const Asked& model = *all_[random_() % all_.size()];
      asked->prompt = model.prompt;
      // A turn of a conversation, the same again, or another end.
      if (random_() % 3 == 0) {
        asked->prompt.insert(asked->prompt.end(), model.tokens.begin(), model.tokens.end());
      } else if (random_() % 2 == 0) {
        asked->prompt.resize(1 + random_() % asked->prompt.size());
      }
      asked->adapters = model.adapters;
      asked->scales = model.scales;
    }
    const size_t more = asked->prompt.empty() ? 1 + random_() % 60 : random_() % 12;
    // Few different tokens make a text that repeats itself.
    const uint32_t n_different = random_() % 2 == 0 ? kVocab : 4;
    for (size_t i = 0; i < more; ++i) {
      asked->prompt.push_back(static_cast<int32_t>(random_() % n_different));
    }
    if (asked->prompt.size() > kContext) asked->prompt.resize(kContext);
    if (random_() % 2 == 0) {
      asked->sampling.temperature = 0.9f;
      asked->sampling.seed = random_();
      asked->sampling.top_k = 1 + random_() % 30;
      if (random_() % 2 == 0) asked->sampling.repetition_penalty = 1.3f;
    }
    if (random_() % 4 != 0) asked->max_tokens = 1 + random_() % 20;
    asked->one_by_one = random_() % 10 == 0;
    asked->no_guesses = random_() % 10 == 0;
    if (n_adapters_ != 0 && random_() % 3 == 0) {
      asked->adapters = {static_cast<uint32_t>(random_() % n_adapters_)};
      asked->scales = {random_() % 2 == 0 ? 1.0f : 0.5f};
    }
    return asked;
  }

  void Run(const arn_model* model, const arn_session_options& options, uint32_t step_rows,
           int n_requests) {
    const SessionPtr session = NewSession(model, options);
    const SchedulerPtr scheduler = NewScheduler(session.get(), step_rows);
    const uint32_t most_rows = Info(scheduler.get()).step_rows;
    std::vector<Asked*> paused;
    for (int step = 0; step < 20000; ++step) {
      while (n_requests > 0 && random_() % 4 == 0) {
        all_.push_back(New());
        const arn_status status = Submit(scheduler.get(), all_.back().get());
        if (status != ARN_OK) {
          ASSERT_EQ(ARN_BAD_STATE, status) << arn_scheduler_last_error(scheduler.get());
          all_.pop_back();  // the queue is full
          break;
        }
        --n_requests;
      }
      Asked* const any = all_.empty() ? nullptr : all_[random_() % all_.size()].get();
      if (any != nullptr && !any->has_ended && random_() % 40 == 0) {
        ASSERT_EQ(ARN_OK, arn_scheduler_cancel(scheduler.get(), any->number));
        TakeEvents(scheduler.get());
        ASSERT_TRUE(any->has_ended);
      } else if (any != nullptr && !any->has_ended && random_() % 20 == 0) {
        ASSERT_EQ(ARN_OK, arn_scheduler_pause(scheduler.get(), any->number, 1));
        paused.push_back(any);
      } else if (!paused.empty() && random_() % 5 == 0) {
        if (!paused.back()->has_ended) {
          ASSERT_EQ(ARN_OK, arn_scheduler_pause(scheduler.get(), paused.back()->number, 0));
        }
        paused.pop_back();
      }
      const arn_step_result result = Step(scheduler.get());
      ASSERT_LE(result.n_rows, most_rows);
      TakeEvents(scheduler.get());
      if (result.n_running + result.n_waiting == 0 && n_requests == 0) break;
    }
    const arn_scheduler_info info = Info(scheduler.get());
    ASSERT_LE(info.guesses_accepted, info.guesses_proposed);
    n_accepted_ += info.guesses_accepted;
    n_rejected_ += info.guesses_proposed - info.guesses_accepted;
    for (const auto& asked : all_) {
      ASSERT_TRUE(asked->has_ended) << asked->number;
      CheckAsAlone(model, options, *asked);
      n_shared_ += asked->n_kept;
      if (testing::Test::HasFailure()) return;
    }
  }

  uint64_t n_shared() const { return n_shared_; }
  uint64_t n_accepted() const { return n_accepted_; }
  uint64_t n_rejected() const { return n_rejected_; }

 private:
  std::mt19937 random_;
  size_t n_adapters_;
  std::vector<std::unique_ptr<Asked>> all_;
  uint64_t n_shared_ = 0, n_accepted_ = 0, n_rejected_ = 0;
};

class SchedulerShapesTest : public testing::TestWithParam<Shape> {};

// Random requests join, leave, pause and share, with every budget of rows, without guesses and with
// every guess that there are rows for.
TEST_P(SchedulerShapesTest, RandomRequests_GetTheTokensOfOneAlone) {
  // Others with --gtest_random_seed=N.
  uint32_t seed = 1 + 100 * static_cast<uint32_t>(GTEST_FLAG_GET(random_seed));
  uint64_t n_shared = 0, n_accepted = 0, n_rejected = 0;
  for (const DType weights : {DType::kF16, DType::kInt8, DType::kInt4}) {
    if (!RowsKeepTheirBits(weights)) continue;
    const BundleBytes bytes = Bundle(weights, GetParam().layers);
    const ModelPtr model = OpenBytes(bytes);
    for (const uint32_t kv : {ARN_KV_F16, ARN_KV_INT8}) {
      for (const uint32_t rows : {1u, 3u, 24u}) {
        arn_session_options options = Options(1 + seed % 4, kv);
        options.state_snapshots = HasState(GetParam()) ? seed % 3 * 2 : 0;
        if (seed % 2 == 0) options.kv_tokens = kContext;  // others must go
        if (seed % 3 != 0) options = Guessing(options);
        Crowd crowd(seed++, 0);
        crowd.Run(model.get(), options, rows, 14);
        n_shared += crowd.n_shared();
        n_accepted += crowd.n_accepted();
        n_rejected += crowd.n_rejected();
        ASSERT_FALSE(HasFailure()) << DTypeName(weights) << ", " << arn_kv_type_name(kv) << " KV, "
                                   << rows << " rows, seed " << seed - 1;
      }
    }
  }
  EXPECT_GT(n_shared, 0u);
  // Random delta rules write texts that do not repeat themselves.
  const bool repeats_itself = std::strncmp(GetParam().name, "delta", 5) != 0;
  EXPECT_GE(n_accepted, repeats_itself ? 1u : 0u);
  EXPECT_GT(n_rejected, 20u);
}

INSTANTIATE_TEST_SUITE_P(
    Layers, SchedulerShapesTest,
    testing::ValuesIn(Join({Shapes(), StateShapes(), LinearShapes(), WidthShapes()})), ShapeName);

// Lone replies have guesses of a draft model, of the model's own head or of its assistant, between
// steps that several share.
TEST(SchedulerModelGuessesTest, RandomRequests_GetTheTokensOfOneAlone) {
  const std::vector<TinyLayer> full(2);
  const std::vector<TinyLayer> hybrid = {
      {.mixer = TinyMixer::kDelta}, {}, {.mixer = TinyMixer::kScan}};
  const std::vector<TinyLayer> assisted(4);
  const BundleBytes draft_bytes = Bundle(DType::kF16, {{}});
  const ModelPtr draft = OpenBytes(draft_bytes);
  uint32_t seed = 1 + 100 * static_cast<uint32_t>(GTEST_FLAG_GET(random_seed));
  uint64_t n_accepted = 0, n_rejected = 0;
  for (const std::vector<TinyLayer>& layers : {full, hybrid, assisted}) {
    for (const TinyMtp mtp : {TinyMtp::kNone, TinyMtp::kRandom, TinyMtp::kRight}) {
      const bool is_assistant = mtp != TinyMtp::kNone && layers.size() == assisted.size();
      const BundleBytes bytes = Bundle(DType::kF16, layers, mtp, is_assistant);
      const ModelPtr model = OpenBytes(bytes);
      for (const bool has_ngrams : {false, true}) {
        for (const uint32_t n_sequences : {1u, 3u}) {
          arn_session_options options = Guessing(Options(n_sequences));
          const bool has_draft = mtp == TinyMtp::kNone;
          options.speculation = has_ngrams  ? ARN_SPECULATE_AUTO
                                : has_draft ? ARN_SPECULATE_DRAFT
                                            : ARN_SPECULATE_MTP;
          options.draft = has_draft ? draft.get() : nullptr;
          options.state_snapshots = seed % 3 * 2;
          Crowd crowd(seed++, 0);
          crowd.Run(model.get(), options, seed % 2 == 0 ? 0 : 5, 14);
          n_accepted += crowd.n_accepted();
          n_rejected += crowd.n_rejected();
          ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed - 1;
        }
      }
    }
  }
  EXPECT_GT(n_accepted, 200u);
  EXPECT_GT(n_rejected, 200u);
}

TEST(SchedulerAdaptersTest, RandomRequests_GetTheirOwn) {
  const BundleBytes bytes = Bundle(DType::kF16, {{}, {}});
  const ModelPtr model = OpenBytes(bytes);
  TinyAdapter other;
  other.seed = 9;
  const AdapterFile first(MakeTinyAdapter(bytes)), second(MakeTinyAdapter(bytes, other));
  arn_status status = ARN_OK;
  std::string error;
  const AdapterPtr a = first.Open(model.get(), &status, &error);
  ASSERT_EQ(ARN_OK, status) << error;
  const AdapterPtr b = second.Open(model.get(), &status, &error);
  ASSERT_EQ(ARN_OK, status) << error;
  const arn_adapter* both[] = {a.get(), b.get()};
  arn_session_options options = Options(3);
  options.adapters = both;
  options.n_adapters = 2;
  for (uint32_t seed = 1; seed < 9; ++seed) {
    Crowd crowd(seed, 2);
    crowd.Run(model.get(), options, seed % 2 == 0 ? 0 : 5, 16);
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace arn::test
