#include "platform/base/arith.h"
#include "runtime/memory/session_plan.h"
#include "runtime/scheduler/event_ring.h"
#include "runtime/scheduler/request.h"
#include "runtime/scheduler/step_policy.h"
#include "runtime/speculate/shared_guess_policy.h"

namespace arn {
namespace {

// Tokens of a reply in one step, if they are certain or were guessed.
constexpr uint32_t kStepTokens = 16;

Status CheckSchedulerOptions(const Model& model, const SessionOptions& options, Diag* diag) {
  if (options.max_requests > kMaxRequests) {
    return diag->Fail(Status::kBadArgument, "max_requests is %u, expected at most %u",
                      options.max_requests, kMaxRequests);
  }
  const char* beside = nullptr;
  if (model.spec.encoder.exists()) beside = "a model with an encoder";
  if (options.no_cache) beside = "no_cache";
  if (options.overflow != Overflow::kStop) beside = "an overflow policy other than stop";
  if (beside == nullptr) return Status::kOk;
  return diag->Fail(Status::kUnsupported, "max_requests is %u: a scheduler does not work with %s",
                    options.max_requests, beside);
}

}  // namespace

Status PlanScheduler(const Model& model, const SessionObjects& objects, SessionPlan* out,
                     Layout* layout, Diag* diag) {
  const uint64_t n = out->options.max_requests, n_sequences = out->options.max_sequences;
  ARN_TRY(CheckSchedulerOptions(model, out->options, diag));
  SchedulerPlan& plan = out->scheduler;
  ARN_ASSIGN(plan.requests, layout->AddArray(Region::kIo, n, sizeof(RequestRecord)));
  ARN_ASSIGN(plan.order, layout->AddArray(Region::kIo, n, sizeof(uint32_t)));
  plan.step_tokens = Max(kStepTokens, 1 + out->options.max_guesses);
  const uint64_t n_tokens = n_sequences * plan.step_tokens;
  const uint64_t n_events = n * EventRing::kPerRequest + n_tokens;
  if (n_events > UINT32_MAX) return Status::kOutOfMemory;
  plan.n_events = static_cast<uint32_t>(n_events);
  ARN_ASSIGN(plan.events, layout->AddArray(Region::kIo, n_events, sizeof(RequestEvent)));
  ARN_ASSIGN(plan.wishes, layout->AddArray(Region::kIo, n_sequences, sizeof(RowWish)));
  ARN_ASSIGN(plan.leases, layout->AddArray(Region::kIo, n_sequences, objects.lease_bytes));
  ARN_ASSIGN(plan.replies, layout->AddArray(Region::kIo, n_sequences, objects.reply_text_bytes));
  plan.chosen_stride = plan.step_tokens + out->options.max_guesses;
  ARN_ASSIGN(plan.chosen,
             layout->AddArray(Region::kIo, n_sequences * plan.chosen_stride, sizeof(int32_t)));
  if (out->options.max_guesses != 0) {
    ARN_ASSIGN(plan.shares,
               layout->AddArray(Region::kIo, n_sequences, sizeof(SharedGuessPolicy::Share)));
  }
  plan.text_bytes = out->text.bytes;
  ARN_ASSIGN(plan.text, layout->AddArray(Region::kIo, n_sequences, plan.text_bytes));
  // Takes what was held back, a piece of each token, and the message of a failure.
  const uint64_t piece = model.tokenizer == nullptr ? 0 : model.tokenizer->max_piece_bytes();
  ARN_ASSIGN(plan.shown, layout->AddArray(Region::kIo, n_sequences,
                                          2 * plan.text_bytes + plan.step_tokens * piece));
  return Status::kOk;
}

}  // namespace arn
