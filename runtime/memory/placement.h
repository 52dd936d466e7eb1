// The options of a session that are about the device: which CPUs it uses, and how it holds back.
#pragma once

#include "runtime/memory/session_plan.h"

namespace arn {

// What the plan's threads are to stay on, and how many there are when nobody says.
Status PlaceThreads(const Backend& backend, SessionPlan* plan, Diag* diag);

// Checks the numbers and fills in the duty.
Status CheckPace(PaceOptions* pace, Diag* diag);

}  // namespace arn
