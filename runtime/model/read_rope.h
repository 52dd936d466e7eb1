// One rope of a bundle's index.
#pragma once

#include "platform/base/diag.h"
#include "runtime/bundle/bundle.h"
#include "runtime/model/model_spec.h"

namespace arn {

// Checks sizes and numbers. The frequencies point into the bundle. *out_long stays as it is when
// the rope is the same in every session.
Status ReadRope(const fbs::RopeKind& rope, RopeKind* out, LongRope* out_long, Diag* diag);

}  // namespace arn
