// Checks the session options for the device: CPU affinity, rate limit and thermal throttling.
#pragma once

#include "runtime/memory/session_plan.h"

namespace arn {

// Sets the CPUs of the plan's threads, and the default thread count.
Status PlaceThreads(const Backend& backend, SessionPlan* plan, Diag* diag);

// Checks the limits and sets the default duty.
Status CheckPace(PaceOptions* pace, Diag* diag);

}  // namespace arn
