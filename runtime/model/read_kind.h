// The kinds of a model's layers, from the bundle's tables.
#pragma once

#include "runtime/model/model_spec.h"

namespace arn {

// Checks every field; unknown values of enums are refused. The group is left open.
Status ReadKind(const fbs::LayerKind& kind, Span<const RopeKind> ropes, LayerKindSpec* out,
                Diag* diag);

// Finds, or adds, the group of layers with the same KV shape, or states of the same size.
Status PlaceInGroup(LayerKindSpec* kind, ModelSpec* spec, Diag* diag);

}  // namespace arn
