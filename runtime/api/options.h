// Converts option structs of the C API.
#pragma once

#include "runtime/api/handles.h"

namespace arn::api {

// `options` may be null: defaults.
Status PlanFromC(const Model& model, const arn_session_options* options, SessionPlan* out,
                 Diag* diag);

constexpr size_t kMaxStops = 16;
// `stops`: [kMaxStops], must outlive *out, which points into it. `options` may be null. *given:
// the options with defaults; its reply and reasoning_budget are the caller's to serve or refuse.
Status ReadGenerateOptions(const arn_generate_options* options, StringView* stops,
                           GenerateOptions* out, arn_generate_options* given, Diag* diag);

}  // namespace arn::api
