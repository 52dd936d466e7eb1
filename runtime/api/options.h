// Converts option structs of the C API.
#pragma once

#include "runtime/api/handles.h"

namespace arn::api {

// `options` may be null: defaults.
Status PlanFromC(const Model& model, const arn_session_options* options, SessionPlan* out,
                 Diag* diag);

// Lists of *out are the caller's. `sampling` may be null: greedy.
Status ReadSampling(const arn_sampling* sampling, SamplingOptions* out, Diag* diag);
// Texts of *out are the caller's. kUnsupported in libraries without constraints.
Status ReadConstraint(const Model& model, const arn_constraint_options& options,
                      TokenConstraintOptions* out, uint32_t* first, Diag* diag);
// Fails unless a constraint with this `first` begins with a reply.
Status CheckBeginsReply(uint32_t first, Diag* diag);

constexpr size_t kMaxStops = 16;
// Checks a list of stop strings, which *out points to.
Status ReadStops(const arn_stop_string* stops, size_t n_stops, Span<const StringView>* out,
                 Diag* diag);
// Lists of *out are the caller's. `options` may be null. *given: the options with defaults; its
// reply and reasoning_budget are the caller's to serve or refuse.
Status ReadGenerateOptions(const arn_generate_options* options, GenerateOptions* out,
                           arn_generate_options* given, Diag* diag);

}  // namespace arn::api
