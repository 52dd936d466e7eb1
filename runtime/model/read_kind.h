// Reads the layer types of a model from the bundle.
#pragma once

#include "runtime/model/model_spec.h"

namespace arn {

// Checks every field and refuses unknown enum values. Leaves the group unset.
Status ReadKind(const fbs::LayerKind& kind, Span<const RopeKind> ropes, LayerKindSpec* out,
                Diag* diag);

// Finds or adds the group of layers with the same KV shape, or the same state size.
Status PlaceInGroup(LayerKindSpec* kind, ModelSpec* spec, Diag* diag);

}  // namespace arn
