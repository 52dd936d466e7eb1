// Reads what residual streams (AltUp) and low-rank residuals (LAuReL) add to a model. Libraries
// without ARENITE_STREAMS refuse it.
#pragma once

#include "runtime/bundle/bundle.h"
#include "runtime/model/model_spec.h"
#include "runtime/model/tensor_shapes.h"

namespace arn {

// Reads the model's streams. REQUIRES: out->weights and out->hidden are read.
Status ReadStreams(const fbs::Model& model, ModelSpec* out, Diag* diag);

// Reads a layer's tensors of the streams and of its low-rank residual.
Status ReadLayerStreams(const fbs::Layer& layer, uint32_t index, const LayerKind& kind,
                        const ModelSpec& spec, Shapes* shapes, LayerSpec* out, Diag* diag);

}  // namespace arn
