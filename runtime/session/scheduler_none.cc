// Replaces scheduler*.cc and sequence_leases.cc in libraries without the scheduler
// (ARENITE_SCHEDULER): the plan refuses max_requests, so that none is ever opened.
#include "runtime/scheduler/availability.h"
#include "runtime/session/scheduler.h"

namespace arn {

Status Scheduler::Open(const SchedulerOptions&) {
  return core_.diag.Fail(Status::kUnsupported, "%s", kNoScheduler);
}

void Scheduler::Close() {}

// Unreachable: there is no request.
Status Scheduler::Constrain(uint64_t, TokenConstraint*) { return Status::kUnsupported; }

}  // namespace arn
