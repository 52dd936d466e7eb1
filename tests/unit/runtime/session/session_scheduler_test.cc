// The scheduler: what a step runs, what the queue refuses, and who waits for whom.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <initializer_list>
#include <thread>
#include <utility>

#include "tests/support/scheduler_support.h"

namespace arn::test {
namespace {

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
// A free sequence stays for the waiting request that begins as it does.
TEST_F(SchedulerTest, MoreCopiesThanSequences_AreComputedOnce) {
  const arn_session_options options = Options(3);
  const SessionPtr session = NewSession(model_.get(), options);
  const SchedulerPtr scheduler = NewScheduler(session.get());
  const std::vector<int32_t> ids = SomeIds(60, kVocab);
  std::vector<std::unique_ptr<Asked>> all;
  for (uint32_t i = 0; i < 6; ++i) {
    const auto begin = ids.begin() + 20 * (i / 2);
    all.push_back(Ask({begin, begin + 20}, 30));  // more than the prompt: worth a copy
    all.back()->sampling.temperature = 1.0f;
    all.back()->sampling.seed = 100 + i;
    ASSERT_EQ(ARN_OK, Submit(scheduler.get(), all.back().get()));
  }
  RunToEnd(scheduler.get());
  for (uint32_t i = 0; i < 6; ++i) {
    SCOPED_TRACE(i);
    EXPECT_GE(all[i]->n_kept, i % 2 == 1 ? 19u : 0u);
    CheckAsAlone(model_.get(), options, *all[i]);
  }
}

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

// A draft model that is the model itself is always right, and so is a head made to be.
TEST_F(SchedulerTest, LoneReply_HasGuessesOfModels) {
  const BundleBytes with_head = Bundle(DType::kF16, {{}, {}}, TinyMtp::kRight);
  const ModelPtr own_head = OpenBytes(with_head);
  for (const bool has_draft : {true, false}) {
    arn_session_options options = Guessing(Options(3));
    options.speculation = has_draft ? ARN_SPECULATE_DRAFT : ARN_SPECULATE_MTP;
    options.draft = has_draft ? model_.get() : nullptr;
    options.max_guesses = 4;
    const arn_model* const model = has_draft ? model_.get() : own_head.get();
    const SessionPtr session = NewSession(model, options);
    const SchedulerPtr scheduler = NewScheduler(session.get());
    const auto asked = Ask(SomeIds(20, kVocab), 50);
    ASSERT_EQ(ARN_OK, Submit(scheduler.get(), asked.get()));
    int n_steps = 0;
    while (!asked->has_ended) {
      Step(scheduler.get());
      TakeEvents(scheduler.get());
      ++n_steps;
    }
    // The prompt's run leaves the first of 50; each of the others brings five.
    EXPECT_EQ(1 + 10, n_steps) << (has_draft ? "draft" : "head");
    const arn_scheduler_info info = Info(scheduler.get());
    EXPECT_EQ(info.guesses_proposed, info.guesses_accepted);
    EXPECT_GT(Stats(session.get()).draft_ns, 0u);
    CheckAsAlone(model, options, *asked);
  }
}

// Guesses take rows that nobody else wants, and all who have some get a part of them.
TEST_F(SchedulerTest, Guesses_TakeWhatIsLeft) {
  arn_session_options options = Guessing(Options(5));
  options.kv_tokens = 0;
  const SessionPtr session = NewSession(model_.get(), options);
  constexpr uint32_t kRows = 14;
  const SchedulerPtr scheduler = NewScheduler(session.get(), kRows);
  std::vector<std::unique_ptr<Asked>> replies;
  for (int32_t i = 0; i < 4; ++i) {
    std::vector<int32_t> prompt;
    for (int32_t j = 0; j < 18; ++j) prompt.push_back(9 * i + j % 3);  // repeats itself
    replies.push_back(Ask(std::move(prompt), 60));
  }
  replies[2]->one_by_one = replies[3]->no_guesses = true;
  for (const auto& asked : replies) ASSERT_EQ(ARN_OK, Submit(scheduler.get(), asked.get()));
  const auto all_reply = [&] {
    return std::all_of(replies.begin(), replies.end(),
                       [](const auto& asked) { return !asked->tokens.empty(); });
  };
  while (!all_reply()) {
    Step(scheduler.get());
    TakeEvents(scheduler.get());
  }
  auto prompt = Ask(SomeIds(3 * (kRows - 4), kVocab), 2);
  ASSERT_EQ(ARN_OK, Submit(scheduler.get(), prompt.get()));
  for (int i = 0; i < 3; ++i) {
    const arn_step_result result = Step(scheduler.get());
    TakeEvents(scheduler.get());
    EXPECT_EQ(kRows, result.n_rows);
    EXPECT_EQ(kRows - 4, result.n_prompt_rows);
    EXPECT_EQ(0u, result.n_guess_rows);
  }
  uint64_t proposed[4] = {}, accepted = 0;
  for (uint32_t left = 1; left != 0;) {
    const arn_step_result result = Step(scheduler.get());
    EXPECT_LE(result.n_rows, kRows);
    left = result.n_running + result.n_waiting;
    uint64_t sum = 0, sum_accepted = 0;
    for (size_t i = 0; i < 4; ++i) {
      arn_request_info info = ARN_REQUEST_INFO_INIT;
      if (arn_scheduler_get_request(scheduler.get(), replies[i]->number, &info) != ARN_OK) continue;
      proposed[i] = info.guesses_proposed;
      EXPECT_LE(info.guesses_accepted, info.guesses_proposed);
      sum_accepted += info.guesses_accepted;
    }
    for (const uint64_t n : proposed) sum += n;
    accepted = std::max(accepted, sum_accepted);
    EXPECT_EQ(sum, Info(scheduler.get()).guesses_proposed);
    TakeEvents(scheduler.get());
  }
  const arn_scheduler_info info = Info(scheduler.get());
  EXPECT_GT(accepted, 10u);
  EXPECT_GE(info.guesses_accepted, accepted);
  EXPECT_GT(info.guess_steps, 0u);
  EXPECT_GE(info.guess_rows, info.guesses_proposed + info.guess_steps);
  EXPECT_GT(proposed[0], 20u);
  EXPECT_GT(proposed[1], 20u);
  EXPECT_EQ(0u, proposed[2] + proposed[3]);
  EXPECT_EQ(info.guesses_accepted, Stats(session.get()).guesses_accepted);
  for (const auto& asked : replies) CheckAsAlone(model_.get(), options, *asked);
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

// A context that is no multiple of a page: all sequences may be full at once.
TEST_F(SchedulerTest, FullContexts_RunTogether) {
  arn_session_options options = Options(3);
  options.context_tokens = 33;
  const SessionPtr session = NewSession(model_.get(), options);
  const SchedulerPtr scheduler = NewScheduler(session.get());
  std::vector<std::unique_ptr<Asked>> all;
  for (int32_t i = 0; i < 3; ++i) {
    all.push_back(Ask({i, 2, 3}, 0));
    ASSERT_EQ(ARN_OK, Submit(scheduler.get(), all.back().get()));
  }
  EXPECT_EQ(3u, Step(scheduler.get()).n_running);
  TakeEvents(scheduler.get());
  RunToEnd(scheduler.get());
  for (const auto& asked : all) {
    EXPECT_EQ(31u, asked->tokens.size());
    EXPECT_EQ(static_cast<uint32_t>(ARN_FINISH_CONTEXT), asked->finish);
    CheckAsAlone(model_.get(), options, *asked);
  }
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
  const TinyLayer scan = {.mixer = TinyMixer::kScan};
  const BundleBytes states = Bundle(DType::kF16, {scan, {}});
  const ModelPtr with_states = OpenBytes(states);
  for (const arn_model* const model : {model_.get(), with_states.get()}) {
    for (const bool guesses : {false, true}) {
      const arn_session_options options = guesses ? Guessing(Options(2)) : Options(2);
      const SessionPtr session = NewSession(model, options);
      const SchedulerPtr scheduler = NewScheduler(session.get());
      auto first = Ask(SomeIds(40, kVocab), 30), second = Ask({3, 4}, 30);
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
      CheckAsAlone(model, options, *first);
      CheckAsAlone(model, options, *second);
    }
  }
}

// A thread cancels at any time, also within a run with guesses.
TEST_F(SchedulerTest, CancelAtAnyTime_LosesNothing) {
  const TinyLayer scan = {.mixer = TinyMixer::kScan};
  const BundleBytes states = Bundle(DType::kF16, {scan, {}, scan});
  const ModelPtr model = OpenBytes(states);
  const arn_session_options options = Guessing(Options(3));
  const SessionPtr session = NewSession(model.get(), options);
  const SchedulerPtr scheduler = NewScheduler(session.get());
  std::atomic<bool> ends{false};
  std::thread canceller([&] {
    while (!ends.load()) {
      arn_session_cancel(session.get());
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  });
  uint32_t n_cancelled = 0;
  std::vector<std::unique_ptr<Asked>> all;
  for (int32_t round = 0; round < 300 && n_cancelled < 50; ++round) {
    for (int32_t i = 0; i < 3; ++i) {
      all.push_back(Ask({i, 4, 5 + round % 40, i, 4, 5 + round % 40, i, 4}, 80));
      ASSERT_EQ(ARN_OK, Submit(scheduler.get(), all.back().get()));
    }
    while (
        !std::all_of(all.begin(), all.end(), [](const auto& asked) { return asked->has_ended; })) {
      const arn_status status = arn_scheduler_step(scheduler.get(), nullptr);
      EXPECT_TRUE(status == ARN_OK || status == ARN_CANCELLED);
      n_cancelled += status == ARN_CANCELLED ? 1 : 0;
      TakeEvents(scheduler.get());
    }
  }
  ends.store(true);
  canceller.join();
  EXPECT_GT(n_cancelled, 0u);
  const size_t n = std::min<size_t>(all.size(), 30);
  for (size_t i = all.size() - n; i < all.size(); ++i) {
    CheckAsAlone(model.get(), options, *all[i]);
  }
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
  asked->one_by_one = true;
  ASSERT_EQ(ARN_OK, Submit(scheduler.get(), asked.get()));
  ASSERT_EQ(ARN_OK, Submit(scheduler.get(), other.get()));
  ASSERT_EQ(ARN_OK, arn_session_prefill(alone.get(), asked->prompt.data(), asked->prompt.size()));
  const int32_t forced[] = {17, 3, 44};
  for (size_t i = 0; i < 12; ++i) {
    Step(scheduler.get());
    arn_request_info info = ARN_REQUEST_INFO_INIT;
    if (i < 11) {
      ASSERT_EQ(ARN_OK, arn_scheduler_get_request(scheduler.get(), asked->number, &info));
      EXPECT_EQ(static_cast<uint32_t>(ARN_REQUEST_STATE_REPLY), info.state);
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

// Forced tokens are reported at once, as far as a step may, and run together.
TEST_F(SchedulerTest, ForcedTokens_RunTogether) {
  const arn_session_options options = Options(2);
  const SessionPtr session = NewSession(model_.get(), options);
  const SchedulerPtr scheduler = NewScheduler(session.get(), 7);
  auto asked = Ask({1, 2, 3}, 40), other = Ask({5}, 60);
  ASSERT_EQ(ARN_OK, Submit(scheduler.get(), asked.get()));
  ASSERT_EQ(ARN_OK, Submit(scheduler.get(), other.get()));
  Step(scheduler.get());
  TakeEvents(scheduler.get());
  const std::vector<int32_t> forced = SomeIds(20, kVocab);
  ASSERT_EQ(ARN_OK, arn_scheduler_force(scheduler.get(), asked->number, forced.data(), 20));
  Step(scheduler.get());
  TakeEvents(scheduler.get());
  EXPECT_EQ(17u, asked->tokens.size());
  for (const size_t n_other : {3u, 4u, 5u}) {
    EXPECT_EQ(n_other < 5 ? 7u : 5u, Step(scheduler.get()).n_rows);
    TakeEvents(scheduler.get());
    EXPECT_EQ(n_other, other->tokens.size());
    EXPECT_EQ(n_other < 5 ? 17u : 21u, asked->tokens.size());
  }
  EXPECT_EQ(forced, std::vector<int32_t>(asked->tokens.begin() + 1, asked->tokens.end()));
  RunToEnd(scheduler.get());
  EXPECT_EQ(40u, asked->tokens.size());
  // What follows them is what follows them in a prompt.
  auto after = Ask({1, 2, 3}, 19);
  after->prompt.insert(after->prompt.end(), asked->tokens.begin(), asked->tokens.begin() + 21);
  after->tokens.assign(asked->tokens.begin() + 21, asked->tokens.end());
  after->finish = asked->finish;
  CheckAsAlone(model_.get(), options, *after);
  CheckAsAlone(model_.get(), options, *other);
}

// A quantised page changes what later rows see: the same parts of a prompt give the same bits.
TEST_F(SchedulerTest, QuantisedPages_GiveTheTokensOfTheSameParts) {
  uint64_t n_accepted = 0, n_proposed = 0;
  for (const uint32_t kv : {ARN_KV_INT4, ARN_KV_INT2}) {
    for (const auto& [rows, guesses] : std::initializer_list<std::pair<uint32_t, bool>>{
             {3, false}, {10, false}, {24, false}, {4, true}, {10, true}, {24, true}}) {
      arn_session_options options = Options(4, kv);
      options.kv_residual = 16;
      if (guesses) options = Guessing(options);
      const SessionPtr session = NewSession(model_.get(), options);
      const SchedulerPtr scheduler = NewScheduler(session.get(), rows);
      std::vector<std::unique_ptr<Asked>> all;
      for (int32_t i = 0; i < 4; ++i) {
        std::vector<int32_t> prompt = SomeIds(static_cast<size_t>(40 + 5 * i), kVocab);
        // The last is the first again, unless one of the two could be ahead of the other: a page
        // that they share is quantised when it is old in both.
        prompt[0] = guesses ? i : i % 3;
        for (size_t j = 20; guesses && j < prompt.size(); ++j) prompt[j] = prompt[j - 7];
        if (i == 3 && !guesses) prompt = all[0]->prompt;
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
      n_accepted += Info(scheduler.get()).guesses_accepted;
      n_proposed += Info(scheduler.get()).guesses_proposed;
      EXPECT_EQ(guesses ? 0u : 40u, all[3]->n_kept);
      if (!guesses) all[3]->lengths = all[0]->lengths;
      for (const auto& asked : all) {
        CheckAsAlone(model_.get(), options, *asked, asked->lengths);
        ASSERT_FALSE(HasFailure())
            << arn_kv_type_name(kv) << ", " << rows << " rows" << (guesses ? ", with guesses" : "");
      }
    }
  }
  EXPECT_GT(n_accepted, 20u);
  EXPECT_GT(n_proposed - n_accepted, 5u);
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
    EXPECT_EQ(ARN_UNSUPPORTED,
              arn_session_plan(model_.get(), &options, error, sizeof error, &plan));
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
