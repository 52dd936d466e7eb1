// Requests to a scheduler over a tiny model, and what they get alone.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "tests/support/session_support.h"

namespace arn::test {

inline constexpr uint32_t kVocab = 61;
inline constexpr uint32_t kContext = 96;

struct DestroyScheduler {
  void operator()(arn_scheduler* scheduler) const { arn_scheduler_destroy(scheduler); }
};
using SchedulerPtr = std::unique_ptr<arn_scheduler, DestroyScheduler>;

inline SchedulerPtr NewScheduler(arn_session* session, uint32_t step_rows = 0) {
  arn_scheduler_options options = ARN_SCHEDULER_OPTIONS_INIT;
  options.step_rows = step_rows;
  arn_scheduler* scheduler = nullptr;
  char error[512] = "";
  EXPECT_EQ(ARN_OK, arn_scheduler_create(session, &options, error, sizeof error, &scheduler))
      << error;
  return SchedulerPtr(scheduler);
}

inline arn_session_options Options(uint32_t sequences, uint32_t kv = ARN_KV_F16) {
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

// With guesses in the rows that are left over.
inline arn_session_options Guessing(arn_session_options options) {
  options.speculation = ARN_SPECULATE_NGRAM;
  options.guess_always = 1;
  return options;
}

inline arn_scheduler_info Info(const arn_scheduler* scheduler) {
  arn_scheduler_info info = ARN_SCHEDULER_INFO_INIT;
  EXPECT_EQ(ARN_OK, arn_scheduler_get_info(scheduler, &info));
  return info;
}

inline arn_session_stats_data Stats(const arn_session* session) {
  arn_session_stats_data stats = ARN_SESSION_STATS_INIT;
  EXPECT_EQ(ARN_OK, arn_session_stats(session, &stats));
  return stats;
}

// A request, what came of it, and how it was run.
struct Asked {
  std::vector<int32_t> prompt;
  arn_sampling sampling = ARN_SAMPLING_INIT;
  uint32_t max_tokens = 0;
  std::vector<uint32_t> adapters;
  std::vector<float> scales;
  bool one_by_one = false, no_guesses = false;

  uint64_t number = 0;
  bool has_started = false, has_ended = false;
  uint32_t finish = 0;
  arn_status status = ARN_OK;
  uint32_t n_kept = 0;
  std::vector<int32_t> tokens;
  std::vector<uint32_t> lengths;  // of the prompt's part behind each step
};

inline arn_status Submit(arn_scheduler* scheduler, Asked* asked) {
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
  request.one_by_one = asked->one_by_one ? 1 : 0;
  request.no_guesses = asked->no_guesses ? 1 : 0;
  return arn_scheduler_submit(scheduler, &request, &asked->number);
}

inline void TakeEvents(arn_scheduler* scheduler) {
  arn_scheduler_event event = ARN_SCHEDULER_EVENT_INIT;
  while (arn_scheduler_next_event(scheduler, &event) == ARN_OK) {
    auto* const asked = static_cast<Asked*>(event.user);
    ASSERT_EQ(asked->number, event.request);
    ASSERT_FALSE(asked->has_ended);
    EXPECT_EQ(asked->prompt.size(), event.n_prompt_tokens);
    if (event.kind == ARN_REQUEST_EVENT_STARTED) {
      EXPECT_FALSE(asked->has_started);
      asked->has_started = true;
      asked->n_kept = event.n_kept;
      asked->lengths = {event.n_kept};
    } else if (event.kind == ARN_REQUEST_EVENT_TOKEN) {
      EXPECT_TRUE(asked->has_started);
      asked->tokens.push_back(event.id);
      EXPECT_EQ(asked->tokens.size(), event.n_tokens);
    } else {
      ASSERT_EQ(static_cast<uint32_t>(ARN_REQUEST_EVENT_ENDED), event.kind);
      asked->has_ended = true;
      asked->finish = event.finish;
      asked->status = event.status;
    }
  }
}

inline arn_step_result Step(arn_scheduler* scheduler) {
  arn_step_result result = ARN_STEP_RESULT_INIT;
  EXPECT_EQ(ARN_OK, arn_scheduler_step(scheduler, &result)) << arn_scheduler_last_error(scheduler);
  return result;
}

inline void RunToEnd(arn_scheduler* scheduler) {
  for (int step = 0; step < 5000; ++step) {
    const arn_step_result result = Step(scheduler);
    TakeEvents(scheduler);
    if (result.n_running + result.n_waiting == 0) return;
  }
  FAIL() << "it does not end";
}

// What the request gets alone: in parts of these lengths, or at once.
inline std::vector<int32_t> Alone(const arn_model* model, arn_session_options options,
                                  const Asked& asked, uint32_t* finish,
                                  const std::vector<uint32_t>& lengths = {}) {
  options.max_sequences = 1;
  options.kv_tokens = 0;
  options.max_requests = 0;
  options.speculation = ARN_SPECULATE_NONE;
  options.draft = nullptr;
  options.max_guesses = options.guess_always = 0;
  const SessionPtr session = NewSession(model, options);
  EXPECT_EQ(ARN_OK, arn_session_set_adapters(session.get(), asked.adapters.data(),
                                             asked.scales.data(), asked.adapters.size()));
  size_t done = 0;
  for (const uint32_t length : lengths) {
    if (length == done) continue;
    EXPECT_EQ(ARN_OK,
              arn_session_prefill(session.get(), asked.prompt.data() + done, length - done));
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

inline void CheckAsAlone(const arn_model* model, const arn_session_options& options,
                         const Asked& asked, const std::vector<uint32_t>& lengths = {}) {
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

inline BundleBytes Bundle(DType weights, const std::vector<TinyLayer>& layers,
                          TinyMtp mtp = TinyMtp::kNone, bool is_assistant = false) {
  TinyBundle bundle;
  bundle.mtp = mtp;
  bundle.is_assistant = is_assistant;
  bundle.vocab = kVocab;
  bundle.weights = weights;
  bundle.layer_kinds = layers;
  return MakeTinyBundle(bundle);
}

}  // namespace arn::test
