// Reads the tensors of a model's layers and checks their shapes.
#pragma once

#include "runtime/model/model_spec.h"
#include "runtime/model/tensor_shapes.h"

namespace arn {

// Reads a decoder layer and counts it in its group. REQUIRES: spec->layers holds the earlier
// layers.
Status ReadLayer(const fbs::Layer& layer, uint32_t index, ModelSpec* spec, LayerSpec* out,
                 Diag* diag);

// Reads a layer of an encoder or vision tower: attention without a KV cache, and a feed-forward
// block.
Status ReadEncoderLayer(const fbs::Layer& layer, uint32_t index, uint32_t hidden,
                        const ModelSpec& spec, Span<const LayerKindSpec> kinds, LayerSpec* out,
                        Diag* diag);

// Reads an optional norm, and its bias for NormKind::kLayer.
Status ReadNorm(const char* place, uint32_t layer, uint32_t weight, uint32_t bias, NormKind kind,
                uint64_t size, Shapes* shapes, WeightId* out_weight, WeightId* out_bias);

}  // namespace arn
