// Serves generations that feed an arn_reply, besides the calls of the C API.
#pragma once

#include <arenite/reply.h>

#include <cstdint>

#include "platform/base/diag.h"
#include "platform/base/span.h"
#include "platform/base/status.h"

namespace arn::api {

// Returns the tokens that end the reasoning, once it has taken `budget` tokens; else none.
Span<const int32_t> CloseReasoning(arn_reply* reply, uint32_t budget);
// Fails if the reply has no such tokens.
Status CheckBudget(const arn_reply* reply, Diag* diag);

}  // namespace arn::api
