// Converts the C API's session options to a plan.
#pragma once

#include "runtime/api/handles.h"

namespace arn::api {

// `options` may be null: defaults.
Status PlanFromC(const Model& model, const arn_session_options* options, SessionPlan* out,
                 Diag* diag);

}  // namespace arn::api
