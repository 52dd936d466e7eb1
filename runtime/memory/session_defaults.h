// Fills in the options of a session that the caller leaves open, and refuses wrong ones.
#pragma once

#include <cstdint>

#include "platform/base/diag.h"
#include "platform/base/status.h"
#include "runtime/memory/session_plan.h"

namespace arn {

// Replaces each 0 of `options` by its default for the model and backend, limits what is only
// useful up to a limit, and checks all that needs no plan. default_chunk: of prefill_chunk.
// kBadArgument or kUnsupported names the option and its value.
Status ApplyDefaults(const Model& model, const Backend& backend, uint32_t default_chunk,
                     SessionOptions* options, Diag* diag);

// True if pages of the cache are quantised once they are full.
bool QuantisesPages(const SessionOptions& options);

// True if `one`, a single bit, is among `all`.
bool Has(Speculation all, Speculation one);

}  // namespace arn
