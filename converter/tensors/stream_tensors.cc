// Residual streams (AltUp) and low-rank residuals (LAuReL).
#include <utility>

#include "converter/tensors/planner.h"

namespace arn::convert {

void Planner::AddStreams() {
  const uint32_t hidden = spec_.hidden;
  const auto add = [&](const char* name, const char* pattern) {
    uint32_t first = kNoTensor;
    for (uint32_t i = 0; i + 1 < spec_.streams.n; ++i) {
      const uint32_t index =
          AddMatrix(std::string(name) + "." + std::to_string(i + 1), formats_.weights, true,
                    {Part(LayerName(pattern, i), hidden, hidden, false)}, hidden);
      if (i == 0) first = index;
    }
    return first;
  };
  plan_.stream_in = add("stream_in", spec_.names->stream_in);
  plan_.stream_out = add("stream_out", spec_.names->stream_out);
}

// Keeps what mixes the streams in f32: it is small, and every stream goes through it.
void Planner::AddLayerStreams(const LayerScope& scope, const LayerKindSpec& kind,
                              LayerTensors* layer) {
  const TensorNames& names = *scope.names;
  const uint32_t hidden = spec_.hidden, n = spec_.streams.n;
  const auto add = [&](const char* name, DType dtype, const char* pattern, uint32_t rows,
                       uint32_t cols) {
    return AddMatrix(scope.Own(name), dtype, true, {Part(scope.Stored(pattern), rows, cols, false)},
                     cols);
  };
  const auto add_vector = [&](const char* name, const std::string& source) {
    return AddVector(scope.Own(name), source, hidden, 0.0f);
  };
  if (const uint32_t rank = kind.laurel_rank; rank != 0) {
    layer->laurel_low = add("laurel_low", formats_.weights, names.laurel_low, rank, hidden);
    layer->laurel_out = add("laurel_out", formats_.weights, names.laurel_out, hidden, rank);
    layer->laurel_norm = add_vector("laurel_norm", WeightName(scope.Stored(names.laurel_norm)));
  }
  if (n == 0) return;
  layer->stream_router_norm =
      add_vector("stream_router_norm", WeightName(scope.Stored(names.stream_router_norm)));
  // Folds in the scale of the router's input (Gemma3nTextAltUp.router_input_scale).
  plan_.tensors[layer->stream_router_norm].factor = 1.0f / static_cast<float>(hidden);
  layer->stream_router = add("stream_router", DType::kF32, names.stream_router, n, hidden);
  layer->stream_predict = add("stream_predict", DType::kF32, names.stream_predict, n * n, n);
  layer->stream_correct = add("stream_correct", DType::kF32, names.stream_correct, n, n);
  const std::string scale = scope.Stored(names.stream_scale);
  if (spec_.streams.has_scale) {
    layer->stream_scale = add_vector("stream_scale", scale);
  } else {
    sources_.Ignore(scale);
  }
}

}  // namespace arn::convert
