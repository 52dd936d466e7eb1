// The scheduler: requests that join, leave, share beginnings and wait for each other get the tokens
// that they get alone, bit for bit, within the rows of a step and the pages of the session.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/support/layer_shapes.h"
#include "tests/support/row_bits.h"
#include "tests/support/session_support.h"
#include "tests/support/tiny_adapter.h"

namespace arn::test {
namespace {

constexpr uint32_t kVocab = 61;
constexpr uint32_t kContext = 96;

struct DestroyScheduler {
  void operator()(arn_scheduler* scheduler) const { arn_scheduler_destroy(scheduler); }
};
using SchedulerPtr = std::unique_ptr<arn_scheduler, DestroyScheduler>;

SchedulerPtr NewScheduler(arn_session* session, uint32_t step_rows = 0) {
  arn_scheduler_options options = ARN_SCHEDULER_OPTIONS_INIT;
  options.step_rows = step_rows;
  arn_scheduler* scheduler = nullptr;
  char error[512] = "";
  EXPECT_EQ(ARN_OK, arn_scheduler_create(session, &options, error, sizeof error, &scheduler))
      << error;
  return SchedulerPtr(scheduler);
}

arn_session_options Options(uint32_t sequences, uint32_t kv = ARN_KV_F16) {
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.kv_type = kv;
  options.n_threads = 1;
  options.context_tokens = kContext;
  options.kv_page_tokens = 8;
  options.prefill_chunk = 24;
  options.max_sequences = sequences;
  options.max_requests = 12;
  options.logits_processors = 1;
  return options;
}

// A request, what came of it, and how it was run.
struct Asked {
  std::vector<int32_t> prompt;
  arn_sampling sampling = ARN_SAMPLING_INIT;
  uint32_t max_tokens = 0;
  std::vector<uint32_t> adapters;
  std::vector<float> scales;

  uint64_t number = 0;
  bool has_started = false, has_ended = false;
  uint32_t finish = 0;
  arn_status status = ARN_OK;
  uint32_t n_kept = 0;
  std::vector<int32_t> tokens;
  std::vector<uint32_t> lengths;  // of the prompt's part behind each step
};

arn_status Submit(arn_scheduler* scheduler, Asked* asked) {
  arn_request request = ARN_REQUEST_INIT;
  request.ids = asked->prompt.data();
  request.n_ids = asked->prompt.size();
  request.sampling = &asked->sampling;
  request.max_tokens = asked->max_tokens;
  request.ignore_eos = 1;
  request.adapters = asked->adapters.data();
  request.adapter_scales = asked->scales.data();
  request.n_adapters = asked->adapters.size();
  request.user = asked;
  return arn_scheduler_submit(scheduler, &request, &asked->number);
}

void TakeEvents(arn_scheduler* scheduler) {
  arn_scheduler_event event = ARN_SCHEDULER_EVENT_INIT;
  while (arn_scheduler_next_event(scheduler, &event) == ARN_OK) {
    auto* const asked = static_cast<Asked*>(event.user);
    ASSERT_EQ(asked->number, event.request);
    ASSERT_FALSE(asked->has_ended);
    EXPECT_EQ(asked->prompt.size(), event.n_prompt_tokens);
    if (event.kind == ARN_REQUEST_STARTED) {
      EXPECT_FALSE(asked->has_started);
      asked->has_started = true;
      asked->n_kept = event.n_kept;
      asked->lengths = {event.n_kept};
    } else if (event.kind == ARN_REQUEST_TOKEN) {
      EXPECT_TRUE(asked->has_started);
      asked->tokens.push_back(event.id);
      EXPECT_EQ(asked->tokens.size(), event.n_tokens);
    } else {
      ASSERT_EQ(static_cast<uint32_t>(ARN_REQUEST_ENDED), event.kind);
      asked->has_ended = true;
      asked->finish = event.finish;
      asked->status = event.status;
    }
  }
}

arn_step_result Step(arn_scheduler* scheduler) {
  arn_step_result result = ARN_STEP_RESULT_INIT;
  EXPECT_EQ(ARN_OK, arn_scheduler_step(scheduler, &result)) << arn_scheduler_last_error(scheduler);
  return result;
}

void RunToEnd(arn_scheduler* scheduler) {
  for (int step = 0; step < 5000; ++step) {
    const arn_step_result result = Step(scheduler);
    TakeEvents(scheduler);
    if (result.n_running + result.n_waiting == 0) return;
  }
  FAIL() << "it does not end";
}

// What the request gets alone: in parts of these lengths, or at once.
std::vector<int32_t> Alone(const arn_model* model, arn_session_options options, const Asked& asked,
                           uint32_t* finish, const std::vector<uint32_t>& lengths = {}) {
  options.max_sequences = 1;
  options.kv_tokens = 0;
  options.max_requests = 0;
  const SessionPtr session = NewSession(model, options);
  EXPECT_EQ(ARN_OK, arn_session_set_adapters(session.get(), asked.adapters.data(),
                                             asked.scales.data(), asked.adapters.size()));
  size_t done = 0;
  for (const uint32_t length : lengths) {
    if (length == done) continue;
    EXPECT_EQ(ARN_OK, arn_session_prefill(session.get(), asked.prompt.data() + done, length - done));
    done = length;
  }
  if (done < asked.prompt.size()) {
    EXPECT_EQ(ARN_OK, arn_session_prefill(session.get(), asked.prompt.data() + done,
                                          asked.prompt.size() - done));
  }
  EXPECT_EQ(ARN_OK, arn_session_set_sampling(session.get(), &asked.sampling));
  arn_generate_options generate = ARN_GENERATE_OPTIONS_INIT;
  std::vector<int32_t> tokens;
  generate.max_tokens = asked.max_tokens;
  generate.ignore_eos = 1;
  generate.user = &tokens;
  generate.callback = [](void* user, int32_t id, const char*, size_t) {
    if (id >= 0) static_cast<std::vector<int32_t>*>(user)->push_back(id);
    return int32_t{0};
  };
  arn_generate_result result = ARN_GENERATE_RESULT_INIT;
  EXPECT_EQ(ARN_OK, arn_session_generate(session.get(), &generate, &result));
  *finish = result.finish;
  return tokens;
}

void CheckAsAlone(const arn_model* model, const arn_session_options& options, const Asked& asked,
                  const std::vector<uint32_t>& lengths = {}) {
  uint32_t finish = 0;
  std::vector<int32_t> alone = Alone(model, options, asked, &finish, lengths);
  ASSERT_EQ(ARN_OK, asked.status);
  if (asked.finish == ARN_FINISH_CANCELLED) {
    ASSERT_LE(asked.tokens.size(), alone.size());
    alone.resize(asked.tokens.size());
  } else {
    EXPECT_EQ(finish, asked.finish);
  }
  EXPECT_EQ(alone, asked.tokens) << "request " << asked.number << " of " << asked.prompt.size()
                                 << " tokens, " << asked.n_kept << " kept";
}

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
    for (size_t i = 0; i < more; ++i) {
      asked->prompt.push_back(static_cast<int32_t>(random_() % kVocab));
    }
    if (asked->prompt.size() > kContext) asked->prompt.resize(kContext);
    if (random_() % 2 == 0) {
      asked->sampling.temperature = 0.9f;
      asked->sampling.seed = random_();
      asked->sampling.top_k = 1 + random_() % 30;
      if (random_() % 2 == 0) asked->sampling.repetition_penalty = 1.3f;
    }
    if (random_() % 4 != 0) asked->max_tokens = 1 + random_() % 20;
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
    arn_scheduler_info info = ARN_SCHEDULER_INFO_INIT;
    ASSERT_EQ(ARN_OK, arn_scheduler_get_info(scheduler.get(), &info));
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
      ASSERT_LE(result.n_rows, info.step_rows);
      TakeEvents(scheduler.get());
      if (result.n_running + result.n_waiting == 0 && n_requests == 0) break;
    }
    for (const auto& asked : all_) {
      ASSERT_TRUE(asked->has_ended) << asked->number;
      CheckAsAlone(model, options, *asked);
      n_shared_ += asked->n_kept;
      if (testing::Test::HasFailure()) return;
    }
  }

  uint64_t n_shared() const { return n_shared_; }

 private:
  std::mt19937 random_;
  size_t n_adapters_;
  std::vector<std::unique_ptr<Asked>> all_;
  uint64_t n_shared_ = 0;
};

BundleBytes Bundle(DType weights, const std::vector<TinyLayer>& layers) {
  TinyBundle bundle;
  bundle.vocab = kVocab;
  bundle.weights = weights;
  bundle.layer_kinds = layers;
  return MakeTinyBundle(bundle);
}

std::vector<Shape> SomeShapes() {
  std::vector<Shape> all = Shapes();
  for (const auto& more : {StateShapes(), LinearShapes(), WidthShapes()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

class SchedulerShapesTest : public testing::TestWithParam<Shape> {};

// Random requests join, leave, pause and share, with every budget of rows.
TEST_P(SchedulerShapesTest, RandomRequests_GetTheTokensOfOneAlone) {
  // Others with --gtest_shuffle --gtest_random_seed=N.
  uint32_t seed = 1 + 100 * static_cast<uint32_t>(testing::UnitTest::GetInstance()->random_seed());
  uint64_t n_shared = 0;
  for (const DType weights : {DType::kF16, DType::kInt8, DType::kInt4}) {
    if (!RowsKeepTheirBits(weights)) continue;
    const BundleBytes bytes = Bundle(weights, GetParam().layers);
    const ModelPtr model = OpenBytes(bytes);
    for (const uint32_t kv : {ARN_KV_F16, ARN_KV_INT8}) {
      for (const uint32_t rows : {1u, 3u, 24u}) {
        arn_session_options options = Options(1 + seed % 4, kv);
        options.state_snapshots = HasState(GetParam()) ? seed % 3 * 2 : 0;
        if (seed % 2 == 0) options.kv_tokens = kContext;  // others must go
        Crowd crowd(seed++, 0);
        crowd.Run(model.get(), options, rows, 14);
        n_shared += crowd.n_shared();
        ASSERT_FALSE(HasFailure()) << DTypeName(weights) << ", " << arn_kv_type_name(kv) << " KV, "
                                   << rows << " rows, seed " << seed - 1;
      }
    }
  }
  EXPECT_GT(n_shared, 0u);
}

INSTANTIATE_TEST_SUITE_P(Layers, SchedulerShapesTest, testing::ValuesIn(SomeShapes()), ShapeName);

class SchedulerTest : public testing::Test {
 protected:
  explicit SchedulerTest(DType weights = DType::kF16)
      : bytes_(Bundle(weights, {{}, {}})), model_(OpenBytes(bytes_)) {}

  std::unique_ptr<Asked> Ask(std::vector<int32_t> prompt, uint32_t max_tokens) {
    auto asked = std::make_unique<Asked>();
    asked->prompt = std::move(prompt);
    asked->max_tokens = max_tokens;
    return asked;
  }

  BundleBytes bytes_;
  ModelPtr model_;
};

// n replies to a prompt: one computes it, the others begin with a copy, and nothing runs twice.
TEST_F(SchedulerTest, SamePrompt_IsComputedOnce) {
  const arn_session_options options = Options(4);
  const SessionPtr session = NewSession(model_.get(), options);
  const SchedulerPtr scheduler = NewScheduler(session.get());
  std::vector<std::unique_ptr<Asked>> all;
  for (uint32_t i = 0; i < 4; ++i) {
    all.push_back(Ask(SomeIds(50, kVocab), 10));
    all.back()->sampling.temperature = 1.0f;
    all.back()->sampling.seed = 100 + i;
    ASSERT_EQ(ARN_OK, Submit(scheduler.get(), all.back().get()));
  }
  uint32_t n_prompt_rows = 0;
  for (int i = 0; i < 3; ++i) {
    n_prompt_rows += Step(scheduler.get()).n_prompt_rows;
    TakeEvents(scheduler.get());
  }
  EXPECT_FALSE(all[1]->has_started);
  RunToEnd(scheduler.get());
  EXPECT_EQ(50u, n_prompt_rows);
  arn_session_stats_data stats = ARN_SESSION_STATS_INIT;
  ASSERT_EQ(ARN_OK, arn_session_stats(session.get(), &stats));
  EXPECT_EQ(50u, stats.prefill_tokens);
  for (const auto& asked : all) {
    EXPECT_EQ(asked == all[0] ? 0u : 50u, asked->n_kept);
    CheckAsAlone(model_.get(), options, *asked);
  }
  EXPECT_NE(all[0]->tokens, all[1]->tokens);
}

// Prompts with a common beginning: the second waits for the first to have computed it, and no
// longer.
TEST_F(SchedulerTest, CommonBeginning_IsComputedOnce) {
  const arn_session_options options = Options(2);
  const SessionPtr session = NewSession(model_.get(), options);
  const SchedulerPtr scheduler = NewScheduler(session.get());
  auto first = Ask(SomeIds(80, kVocab), 5), second = Ask(SomeIds(80, kVocab), 5);
  for (size_t i = 30; i < 80; ++i) second->prompt[i] = static_cast<int32_t>(i % 7);
  ASSERT_EQ(ARN_OK, Submit(scheduler.get(), first.get()));
  ASSERT_EQ(ARN_OK, Submit(scheduler.get(), second.get()));
  EXPECT_EQ(24u, Step(scheduler.get()).n_rows);
  TakeEvents(scheduler.get());
  EXPECT_EQ(6u, Step(scheduler.get()).n_rows) << "it ends where the two differ";
  TakeEvents(scheduler.get());
  EXPECT_FALSE(second->has_started);
  EXPECT_EQ(24u, Step(scheduler.get()).n_rows);
  TakeEvents(scheduler.get());
  EXPECT_TRUE(second->has_started);
  EXPECT_EQ(30u, second->n_kept);
  RunToEnd(scheduler.get());
  CheckAsAlone(model_.get(), options, *first);
  CheckAsAlone(model_.get(), options, *second);
}

// A conversation goes on where its last turn ended, in the same sequence.
TEST_F(SchedulerTest, NextTurn_ComputesItsOwnTokensOnly) {
  const arn_session_options options = Options(3);
  const SessionPtr session = NewSession(model_.get(), options);
  const SchedulerPtr scheduler = NewScheduler(session.get());
  auto first = Ask(SomeIds(20, kVocab), 8);
  ASSERT_EQ(ARN_OK, Submit(scheduler.get(), first.get()));
  RunToEnd(scheduler.get());
  auto second = Ask(first->prompt, 8);
  second->prompt.insert(second->prompt.end(), first->tokens.begin(), first->tokens.end());
  second->prompt.insert(second->prompt.end(), {5, 6, 7});
  ASSERT_EQ(ARN_OK, Submit(scheduler.get(), second.get()));
  RunToEnd(scheduler.get());
  EXPECT_EQ(27u, second->n_kept) << "the last token of a reply has not run";
  CheckAsAlone(model_.get(), options, *second);
}

// While a long prompt runs, each step has a row for every reply, and no more rows than the budget.
TEST_F(SchedulerTest, LongPrompt_DelaysNoReplyByMoreThanTheBudget) {
  arn_session_options options = Options(5);
  options.kv_tokens = 0;
  const SessionPtr session = NewSession(model_.get(), options);
  constexpr uint32_t kRows = 6;
  const SchedulerPtr scheduler = NewScheduler(session.get(), kRows);
  std::vector<std::unique_ptr<Asked>> replies;
  for (int32_t i = 0; i < 4; ++i) {
    replies.push_back(Ask({i, 2, 3}, 60));
    ASSERT_EQ(ARN_OK, Submit(scheduler.get(), replies.back().get()));
  }
  for (int i = 0; i < 3; ++i) {
    Step(scheduler.get());
    TakeEvents(scheduler.get());
  }
  auto prompt = Ask(SomeIds(90, kVocab), 3);
  std::reverse(prompt->prompt.begin(), prompt->prompt.end());
  ASSERT_EQ(ARN_OK, Submit(scheduler.get(), prompt.get()));
  uint32_t n_steps = 0;
  for (; prompt->tokens.empty(); ++n_steps) {
    ASSERT_LT(n_steps, 100u);
    std::vector<size_t> before;
    for (const auto& reply : replies) before.push_back(reply->tokens.size());
    const arn_step_result result = Step(scheduler.get());
    TakeEvents(scheduler.get());
    EXPECT_EQ(kRows, result.n_rows);
    EXPECT_EQ(kRows - 4, result.n_prompt_rows);
    for (size_t i = 0; i < replies.size(); ++i) {
      EXPECT_EQ(before[i] + 1, replies[i]->tokens.size());
    }
  }
  EXPECT_EQ(90u / (kRows - 4), n_steps);
  RunToEnd(scheduler.get());
  for (const auto& reply : replies) CheckAsAlone(model_.get(), options, *reply);
  CheckAsAlone(model_.get(), options, *prompt);
}

// With fewer rows than requests everyone's turn comes.
TEST_F(SchedulerTest, OneRow_GoesRound) {
  const arn_session_options options = Options(3);
  const SessionPtr session = NewSession(model_.get(), options);
  const SchedulerPtr scheduler = NewScheduler(session.get(), 1);
  std::vector<std::unique_ptr<Asked>> all;
  for (int32_t i = 0; i < 3; ++i) {
    all.push_back(Ask({i}, 20));
    ASSERT_EQ(ARN_OK, Submit(scheduler.get(), all.back().get()));
  }
  for (int step = 1; step <= 30; ++step) {
    EXPECT_EQ(1u, Step(scheduler.get()).n_rows);
    TakeEvents(scheduler.get());
    size_t least = SIZE_MAX, most = 0;
    for (const auto& asked : all) {
      least = std::min(least, asked->tokens.size());
      most = std::max(most, asked->tokens.size());
    }
    EXPECT_LE(most - least, 1u);
  }
  RunToEnd(scheduler.get());
  for (const auto& asked : all) CheckAsAlone(model_.get(), options, *asked);
}

TEST_F(SchedulerTest, FullQueue_RefusesAndChangesNothing) {
  arn_session_options options = Options(1);
  options.max_requests = 3;
  const SessionPtr session = NewSession(model_.get(), options);
  const SchedulerPtr scheduler = NewScheduler(session.get());
  std::vector<std::unique_ptr<Asked>> all;
  for (int32_t i = 0; i < 3; ++i) {
    all.push_back(Ask({i, 1, 2}, 4));
    ASSERT_EQ(ARN_OK, Submit(scheduler.get(), all.back().get()));
  }
  auto extra = Ask({9, 1, 2}, 4);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(ARN_BAD_STATE, Submit(scheduler.get(), extra.get()));
    EXPECT_EQ(0u, extra->number);
    EXPECT_STREQ("all 3 requests of the session are taken (max_requests)",
                 arn_scheduler_last_error(scheduler.get()));
    const arn_step_result result = Step(scheduler.get());
    EXPECT_EQ(1u, result.n_running);
    EXPECT_EQ(2u, result.n_waiting);
    TakeEvents(scheduler.get());
  }
  // A place is free once the last event of its request is taken, not before.
  ASSERT_EQ(ARN_OK, arn_scheduler_cancel(scheduler.get(), all[2]->number));
  EXPECT_EQ(ARN_BAD_STATE, Submit(scheduler.get(), extra.get()));
  TakeEvents(scheduler.get());
  EXPECT_EQ(ARN_OK, Submit(scheduler.get(), extra.get()));
  EXPECT_EQ(4u, extra->number);
  RunToEnd(scheduler.get());
  EXPECT_EQ(static_cast<uint32_t>(ARN_FINISH_CANCELLED), all[2]->finish);
  all[2] = std::move(extra);
  for (const auto& asked : all) CheckAsAlone(model_.get(), options, *asked);
}

// Cancelled in every phase: the next event is the end, and its sequence is free in the next step.
TEST_F(SchedulerTest, Cancel_EndsAtOnce) {
  const arn_session_options options = Options(1);
  const SessionPtr session = NewSession(model_.get(), options);
  const SchedulerPtr scheduler = NewScheduler(session.get());
  for (const int n_steps : {0, 1, 5}) {
    auto asked = Ask(SomeIds(40, kVocab), 20), next = Ask({7, 8, 9}, 2);
    ASSERT_EQ(ARN_OK, Submit(scheduler.get(), asked.get()));
    ASSERT_EQ(ARN_OK, Submit(scheduler.get(), next.get()));
    for (int i = 0; i < n_steps; ++i) {
      Step(scheduler.get());
      TakeEvents(scheduler.get());
    }
    ASSERT_EQ(ARN_OK, arn_scheduler_cancel(scheduler.get(), asked->number));
    EXPECT_EQ(ARN_NOT_FOUND, arn_scheduler_cancel(scheduler.get(), asked->number));
    EXPECT_EQ(ARN_NOT_FOUND, arn_scheduler_pause(scheduler.get(), asked->number, 1));
    TakeEvents(scheduler.get());
    EXPECT_TRUE(asked->has_ended);
    EXPECT_EQ(static_cast<uint32_t>(ARN_FINISH_CANCELLED), asked->finish);
    Step(scheduler.get());
    TakeEvents(scheduler.get());
    EXPECT_TRUE(next->has_started);
    RunToEnd(scheduler.get());
    CheckAsAlone(model_.get(), options, *next);
  }
}

// arn_session_cancel ends a step, before or in its run, and nothing is lost.
TEST_F(SchedulerTest, CancelledStep_IsRepeated) {
  const arn_session_options options = Options(2);
  const SessionPtr session = NewSession(model_.get(), options);
  const SchedulerPtr scheduler = NewScheduler(session.get());
  auto first = Ask(SomeIds(40, kVocab), 10), second = Ask({3, 4}, 10);
  ASSERT_EQ(ARN_OK, Submit(scheduler.get(), first.get()));
  ASSERT_EQ(ARN_OK, Submit(scheduler.get(), second.get()));
  for (int i = 0; i < 8; ++i) {
    arn_session_cancel(session.get());
    EXPECT_EQ(ARN_CANCELLED, arn_scheduler_step(scheduler.get(), nullptr));
    TakeEvents(scheduler.get());
    Step(scheduler.get());
    TakeEvents(scheduler.get());
  }
  RunToEnd(scheduler.get());
  CheckAsAlone(model_.get(), options, *first);
  CheckAsAlone(model_.get(), options, *second);
}

TEST_F(SchedulerTest, EventsNotTaken_RefuseAStep) {
  const SessionPtr session = NewSession(model_.get(), Options(1));
  const SchedulerPtr scheduler = NewScheduler(session.get());
  auto asked = Ask({1, 2, 3}, 3);
  ASSERT_EQ(ARN_OK, Submit(scheduler.get(), asked.get()));
  Step(scheduler.get());
  EXPECT_EQ(ARN_BAD_STATE, arn_scheduler_step(scheduler.get(), nullptr));
  EXPECT_STREQ("2 events have not been taken", arn_scheduler_last_error(scheduler.get()));
  TakeEvents(scheduler.get());
  RunToEnd(scheduler.get());
  EXPECT_EQ(3u, asked->tokens.size());
}

// Behind an event TOKEN the session is at the logits that it was chosen from, and forced tokens
// come next.
TEST_F(SchedulerTest, LogitsAndForcedTokens) {
  const SessionPtr session = NewSession(model_.get(), Options(2));
  const SchedulerPtr scheduler = NewScheduler(session.get());
  const SessionPtr alone = NewSession(model_.get(), Options(1));
  auto asked = Ask(SomeIds(9, kVocab), 12), other = Ask({5}, 30);
  ASSERT_EQ(ARN_OK, Submit(scheduler.get(), asked.get()));
  ASSERT_EQ(ARN_OK, Submit(scheduler.get(), other.get()));
  ASSERT_EQ(ARN_OK, arn_session_prefill(alone.get(), asked->prompt.data(), asked->prompt.size()));
  const int32_t forced[] = {17, 3, 44};
  for (size_t i = 0; i < 12; ++i) {
    Step(scheduler.get());
    arn_request_info info = ARN_REQUEST_INFO_INIT;
    if (i < 11) {
      ASSERT_EQ(ARN_OK, arn_scheduler_get_request(scheduler.get(), asked->number, &info));
      EXPECT_EQ(static_cast<uint32_t>(ARN_REQUEST_IS_IN_REPLY), info.state);
      EXPECT_EQ(asked->number, arn_scheduler_request_of(scheduler.get(), info.sequence));
    }
    TakeEvents(scheduler.get());
    ASSERT_EQ(i + 1, asked->tokens.size());
    const int32_t id = asked->tokens.back();
    if (i < 11) {
      ASSERT_EQ(ARN_OK, arn_session_select(session.get(), info.sequence));
      arn_token_logprob top[3], top_alone[3];
      float own = 0, own_alone = 0;
      ASSERT_EQ(ARN_OK, arn_session_logprobs(session.get(), id, 3, top, &own));
      ASSERT_EQ(ARN_OK, arn_session_logprobs(alone.get(), id, 3, top_alone, &own_alone));
      EXPECT_EQ(own_alone, own);
      EXPECT_EQ(0, std::memcmp(top, top_alone, sizeof top));
    }
    if (i == 3) {
      ASSERT_EQ(ARN_OK, arn_scheduler_force(scheduler.get(), asked->number, forced, 3));
    }
    ASSERT_EQ(ARN_OK, arn_session_prefill(alone.get(), &id, 1));
  }
  EXPECT_EQ((std::vector<int32_t>{17, 3, 44}),
            std::vector<int32_t>(asked->tokens.begin() + 4, asked->tokens.begin() + 7));
  const int32_t bad = kVocab;
  EXPECT_EQ(ARN_BAD_TOKEN, arn_scheduler_force(scheduler.get(), other->number, &bad, 1));
}

// A quantised page changes what later rows see: the same parts of a prompt give the same bits.
TEST_F(SchedulerTest, QuantisedPages_GiveTheTokensOfTheSameParts) {
  for (const uint32_t kv : {ARN_KV_INT4, ARN_KV_INT2}) {
    arn_session_options options = Options(4, kv);
    options.kv_residual = 16;
    for (const uint32_t rows : {3u, 10u, 24u}) {
      const SessionPtr session = NewSession(model_.get(), options);
      const SchedulerPtr scheduler = NewScheduler(session.get(), rows);
      std::vector<std::unique_ptr<Asked>> all;
      for (int32_t i = 0; i < 4; ++i) {
        std::vector<int32_t> prompt = SomeIds(static_cast<size_t>(40 + 5 * i), kVocab);
        prompt[0] = i % 3;  // the last is the first again
        if (i == 3) prompt = all[0]->prompt;
        all.push_back(Ask(std::move(prompt), 30));
        if (i % 2 == 1) all.back()->sampling.temperature = 1.0f;
        ASSERT_EQ(ARN_OK, Submit(scheduler.get(), all.back().get()));
      }
      for (uint32_t left = 1; left != 0;) {
        const arn_step_result result = Step(scheduler.get());
        left = result.n_running + result.n_waiting;
        for (const auto& asked : all) {
          arn_request_info info = ARN_REQUEST_INFO_INIT;
          if (arn_scheduler_get_request(scheduler.get(), asked->number, &info) == ARN_OK &&
              info.n_prompt_done != 0) {
            asked->lengths.push_back(info.n_prompt_done);
          }
        }
        TakeEvents(scheduler.get());
      }
      EXPECT_EQ(40u, all[3]->n_kept);
      all[3]->lengths = all[0]->lengths;
      for (const auto& asked : all) {
        CheckAsAlone(model_.get(), options, *asked, asked->lengths);
        ASSERT_FALSE(HasFailure()) << arn_kv_type_name(kv) << ", " << rows << " rows";
      }
    }
  }
}

TEST_F(SchedulerTest, Adapters_AreEachRequestsOwn) {
  TinyAdapter other;
  other.seed = 9;
  const AdapterFile first(MakeTinyAdapter(bytes_)), second(MakeTinyAdapter(bytes_, other));
  arn_status status = ARN_OK;
  std::string error;
  const AdapterPtr a = first.Open(model_.get(), &status, &error);
  ASSERT_EQ(ARN_OK, status) << error;
  const AdapterPtr b = second.Open(model_.get(), &status, &error);
  ASSERT_EQ(ARN_OK, status) << error;
  const arn_adapter* both[] = {a.get(), b.get()};
  arn_session_options options = Options(3);
  options.adapters = both;
  options.n_adapters = 2;
  for (uint32_t seed = 1; seed < 9; ++seed) {
    Crowd crowd(seed, 2);
    crowd.Run(model_.get(), options, seed % 2 == 0 ? 0 : 5, 16);
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

TEST_F(SchedulerTest, BadRequests_AreRefusedWithTheReason) {
  arn_session_options options = Options(2);
  options.kv_tokens = kContext;
  const SessionPtr session = NewSession(model_.get(), options);
  const SchedulerPtr scheduler = NewScheduler(session.get());
  const int32_t ids[] = {1, 2, 3};
  uint64_t number = 7;
  const auto refused = [&](const arn_request& request, arn_status status, const char* why) {
    EXPECT_EQ(status, arn_scheduler_submit(scheduler.get(), &request, &number));
    EXPECT_EQ(0u, number);
    EXPECT_STREQ(why, arn_scheduler_last_error(scheduler.get()));
  };
  arn_request good = ARN_REQUEST_INIT;
  good.ids = ids;
  good.n_ids = 3;
  arn_request request = good;
  request.n_ids = 0;
  refused(request, ARN_BAD_ARGUMENT, "the prompt is empty");
  request.n_ids = kContext + 1;
  const std::vector<int32_t> many(kContext + 1, 1);
  request.ids = many.data();
  refused(request, ARN_CONTEXT_FULL, "97 tokens do not fit a context of 96");
  const int32_t bad[] = {1, kVocab};
  request.ids = bad;
  request.n_ids = 2;
  refused(request, ARN_BAD_TOKEN, "token 1 is 61, the vocabulary has 61");
  request = good;
  arn_sampling sampling = ARN_SAMPLING_INIT;
  sampling.temperature = -1.0f;
  request.sampling = &sampling;
  EXPECT_EQ(ARN_BAD_ARGUMENT, arn_scheduler_submit(scheduler.get(), &request, &number));
  request = good;
  request.constraint_waits = 1;
  refused(request, ARN_BAD_ARGUMENT, "constraint_waits is 1, and constraint is NULL");
  request = good;
  arn_stop_string stop = {"x", 1};
  request.stops = &stop;
  request.n_stops = 1;
  refused(request, ARN_UNSUPPORTED, "stop strings need a tokenizer, the bundle has none");
  request = good;
  const uint32_t adapter = 0;
  request.adapters = &adapter;
  request.n_adapters = 1;
  refused(request, ARN_BAD_ARGUMENT, "adapter 0, the session has 0");
  request = good;
  request.struct_size = 4;
  EXPECT_EQ(ARN_BAD_ARGUMENT, arn_scheduler_submit(scheduler.get(), &request, &number));
  arn_scheduler_info info = ARN_SCHEDULER_INFO_INIT;
  ASSERT_EQ(ARN_OK, arn_scheduler_get_info(scheduler.get(), &info));
  EXPECT_EQ(0u, info.n_waiting + info.n_running);
}

TEST_F(SchedulerTest, Create_SaysWhatItNeeds) {
  char error[256] = "";
  arn_scheduler* out = nullptr;
  arn_session_options options = Options(2);
  options.max_requests = 0;
  const SessionPtr without = NewSession(model_.get(), options);
  EXPECT_EQ(ARN_UNSUPPORTED,
            arn_scheduler_create(without.get(), nullptr, error, sizeof error, &out));
  EXPECT_STREQ("the session was created with max_requests = 0", error);
  const SessionPtr session = NewSession(model_.get(), Options(2));
  arn_scheduler_options rows = ARN_SCHEDULER_OPTIONS_INIT;
  rows.step_rows = 25;
  EXPECT_EQ(ARN_BAD_ARGUMENT,
            arn_scheduler_create(session.get(), &rows, error, sizeof error, &out));
  EXPECT_EQ(nullptr, out);
  {
    const SchedulerPtr scheduler = NewScheduler(session.get());
    EXPECT_EQ(ARN_BAD_STATE,
              arn_scheduler_create(session.get(), nullptr, error, sizeof error, &out));
    auto asked = Ask({1, 2, 3}, 9);
    ASSERT_EQ(ARN_OK, Submit(scheduler.get(), asked.get()));
    Step(scheduler.get());
  }
  // A new one goes on from the tokens that the session has.
  const SchedulerPtr again = NewScheduler(session.get());
  auto asked = Ask({1, 2, 3, 4}, 2);
  ASSERT_EQ(ARN_OK, Submit(again.get(), asked.get()));
  RunToEnd(again.get());
  EXPECT_EQ(3u, asked->n_kept);
  for (const uint32_t overflow : {ARN_OVERFLOW_ERROR, ARN_OVERFLOW_SHIFT}) {
    options = Options(1);
    options.overflow = overflow;
    arn_memory_plan plan = ARN_MEMORY_PLAN_INIT;
    EXPECT_EQ(ARN_UNSUPPORTED, arn_session_plan(model_.get(), &options, error, sizeof error, &plan));
  }
  options = Options(1);
  options.no_cache = 1;
  arn_memory_plan plan = ARN_MEMORY_PLAN_INIT;
  EXPECT_EQ(ARN_UNSUPPORTED, arn_session_plan(model_.get(), &options, error, sizeof error, &plan));
  EXPECT_STREQ("max_requests is 12: a scheduler does not work with no_cache", error);
}

// What the plan says of the scheduler is what the block has more.
TEST_F(SchedulerTest, Plan_HasItsBytes) {
  arn_session_options options = Options(3);
  options.max_requests = 4096;
  arn_memory_plan with = ARN_MEMORY_PLAN_INIT, without = ARN_MEMORY_PLAN_INIT;
  ASSERT_EQ(ARN_OK, arn_session_plan(model_.get(), &options, nullptr, 0, &with));
  options.max_requests = 0;
  ASSERT_EQ(ARN_OK, arn_session_plan(model_.get(), &options, nullptr, 0, &without));
  EXPECT_EQ(4096u, with.max_requests);
  EXPECT_EQ(0u, without.scheduler_bytes);
  const uint64_t more = with.io_bytes - without.io_bytes;
  EXPECT_EQ(more, with.total_bytes - without.total_bytes);
  // Regions are whole multiples of the alignment.
  EXPECT_LT(more > with.scheduler_bytes ? more - with.scheduler_bytes : with.scheduler_bytes - more,
            with.alignment + 7 * 64);
  EXPECT_LT(with.scheduler_bytes / 4096, 1024u) << "a request";
}

}  // namespace
}  // namespace arn::test
