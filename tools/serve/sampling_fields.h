// The sampling options of a request.
#pragma once

#include "tools/serve/json_fields.h"
#include "tools/serve/work.h"

namespace arn::serve {

inline constexpr uint32_t kMaxBiases = 300;

// Reads OpenAI's options and all numbers of arn_sampling by their names. What is not given is the
// checkpoint's. Throws ApiError.
void ReadSampling(const arn_model* model, uint32_t vocab, Fields* fields, Settings* settings);

// Reserves in a session what requests may ask for.
void ReserveForRequests(const arn_model* model, arn_session_options* options);

}  // namespace arn::serve
