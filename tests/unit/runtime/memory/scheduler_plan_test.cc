// Memory of a scheduler, and what it does not work with.
#include <gtest/gtest.h>

#include "runtime/scheduler/event_ring.h"
#include "runtime/scheduler/request.h"
#include "runtime/scheduler/step_policy.h"
#include "runtime/speculate/shared_guess_policy.h"
#include "tests/unit/runtime/memory/planned_session.h"

namespace arn::test {
namespace {

class SchedulerPlanTest : public PlannedSession {
 protected:
  SchedulerPlanTest() { options_.n_threads = 1; }
};

TEST_F(SchedulerPlanTest, HasItsMemory) {
  options_.max_sequences = 3;
  options_.max_requests = 7;
  ExpectPlanned();
  const SchedulerPlan& plan = plan_->scheduler;
  EXPECT_EQ(16u, plan.step_tokens);
  EXPECT_EQ(16u, plan.chosen_stride);
  EXPECT_EQ(7 * EventRing::kPerRequest + 3 * 16, plan.n_events);
  EXPECT_EQ(7 * sizeof(RequestRecord), plan.requests.bytes);
  EXPECT_EQ(7 * sizeof(uint32_t), plan.order.bytes);
  EXPECT_EQ(plan.n_events * sizeof(RequestEvent), plan.events.bytes);
  EXPECT_EQ(3 * sizeof(RowWish), plan.wishes.bytes);
  EXPECT_EQ(3 * 60u, plan.leases.bytes);
  EXPECT_EQ(3 * 70u, plan.replies.bytes);
  EXPECT_EQ(3 * 16 * sizeof(int32_t), plan.chosen.bytes);
  EXPECT_EQ(0u, plan.shares.bytes);
  EXPECT_EQ(plan_->text.bytes, plan.text_bytes);
  EXPECT_EQ(3 * plan.text_bytes, plan.text.bytes);
  EXPECT_EQ(3 * 2 * plan.text_bytes, plan.shown.bytes);
  options_.speculation = Speculation::kNgram;
  options_.max_guesses = 20;
  ExpectPlanned();
  EXPECT_EQ(21u, plan_->scheduler.step_tokens);
  EXPECT_EQ(41u, plan_->scheduler.chosen_stride);
  EXPECT_EQ(3 * sizeof(SharedGuessPolicy::Share), plan_->scheduler.shares.bytes);
}

TEST_F(SchedulerPlanTest, NamesWhatItDoesNotWorkWith) {
  options_.max_requests = 65536;
  ExpectPlanned();
  options_.max_requests = 65537;
  ExpectRefused(Status::kBadArgument, "max_requests is 65537, expected at most 65536");
  options_.max_requests = 2;
  options_.no_cache = true;
  ExpectRefused(Status::kUnsupported, "max_requests is 2: a scheduler does not work with no_cache");
  options_.no_cache = false;
  for (const Overflow overflow : {Overflow::kError, Overflow::kShift}) {
    options_.overflow = overflow;
    ExpectRefused(Status::kUnsupported,
                  "max_requests is 2: a scheduler does not work with an overflow policy other than "
                  "stop");
  }
  options_.overflow = Overflow::kStop;
  model().spec.encoder.max_rows = 40;
  ExpectRefused(Status::kUnsupported,
                "max_requests is 2: a scheduler does not work with a model with an encoder");
}

}  // namespace
}  // namespace arn::test
