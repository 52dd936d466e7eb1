// Reads one RoPE of a bundle's index.
#pragma once

#include "platform/base/diag.h"
#include "runtime/bundle/bundle.h"
#include "runtime/model/model_spec.h"

namespace arn {

// Checks sizes and numbers. The frequencies point into the bundle. Leaves the long frequencies of
// *out_variants unchanged if the RoPE does not depend on the session's context.
Status ReadRope(const fbs::RopeKind& rope, RopeKind* out, RopeVariants* out_variants, Diag* diag);

}  // namespace arn
