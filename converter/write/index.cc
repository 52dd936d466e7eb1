#include "converter/write/index.h"

namespace arn::convert {
namespace {

using flatbuffers::Offset;

// The schema's enums have the same numbers as the code's enums; both are append-only.
static_assert(static_cast<int>(fbs::DType::Int4) == static_cast<int>(DType::kInt4));
static_assert(static_cast<int>(fbs::DType::Bf16) == static_cast<int>(DType::kBf16));
static_assert(static_cast<int>(fbs::NormKind::Layer) == static_cast<int>(NormKind::kLayer));
static_assert(static_cast<int>(fbs::Activation::Mish) == static_cast<int>(Activation::kMish));
static_assert(static_cast<int>(fbs::Activation::MAX) + 1 == static_cast<int>(kActivationCount));
static_assert(static_cast<int>(fbs::Activation::Relu) == static_cast<int>(Activation::kRelu));
static_assert(static_cast<int>(fbs::RouteScore::Sigmoid) == static_cast<int>(RouteScore::kSigmoid));
static_assert(static_cast<int>(fbs::Activation::Gelu) == static_cast<int>(Activation::kGelu));
static_assert(static_cast<int>(fbs::Mixer::Scan) == static_cast<int>(Mixer::kScan));
static_assert(static_cast<int>(fbs::WeightOrder::Panels) == static_cast<int>(WeightOrder::kPanels));

Offset<fbs::Tensor> BuildTensor(const PlannedTensor& tensor, const fbs::Segment& segment,
                                flatbuffers::FlatBufferBuilder* builder) {
  const fbs::Layout layout(static_cast<fbs::WeightOrder>(tensor.layout.order), tensor.layout.nr,
                           tensor.layout.kr, tensor.layout.sr, tensor.layout.planes);
  return fbs::CreateTensor(*builder, builder->CreateString(tensor.name),
                           static_cast<fbs::DType>(tensor.dtype), &layout, tensor.is_vector,
                           tensor.rows, tensor.cols, &segment);
}

Offset<fbs::LayerKind> BuildKind(const LayerKindSpec& kind,
                                 flatbuffers::FlatBufferBuilder* builder) {
  fbs::LayerKindBuilder b(*builder);
  b.add_n_heads(kind.n_heads);
  b.add_n_kv_heads(kind.n_kv_heads);
  b.add_head_dim(kind.head_dim);
  b.add_window(kind.window);
  b.add_chunk(kind.chunk);
  b.add_attention_scale(kind.attention_scale);
  b.add_rope(kind.rope);
  b.add_ffn_dim(kind.ffn_dim);
  b.add_norm(static_cast<fbs::NormKind>(kind.norm));
  b.add_norm_epsilon(kind.norm_epsilon);
  b.add_activation(static_cast<fbs::Activation>(kind.activation));
  b.add_has_qk_norm(kind.has_qk_norm);
  b.add_softcap(kind.softcap);
  b.add_qk_norm_spans_heads(kind.qk_norm_spans_heads);
  b.add_is_gated(kind.is_gated);
  b.add_is_parallel(kind.is_parallel);
  b.add_n_experts(kind.n_experts);
  b.add_n_experts_used(kind.n_experts_used);
  b.add_renormalises_routes(kind.norm_topk_prob);
  b.add_activation_limit(kind.activation_limit);
  b.add_query_temperature(kind.query_temperature);
  b.add_query_temperature_step(kind.query_temperature_step);
  b.add_route_score(static_cast<fbs::RouteScore>(kind.route_score));
  b.add_routes_weigh_input(kind.weighs_input);
  b.add_shared_ffn_dim(kind.shared_ffn_dim);
  b.add_mixer(static_cast<fbs::Mixer>(kind.mixer.mixer));
  b.add_mixer_width(kind.mixer.width);
  b.add_conv_taps(kind.mixer.taps);
  b.add_scan_states(kind.mixer.states);
  b.add_scan_rank(kind.mixer.rank);
  return b.Finish();
}

Offset<fbs::Layer> BuildLayer(uint32_t kind, const LayerTensors& layer,
                              flatbuffers::FlatBufferBuilder* builder) {
  fbs::LayerBuilder b(*builder);
  b.add_kind(kind);
  b.add_attention_norm(layer.attention_norm);
  b.add_qkv(layer.qkv);
  b.add_q_norm(layer.q_norm);
  b.add_k_norm(layer.k_norm);
  b.add_attention_out(layer.attention_out);
  b.add_ffn_norm(layer.ffn_norm);
  b.add_gate_up(layer.gate_up);
  b.add_down(layer.down);
  b.add_attention_norm_bias(layer.attention_norm_bias);
  b.add_ffn_norm_bias(layer.ffn_norm_bias);
  b.add_attention_post_norm(layer.attention_post_norm);
  b.add_ffn_post_norm(layer.ffn_post_norm);
  b.add_router(layer.router);
  b.add_experts(layer.experts);
  b.add_sinks(layer.sinks);
  b.add_distance_bias(layer.relative_position_bias);
  b.add_cross_norm(layer.cross_norm);
  b.add_cross_norm_bias(layer.cross_norm_bias);
  b.add_cross_q(layer.cross_q);
  b.add_cross_kv(layer.cross_kv);
  b.add_cross_out(layer.cross_out);
  b.add_shared_gate_up(layer.shared_gate_up);
  b.add_shared_down(layer.shared_down);
  b.add_mixer_in(layer.mixer_in);
  b.add_conv(layer.conv);
  b.add_conv_bias(layer.conv_bias);
  b.add_scan_low(layer.scan_low);
  b.add_scan_steps(layer.time_steps);
  b.add_scan_mix(layer.scan_mix);
  b.add_scan_rates(layer.scan_rates);
  b.add_scan_skip(layer.scan_skip);
  return b.Finish();
}

Offset<fbs::Source> BuildEncoder(const DecoderSpec& spec, const TensorPlan& plan,
                                 flatbuffers::FlatBufferBuilder* builder) {
  const EncoderSpec& encoder = spec.encoder;
  std::vector<Offset<fbs::LayerKind>> kinds;
  for (const LayerKindSpec& kind : encoder.kinds) kinds.push_back(BuildKind(kind, builder));
  std::vector<Offset<fbs::Layer>> layers;
  for (size_t i = 0; i < plan.encoder_layers.size(); ++i) {
    layers.push_back(BuildLayer(encoder.layer_kinds[i], plan.encoder_layers[i], builder));
  }
  const auto kinds_vector = builder->CreateVector(kinds);
  const auto layers_vector = builder->CreateVector(layers);
  fbs::SourceBuilder b(*builder);
  b.add_max_rows(encoder.max_rows);
  b.add_feature_width(encoder.feature_width);
  b.add_conv1(plan.conv1);
  b.add_conv2(plan.conv2);
  b.add_conv_activation(static_cast<fbs::Activation>(encoder.conv_activation));
  b.add_positions(plan.encoder_positions);
  b.add_kinds(kinds_vector);
  b.add_layers(layers_vector);
  b.add_final_norm(plan.encoder_final_norm);
  b.add_final_norm_kind(static_cast<fbs::NormKind>(spec.final_norm_kind));
  b.add_final_norm_bias(plan.encoder_final_norm_bias);
  b.add_final_norm_epsilon(spec.final_norm_epsilon);
  return b.Finish();
}

}  // namespace

Offset<fbs::Model> BuildModel(const ModelIndex& model, flatbuffers::FlatBufferBuilder* builder) {
  const DecoderSpec& spec = *model.spec;
  const TensorPlan& plan = *model.plan;

  std::vector<Offset<fbs::Tensor>> tensors;
  for (size_t i = 0; i < plan.tensors.size(); ++i) {
    tensors.push_back(BuildTensor(plan.tensors[i], (*model.segments)[i], builder));
  }
  std::vector<Offset<fbs::LayerKind>> kinds;
  for (const LayerKindSpec& kind : spec.kinds) kinds.push_back(BuildKind(kind, builder));
  std::vector<Offset<fbs::RopeKind>> ropes;
  for (const RopeSpec& rope : spec.ropes) {
    const auto inv_freq = builder->CreateVector(rope.inv_freq);
    const auto long_inv_freq = builder->CreateVector(rope.long_inv_freq);
    ropes.push_back(fbs::CreateRopeKind(*builder, rope.rotary_dim, rope.amplitude, inv_freq,
                                        long_inv_freq, rope.short_context));
  }
  std::vector<Offset<fbs::Layer>> layers;
  for (size_t i = 0; i < plan.layers.size(); ++i) {
    layers.push_back(BuildLayer(spec.layer_kinds[i], plan.layers[i], builder));
  }
  Offset<fbs::Source> source;
  if (spec.encoder.max_rows != 0) source = BuildEncoder(spec, plan, builder);
  const auto architecture = builder->CreateString(spec.architecture);
  const auto source_name = builder->CreateString(model.source_name);
  const auto kinds_vector = builder->CreateVector(kinds);
  const auto ropes_vector = builder->CreateVector(ropes);
  const auto layers_vector = builder->CreateVector(layers);
  const auto tensors_vector = builder->CreateVector(tensors);

  fbs::ModelBuilder b(*builder);
  b.add_architecture(architecture);
  b.add_source_name(source_name);
  b.add_hidden(spec.hidden);
  b.add_vocab(spec.vocab);
  b.add_max_context(spec.max_context);
  b.add_kinds(kinds_vector);
  b.add_ropes(ropes_vector);
  b.add_layers(layers_vector);
  b.add_embedding(plan.embedding);
  b.add_final_norm(plan.final_norm);
  b.add_final_norm_epsilon(spec.final_norm_epsilon);
  b.add_head(plan.head);
  b.add_tensors(tensors_vector);
  b.add_embedding_factor(spec.embedding_factor);
  b.add_positions(plan.positions);
  b.add_final_norm_kind(static_cast<fbs::NormKind>(spec.final_norm_kind));
  b.add_final_norm_bias(plan.final_norm_bias);
  b.add_logits_factor(spec.logits_factor);
  b.add_logits_softcap(spec.logits_softcap);
  if (spec.encoder.max_rows != 0) b.add_source(source);
  return b.Finish();
}

Offset<fbs::Generation> BuildGeneration(const GenerationSpec& generation,
                                        flatbuffers::FlatBufferBuilder* builder) {
  const auto eos_ids = builder->CreateVector(generation.eos_ids);
  const auto start_ids = builder->CreateVector(generation.start_ids);
  const auto bos_ids = builder->CreateVector(generation.bos_ids);
  const int32_t bos_id =
      generation.bos_ids.empty() ? -1 : static_cast<int32_t>(generation.bos_ids[0]);
  std::vector<Offset<fbs::SamplingOption>> options;
  for (const SamplingEntry& entry : generation.options) {
    options.push_back(
        fbs::CreateSamplingOption(*builder, entry.id, builder->CreateVector(entry.words)));
  }
  Offset<flatbuffers::Vector<Offset<fbs::SamplingOption>>> options_vector = 0;
  if (!options.empty()) options_vector = builder->CreateVector(options);
  return fbs::CreateGeneration(*builder, generation.do_sample, generation.temperature,
                               generation.top_k, generation.top_p, generation.min_p, eos_ids,
                               bos_id, generation.pad_id, bos_ids, start_ids, options_vector);
}

Offset<fbs::Prefix> BuildPrefix(const PrefixIndex& prefix,
                                flatbuffers::FlatBufferBuilder* builder) {
  return fbs::CreatePrefix(*builder, builder->CreateVector(prefix.ids), &prefix.state,
                           prefix.model_hash);
}

Offset<fbs::SelfTest> BuildSelfTest(const SelfTestIndex& test,
                                    flatbuffers::FlatBufferBuilder* builder) {
  return fbs::CreateSelfTest(
      *builder, builder->CreateVector(test.data.ids), builder->CreateVector(test.data.run_tokens),
      builder->CreateVector(test.data.scales), &test.logits, test.model_hash);
}

}  // namespace arn::convert
