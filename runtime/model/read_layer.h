// The tensors of a model's layers, held against the shapes that their kinds ask for.
#pragma once

#include "runtime/model/model_spec.h"
#include "runtime/model/tensor_shapes.h"

namespace arn {

// A layer of the decoder; counts it in its group. spec->layers holds the earlier ones.
Status ReadLayer(const fbs::Layer& layer, uint32_t index, ModelSpec* spec, LayerSpec* out,
                 Diag* diag);

// A layer of the source: attention without keys and values that are kept, and a feed-forward part.
Status ReadSourceLayer(const fbs::Layer& layer, uint32_t index, const ModelSpec& spec,
                       Span<const LayerKindSpec> kinds, LayerSpec* out, Diag* diag);

// A norm that may be absent, and its bias when it is one of NormKind::kLayer.
Status ReadNorm(const char* place, uint32_t layer, uint32_t weight, uint32_t bias, NormKind kind,
                uint64_t size, Shapes* shapes, WeightId* out_weight, WeightId* out_bias);

}  // namespace arn
