// Converts option structs of the C API.
#pragma once

#include "runtime/api/handles.h"

namespace arn::api {

// `options` may be null: defaults.
Status PlanFromC(const Model& model, const arn_session_options* options, SessionPlan* out,
                 Diag* diag);

constexpr size_t kMaxStops = 16;
// `stops`: [kMaxStops], must outlive *out, which points into it. `options` may be null.
Status ReadGenerateOptions(const arn_generate_options* options, StringView* stops,
                           GenerateOptions* out, Diag* diag);

}  // namespace arn::api
