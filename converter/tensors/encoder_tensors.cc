// Tensors of the encoder and of cross-attention.
#include <algorithm>
#include <cmath>

#include "converter/base/error.h"
#include "converter/tensors/planner.h"

namespace arn::convert {
namespace {

// _relative_position_bucket of transformers' modeling_t5.py, in f32 as there. `distance`: from the
// query back to the key; negative for keys after the query, only if both_ways.
uint32_t BucketOf(int64_t distance, const RelativePositionBuckets& spec, bool both_ways) {
  uint32_t n = spec.n_buckets, first = 0;
  int64_t d = distance;
  if (both_ways) {
    n /= 2;
    if (d < 0) first = n;
    d = std::abs(d);
  }
  const uint32_t exact = n / 2;
  if (d < int64_t{exact}) return first + static_cast<uint32_t>(d);
  const double span = std::log(static_cast<double>(spec.max_distance) / exact);
  const float wide = std::log(static_cast<float>(d) / static_cast<float>(exact)) /
                     static_cast<float>(span) * static_cast<float>(n - exact);
  return first + std::min(exact + static_cast<uint32_t>(wide), n - 1);
}

}  // namespace

uint32_t Planner::AddRelativePositionBias(const std::string& name, const std::string& base,
                                          uint32_t n_heads, bool both_ways) {
  const RelativePositionBuckets& buckets = spec_.relative_position_buckets;
  SourcePart part;
  part.weight = sources_.Take(WeightName(base), {buckets.n_buckets, n_heads});
  part.rows = 1;
  part.block_rows = 1;
  std::vector<SourcePart> parts;
  const int64_t last = buckets.max_distance;
  for (int64_t d = both_ways ? -last : 0; d <= last; ++d) {
    const uint32_t bucket = BucketOf(d, buckets, both_ways);
    if (!parts.empty() && parts.back().first_row == bucket) {
      ++parts.back().rows;  // block_stride is 0: repeats the same row
      continue;
    }
    part.first_row = bucket;
    parts.push_back(part);
  }
  return AddMatrix(name, DType::kF32, false, std::move(parts), n_heads);
}

void Planner::AddConvolutions(const EncoderSpec& encoder) {
  uint32_t inputs = encoder.feature_width;
  for (const ConvolutionSpec& convolution : encoder.convolutions) {
    const std::string own = Format("encoder.conv%zu", plan_.convolutions.size() + 1);
    SourcePart part;
    part.weight = sources_.Take(WeightName(convolution.name),
                                {convolution.channels, inputs, convolution.taps});
    if (convolution.has_bias) {
      part.bias = sources_.Take(std::string(convolution.name) + ".bias", {convolution.channels});
    }
    part.rows = convolution.channels;
    part.taps = convolution.taps;
    ConvolutionTensors out;
    out.weight = AddMatrix(own, convolution.is_exact ? DType::kF32 : formats_.weights, true, {part},
                           convolution.taps * inputs);
    inputs = convolution.channels;
    if (const char* norm = convolution.norm) {
      out.norm = AddVector(own + ".norm", WeightName(norm), inputs, 0.0f);
      out.norm_bias = AddVector(own + ".norm_bias", std::string(norm) + ".bias", inputs, 0.0f);
    }
    plan_.convolutions.push_back(out);
  }
}

// Adds the encoder's own table, unless it has the values and the factor of the decoder's.
void Planner::AddEncoderEmbedding(const Checkpoint::Entry* embedding) {
  const EncoderSpec& encoder = spec_.encoder;
  const std::string name = WeightName(encoder.names->embedding);
  if (name == WeightName(spec_.names->embedding)) return;
  SourcePart own;
  own.weight = sources_.Take(name, {spec_.vocab, hidden_});
  own.rows = spec_.vocab;
  if (own.weight == nullptr || embedding == nullptr) return;
  if (encoder.embedding_factor == spec_.embedding_factor && SameValues(*own.weight, *embedding)) {
    return;
  }
  plan_.encoder_embedding =
      AddMatrix("encoder.embedding", formats_.embedding, packs_tables(), {own}, hidden_);
}

void Planner::AddEncoder(const Checkpoint::Entry* embedding) {
  const EncoderSpec& encoder = spec_.encoder;
  if (encoder.max_rows == 0) return;
  const TensorNames& names = *encoder.names;
  hidden_ = encoder.hidden;
  AddEncoderEmbedding(embedding);
  AddConvolutions(encoder);
  if (names.positions != nullptr) {
    SourcePart part;
    part.weight = sources_.Take(WeightName(names.positions), {encoder.max_rows, hidden_});
    part.rows = encoder.max_rows;
    plan_.encoder_positions = AddMatrix("encoder.positions", DType::kF32, false, {part}, hidden_);
  }
  uint32_t relative_position_bias = kNoTensor;
  const char* bias = names.relative_position_bias;
  const bool has_each = bias != nullptr && IsOfEachLayer(bias);
  if (bias != nullptr && !has_each) {
    relative_position_bias = AddRelativePositionBias("encoder.relative_position_bias", bias,
                                                     encoder.kinds[0].n_heads, true);
  }
  for (uint32_t i = 0; i < encoder.layer_kinds.size(); ++i) {
    const LayerKindSpec& kind = encoder.kinds[encoder.layer_kinds[i]];
    const LayerScope scope = {i, &names, "encoder."};
    LayerTensors layer;
    AddAttention(scope, kind, &layer);
    AddFeedForward(scope, kind, &layer);
    if (has_each) {
      relative_position_bias = AddRelativePositionBias(scope.Own("relative_position_bias"),
                                                       scope.Stored(bias), kind.n_heads, true);
    }
    layer.relative_position_bias = relative_position_bias;
    plan_.encoder_layers.push_back(layer);
  }
  AddNorm("encoder.final_norm", names.final_norm, spec_.final_norm_kind, hidden_,
          &plan_.encoder_final_norm, &plan_.encoder_final_norm_bias);
  hidden_ = spec_.hidden;
}

void Planner::AddCross(uint32_t i, const LayerKindSpec& kind, LayerTensors* layer) {
  const TensorNames& names = *spec_.names;
  const uint32_t hidden = spec_.hidden, q_rows = kind.n_heads * kind.head_dim;
  const uint32_t kv_rows = kind.n_kv_heads * kind.head_dim;
  const bool bias = kind.has_qkv_bias;
  AddNorm(OwnName(i, "cross_norm"), LayerName(names.cross_norm, i), kind.norm, hidden,
          &layer->cross_norm, &layer->cross_norm_bias);
  layer->cross_q = AddMatrix(OwnName(i, "cross_q"), formats_.weights, true,
                             {Part(LayerName(names.cross_q, i), q_rows, hidden, bias)}, hidden);
  const uint32_t from = spec_.encoder.hidden;
  layer->cross_kv =
      AddMatrix(OwnName(i, "cross_kv"), formats_.weights, true,
                {Part(LayerName(names.cross_k, i), kv_rows, from, bias && kind.has_k_bias),
                 Part(LayerName(names.cross_v, i), kv_rows, from, bias)},
                from);
  layer->cross_out = AddMatrix(
      OwnName(i, "cross_out"), formats_.weights, true,
      {OutPart(LayerName(names.cross_out, i), q_rows, kind.has_attention_out_bias)}, q_rows);
  if (names.cross_post_norm != nullptr) {
    layer->cross_post_norm =
        AddPostNorm(OwnName(i, "cross_post_norm"), LayerName(names.cross_post_norm, i));
  }
}

}  // namespace arn::convert
