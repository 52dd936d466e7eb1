// The scheduler allocates nothing once its session exists, and keeps to the planned block.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/harness/bundles.h"
#include "tests/memory/allocation_trap.h"
#include "tests/memory/guarded_block.h"
#include "tests/support/tiny_checkpoint.h"

namespace arn::test {
namespace {

constexpr uint32_t kRequests = 9;

TEST(NoAllocation_Scheduler, SubmitStepForkCancelAndConstrain_AllocateNothing) {
  ARN_NEEDS_CONVERTER();
  const TempFolder folder;
  const std::string bundle = (folder / "fable.arn").string();
  ASSERT_TRUE(Convert(SourcePath("models/fable/fable-2m"), bundle, {"--weights", "int8"}));
  const ModelPtr model = OpenModel(bundle);
  for (const uint32_t kv : {ARN_KV_INT8, ARN_KV_INT4}) {
    arn_session_options options = ARN_SESSION_OPTIONS_INIT;
    options.kv_type = kv;
    options.context_tokens = 160;
    options.max_sequences = 3;
    options.kv_tokens = 320;  // less than all of them
    options.prefill_chunk = 32;
    options.constraint_bytes = 1 << 20;
    options.logits_processors = 1;
    options.max_requests = kRequests;
    options.speculation = ARN_SPECULATE_NGRAM;
    options.guess_always = 1;
    arn_memory_plan plan = ARN_MEMORY_PLAN_INIT;
    ASSERT_EQ(ARN_OK, arn_session_plan(model.get(), &options, nullptr, 0, &plan));
    ASSERT_GT(plan.scheduler_bytes, 0u);
    GuardedBlock block(plan.alignment, plan.total_bytes);
    {
      const SessionPtr session = NewSession(model.get(), options, block.data(), plan.total_bytes);
      ASSERT_NE(nullptr, session);
      arn_session_stats_data stats = ARN_SESSION_STATS_INIT;
      ASSERT_EQ(ARN_OK, arn_session_stats(session.get(), &stats));
      EXPECT_EQ(plan.io_bytes, stats.io_used_bytes);
      std::vector<int32_t> prompts[3];
      prompts[0] = SomeIds(70, 1000);
      prompts[1] = SomeIds(40, 500);
      prompts[2] = {1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2};
      arn_constraint_options constraint = ARN_CONSTRAINT_OPTIONS_INIT;
      constraint.kind = ARN_CONSTRAINT_REGEX;
      constraint.text = "[a-z ]{5,30}";
      constraint.text_bytes = std::strlen(constraint.text);
      arn_sampling sampling = ARN_SAMPLING_INIT;
      sampling.temperature = 1.0f;
      sampling.repetition_penalty = 1.2f;
      arn_stop_string stop = {"the", 3};
      uint64_t numbers[kRequests] = {};
      uint32_t n_tokens = 0, n_ended = 0, n_failed = 0;
      arn_status worst = ARN_OK, full = ARN_OK;
      bool has_cancelled = false;
      const auto check = [&](arn_status status) { worst = status == ARN_OK ? worst : status; };

      g_calls = 0;
      g_trap = true;
      arn_scheduler* scheduler = nullptr;
      check(arn_scheduler_create(session.get(), nullptr, nullptr, 0, &scheduler));
      for (uint32_t i = 0; i < kRequests; ++i) {
        arn_request request = ARN_REQUEST_INIT;
        request.ids = prompts[i % 3].data();
        request.n_ids = prompts[i % 3].size();
        request.max_tokens = 5 + 10 * (i % 4);
        if (i % 4 == 1 || i == 7) request.sampling = &sampling;
        if (i % 4 == 2) request.constraint = &constraint;
        if (i == 5) request.stops = &stop;
        if (i == 5) request.n_stops = 1;
        check(arn_scheduler_submit(scheduler, &request, &numbers[i]));
        if (i == kRequests - 1) full = arn_scheduler_submit(scheduler, &request, &numbers[0]);
      }
      arn_step_result result = ARN_STEP_RESULT_INIT;
      do {
        check(arn_scheduler_step(scheduler, &result));
        if (n_tokens >= 20 && !has_cancelled) {
          has_cancelled = true;
          check(arn_scheduler_cancel(scheduler, numbers[kRequests - 1]));
        }
        arn_scheduler_event event = ARN_SCHEDULER_EVENT_INIT;
        while (arn_scheduler_next_event(scheduler, &event) == ARN_OK) {
          n_tokens += event.kind == ARN_REQUEST_EVENT_TOKEN ? 1 : 0;
          n_ended += event.kind == ARN_REQUEST_EVENT_ENDED ? 1 : 0;
          n_failed += event.status == ARN_OK ? 0 : 1;
        }
      } while (n_ended < kRequests && worst == ARN_OK);
      arn_scheduler_info info = ARN_SCHEDULER_INFO_INIT;
      check(arn_scheduler_get_info(scheduler, &info));
      arn_scheduler_destroy(scheduler);
      g_trap = false;

      EXPECT_EQ(ARN_OK, worst) << arn_session_last_error(session.get());
      EXPECT_EQ(ARN_BAD_STATE, full);
      EXPECT_EQ(0u, g_calls.load()) << arn_kv_type_name(kv);
      EXPECT_EQ(0u, n_failed);
      EXPECT_GT(n_tokens, 60u);
      EXPECT_GT(info.guesses_proposed, 0u);
    }
    block.ExpectGuardUntouched();
  }
}

}  // namespace
}  // namespace arn::test
