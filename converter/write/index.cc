#include "converter/write/index.h"

#include <algorithm>
#include <utility>

namespace arn::convert {
namespace {

using flatbuffers::Offset;
using flatbuffers::Vector;

// The schema's enums have the same numbers as the code's enums; both are append-only.
static_assert(static_cast<int>(fbs::DType::Int4) == static_cast<int>(DType::kInt4));
static_assert(static_cast<int>(fbs::DType::Int3) == static_cast<int>(DType::kInt3));
static_assert(static_cast<int>(fbs::DType::MAX) + 1 == static_cast<int>(kDTypeCount));
static_assert(static_cast<int>(fbs::DType::Bf16) == static_cast<int>(DType::kBf16));
static_assert(static_cast<int>(fbs::NormKind::Layer) == static_cast<int>(NormKind::kLayer));
static_assert(static_cast<int>(fbs::Activation::Mish) == static_cast<int>(Activation::kMish));
static_assert(static_cast<int>(fbs::Activation::Xielu) == static_cast<int>(Activation::kXielu));
static_assert(static_cast<int>(fbs::Activation::MAX) + 1 == static_cast<int>(kActivationCount));
static_assert(static_cast<int>(fbs::Activation::Relu) == static_cast<int>(Activation::kRelu));
static_assert(static_cast<int>(fbs::RouteScore::SparseMixer) ==
              static_cast<int>(RouteScore::kSparseMixer));
static_assert(static_cast<int>(fbs::Activation::Gelu) == static_cast<int>(Activation::kGelu));
static_assert(static_cast<int>(fbs::Mixer::None) == static_cast<int>(Mixer::kNone));
static_assert(static_cast<int>(fbs::WeightOrder::Panels) == static_cast<int>(WeightOrder::kPanels));
static_assert(static_cast<int>(fbs::WeightOrder::MAX) + 1 == static_cast<int>(kWeightOrderCount));

Offset<fbs::Tensor> BuildTensor(const PlannedTensor& tensor, const fbs::Segment& segment,
                                flatbuffers::FlatBufferBuilder* builder) {
  const fbs::Layout layout(static_cast<fbs::WeightOrder>(tensor.layout.order), tensor.layout.nr,
                           tensor.layout.kr, tensor.layout.sr, tensor.layout.planes);
  return fbs::CreateTensor(*builder, builder->CreateString(tensor.name),
                           static_cast<fbs::DType>(tensor.dtype), &layout, tensor.is_vector,
                           tensor.rows, tensor.cols, &segment);
}

// A field that only one of bundle.fbs and layer_fields.h has ends here.
static_assert(fbs::LayerKind::Traits::fields_number == kLayerKindFields);
static_assert(fbs::Layer::Traits::fields_number == kLayerTensors + 2);  // kind and kv_layer

Offset<fbs::LayerKind> BuildKind(const LayerKind& kind, flatbuffers::FlatBufferBuilder* builder) {
  fbs::LayerKindBuilder b(*builder);
#define ARN_ADD(type, name, initial, low, high) \
  b.add_##name(static_cast<decltype(std::declval<fbs::LayerKind>().name())>(kind.name));
  ARN_LAYER_KIND_FIELDS(ARN_ADD)
#undef ARN_ADD
  return b.Finish();
}

Offset<fbs::Layer> BuildLayer(uint32_t kind, const LayerTensors& layer, uint32_t kv_layer,
                              flatbuffers::FlatBufferBuilder* builder) {
  fbs::LayerBuilder b(*builder);
  b.add_kind(kind);
  b.add_kv_layer(kv_layer);
#define ARN_ADD(name) b.add_##name(layer.name);
  ARN_LAYER_TENSORS(ARN_ADD)
#undef ARN_ADD
  return b.Finish();
}

// True for the two convolutions that Encoder.conv1 and conv2 stand for.
bool IsPair(const std::vector<ConvolutionSpec>& convolutions) {
  if (convolutions.size() != 2) return false;
  const ConvolutionSpec &first = convolutions[0], &second = convolutions[1];
  const auto is_centred = [](const ConvolutionSpec& c) {
    return c.taps == 3 && c.padding == 1 && c.norm == nullptr;
  };
  return is_centred(first) && is_centred(second) && first.stride == 1 && second.stride == 2 &&
         first.activation == second.activation && first.channels == second.channels;
}

std::vector<Offset<fbs::Convolution>> BuildConvolutions(const EncoderSpec& encoder,
                                                        const TensorPlan& plan,
                                                        flatbuffers::FlatBufferBuilder* builder) {
  std::vector<Offset<fbs::Convolution>> out;
  for (size_t i = 0; i < encoder.convolutions.size(); ++i) {
    const ConvolutionSpec& c = encoder.convolutions[i];
    const ConvolutionTensors& tensors = plan.convolutions[i];
    out.push_back(fbs::CreateConvolution(*builder, tensors.weight, c.taps, c.stride, c.padding,
                                         static_cast<fbs::Activation>(c.activation), tensors.norm,
                                         tensors.norm_bias, c.norm_epsilon));
  }
  return out;
}

Offset<fbs::Encoder> BuildEncoder(const DecoderSpec& spec, const TensorPlan& plan,
                                  flatbuffers::FlatBufferBuilder* builder) {
  const EncoderSpec& encoder = spec.encoder;
  std::vector<Offset<fbs::LayerKind>> kinds;
  for (const LayerKindSpec& kind : encoder.kinds) kinds.push_back(BuildKind(kind, builder));
  std::vector<Offset<fbs::Layer>> layers;
  for (size_t i = 0; i < plan.encoder_layers.size(); ++i) {
    layers.push_back(
        BuildLayer(encoder.layer_kinds[i], plan.encoder_layers[i], kNoTensor, builder));
  }
  const auto kinds_vector = builder->CreateVector(kinds);
  const auto layers_vector = builder->CreateVector(layers);
  const bool is_pair = IsPair(encoder.convolutions);
  Offset<flatbuffers::Vector<Offset<fbs::Convolution>>> convolutions = 0;
  if (!is_pair && !encoder.convolutions.empty()) {
    convolutions = builder->CreateVector(BuildConvolutions(encoder, plan, builder));
  }
  fbs::EncoderBuilder b(*builder);
  b.add_max_rows(encoder.max_rows);
  b.add_feature_width(encoder.feature_width);
  if (is_pair) {
    b.add_conv1(plan.convolutions[0].weight);
    b.add_conv2(plan.convolutions[1].weight);
    b.add_conv_activation(static_cast<fbs::Activation>(encoder.convolutions[0].activation));
  }
  b.add_positions(plan.encoder_positions);
  b.add_kinds(kinds_vector);
  b.add_layers(layers_vector);
  b.add_final_norm(plan.encoder_final_norm);
  b.add_final_norm_kind(static_cast<fbs::NormKind>(spec.final_norm_kind));
  b.add_final_norm_bias(plan.encoder_final_norm_bias);
  b.add_final_norm_epsilon(encoder.final_norm_epsilon);
  b.add_hidden(encoder.hidden == spec.hidden ? 0 : encoder.hidden);
  b.add_embedding(plan.encoder_embedding);
  b.add_embedding_factor(plan.encoder_embedding == kNoTensor ? 1.0f : encoder.embedding_factor);
  if (!convolutions.IsNull()) b.add_convolutions(convolutions);
  b.add_takes_samples(encoder.takes_samples);
  return b.Finish();
}

Offset<fbs::Mtp> BuildMtp(const DecoderSpec& mtp, const MtpTensors& tensors,
                          flatbuffers::FlatBufferBuilder* builder) {
  std::vector<Offset<fbs::LayerKind>> kinds;
  for (const LayerKindSpec& kind : mtp.kinds) kinds.push_back(BuildKind(kind, builder));
  std::vector<Offset<fbs::Layer>> layers;
  for (size_t i = 0; i < tensors.layers.size(); ++i) {
    const uint32_t kv_layer = mtp.assistant.exists() ? mtp.kv_layers[i] : kNoTensor;
    layers.push_back(BuildLayer(mtp.layer_kinds[i], tensors.layers[i], kv_layer, builder));
  }
  const auto kinds_vector = builder->CreateVector(kinds);
  const AssistantSpec& assistant = mtp.assistant;
  return fbs::CreateMtp(*builder, kinds_vector, builder->CreateVector(layers),
                        tensors.embedding_norm, tensors.hidden_norm, tensors.fc_embedding,
                        tensors.fc_hidden, tensors.final_norm, mtp.final_norm_epsilon,
                        mtp.own_rows_before_norm, assistant.exists() ? mtp.hidden : 0, tensors.out,
                        tensors.head, assistant.n_clusters, assistant.n_clusters_used,
                        tensors.clusters, tensors.cluster_ids);
}

static_assert(static_cast<int>(fbs::ImageRule::MAX) == static_cast<int>(ImageRule::kPatchBudget));
static_assert(static_cast<int>(fbs::Resample::MAX) == static_cast<int>(Resample::kBicubic));
static_assert(static_cast<int>(fbs::GridPositions::MAX) == static_cast<int>(GridPositions::kAxes));

Offset<fbs::ImageText> BuildImageText(const ImageTextSpec& text,
                                      flatbuffers::FlatBufferBuilder* builder) {
  const auto string = [&](const std::string& value) {
    return value.empty() ? Offset<flatbuffers::String>() : builder->CreateString(value);
  };
  const auto marker = string(text.marker), token = string(text.token);
  const auto begin = string(text.begin), tile_begin = string(text.tile_begin);
  const auto row_end = string(text.row_end), tiles_end = string(text.tiles_end);
  const auto whole_begin = string(text.whole_begin), alone_begin = string(text.alone_begin);
  return fbs::CreateImageText(*builder, marker, token, begin, tile_begin, row_end, tiles_end,
                              whole_begin, alone_begin, string(text.end));
}

void AddImageRules(const ImageRules& rules, fbs::VisionBuilder* b) {
  b->add_rule(static_cast<fbs::ImageRule>(rules.rule));
  b->add_tile_size(rules.tile_size);
  b->add_longest_edge(rules.longest_edge);
  b->add_splits(rules.splits);
  b->add_min_tokens(rules.min_tokens);
  b->add_max_tokens(rules.max_tokens);
  b->add_min_tiles(rules.min_tiles);
  b->add_max_tiles(rules.max_tiles);
  b->add_tolerance(rules.tolerance);
  b->add_has_whole(rules.has_whole);
  b->add_min_pixels(rules.min_pixels);
  b->add_max_pixels(rules.max_pixels);
  b->add_resample(static_cast<fbs::Resample>(rules.resample));
  b->add_scale(rules.scale);
}

Offset<Vector<Offset<fbs::Dense>>> BuildProjector(const ProjectorSpec& spec,
                                                  const ProjectorTensors& tensors,
                                                  flatbuffers::FlatBufferBuilder* builder) {
  std::vector<Offset<fbs::Dense>> stages;
  for (size_t i = 0; i < spec.stages.size(); ++i) {
    const std::optional<Activation>& activation = spec.stages[i].activation;
    stages.push_back(
        fbs::CreateDense(*builder, tensors.stages[i], activation.has_value(),
                         static_cast<fbs::Activation>(activation.value_or(Activation::kSilu))));
  }
  return builder->CreateVector(stages);
}

// Builder: fbs::VisionBuilder or fbs::DeepstackBuilder.
template <typename Builder>
void AddMergedNorm(const ProjectorSpec& spec, const ProjectorTensors& tensors, Builder* b) {
  b->add_merged_norm(tensors.norm);
  b->add_merged_norm_kind(static_cast<fbs::NormKind>(spec.norm_kind));
  b->add_merged_norm_bias(tensors.norm_bias);
  b->add_merged_norm_epsilon(spec.norm_epsilon);
}

// Returns null if there are none, so that other bundles stay as they are.
Offset<Vector<Offset<fbs::Deepstack>>> BuildDeepstack(const VisionSpec& vision,
                                                      const VisionTensors& tensors,
                                                      flatbuffers::FlatBufferBuilder* builder) {
  if (vision.deepstack.empty()) return {};
  std::vector<Offset<fbs::Deepstack>> deepstack;
  for (size_t i = 0; i < vision.deepstack.size(); ++i) {
    const DeepstackSpec& deep = vision.deepstack[i];
    const auto projector = BuildProjector(deep.projector, tensors.deepstack[i], builder);
    fbs::DeepstackBuilder b(*builder);
    b.add_layer(deep.layer);
    AddMergedNorm(deep.projector, tensors.deepstack[i], &b);
    b.add_projector(projector);
    deepstack.push_back(b.Finish());
  }
  return builder->CreateVector(deepstack);
}

Offset<fbs::Vision> BuildVision(const VisionSpec& vision, const VisionTensors& tensors,
                                flatbuffers::FlatBufferBuilder* builder) {
  const DecoderSpec& tower = *vision.tower;
  std::vector<Offset<fbs::LayerKind>> kinds;
  for (const LayerKindSpec& kind : tower.kinds) kinds.push_back(BuildKind(kind, builder));
  std::vector<Offset<fbs::Layer>> layers;
  for (size_t i = 0; i < tensors.layers.size(); ++i) {
    layers.push_back(BuildLayer(tower.layer_kinds[i], tensors.layers[i], kNoTensor, builder));
  }
  const auto kinds_vector = builder->CreateVector(kinds);
  const auto layers_vector = builder->CreateVector(layers);
  const auto projector = BuildProjector(vision.projector, tensors.projector, builder);
  const auto deepstack = BuildDeepstack(vision, tensors, builder);
  const auto mean = builder->CreateVector(vision.image.mean, kPixelChannels);
  const auto deviation = builder->CreateVector(vision.image.std, kPixelChannels);
  const auto text = BuildImageText(vision.text, builder);
  fbs::VisionBuilder b(*builder);
  b.add_hidden(tower.hidden);
  b.add_patch_size(vision.patch_size);
  b.add_patch_embedding(tensors.patch_embedding);
  b.add_position_side(vision.position_side);
  b.add_positions(tensors.positions);
  b.add_grid_positions(static_cast<fbs::GridPositions>(vision.grid_positions));
  b.add_kinds(kinds_vector);
  b.add_layers(layers_vector);
  b.add_final_norm(tensors.final_norm);
  b.add_final_norm_kind(static_cast<fbs::NormKind>(tower.final_norm_kind));
  b.add_final_norm_bias(tensors.final_norm_bias);
  b.add_final_norm_epsilon(tower.final_norm_epsilon);
  b.add_merge_side(vision.merge_side);
  b.add_merge(static_cast<fbs::PoolKind>(vision.merge));
  b.add_merge_factor(vision.merge_factor);
  b.add_merge_shift(tensors.merge_shift);
  b.add_merge_scale(tensors.merge_scale);
  AddMergedNorm(vision.projector, tensors.projector, &b);
  b.add_projector(projector);
  if (!deepstack.IsNull()) b.add_deepstack(deepstack);
  b.add_max_patches(vision.max_patches);
  AddImageRules(vision.image, &b);
  b.add_mean(mean);
  b.add_std(deviation);
  b.add_token_id(vision.token_id);
  b.add_text(text);
  b.add_sees_both_ways(vision.sees_both_ways);
  b.add_has_mrope(vision.has_mrope);
  b.add_window_side(vision.window_side);
  return b.Finish();
}

static_assert(static_cast<int>(fbs::PoolKind::MAX) + 1 == static_cast<int>(kPoolKindCount));
static_assert(static_cast<int>(fbs::ScoreRule::MAX) == static_cast<int>(ScoreRule::kLastOfSoftmax));

Offset<fbs::Pooling> BuildPooling(const DecoderSpec& spec, const TensorPlan& plan,
                                  flatbuffers::FlatBufferBuilder* builder) {
  const PoolingSpec& pooling = spec.pooling;
  std::vector<Offset<fbs::Dense>> dense;
  for (size_t i = 0; i < pooling.dense.size(); ++i) {
    const DenseSpec& from = pooling.dense[i];
    const TensorPlan::Dense& tensors = plan.dense[i];
    const auto activation =
        static_cast<fbs::Activation>(from.activation.value_or(Activation::kSilu));
    dense.push_back(fbs::CreateDense(*builder, tensors.weight, from.activation.has_value(),
                                     activation, tensors.norm, fbs::NormKind::Layer,
                                     tensors.norm_bias, spec.final_norm_epsilon));
  }
  std::vector<Offset<fbs::Prompt>> prompts;
  for (const PromptSpec& prompt : pooling.prompts) {
    const auto name = builder->CreateString(prompt.name);
    prompts.push_back(fbs::CreatePrompt(*builder, name, builder->CreateString(prompt.text)));
  }
  const auto text = [&](const std::string& value) {
    return value.empty() ? Offset<flatbuffers::String>() : builder->CreateString(value);
  };
  const uint32_t most = pooling.max_tokens == 0 ? spec.max_context : pooling.max_tokens;
  const auto dense_vector = builder->CreateVector(dense);
  const auto prompts_vector = builder->CreateVector(prompts);
  const auto pair_template = text(pooling.pair_template);
  const auto instruction = text(pooling.instruction);
  return fbs::CreatePooling(*builder, static_cast<fbs::PoolKind>(pooling.mode), dense_vector,
                            pooling.is_score, static_cast<fbs::ScoreRule>(pooling.score),
                            pooling.normalizes, most, prompts_vector, pooling.default_prompt,
                            pair_template, instruction);
}

std::vector<fbs::SpeechLanguage> SpeechLanguages(const TranscriptionSpec& spec) {
  std::vector<fbs::SpeechLanguage> made;
  for (const SpeechLanguage& language : spec.languages) {
    uint8_t name[SpeechLanguage::kMaxNameBytes + 1] = {};
    std::copy(language.name.begin(), language.name.end(), name);
    made.emplace_back(language.id, flatbuffers::make_span(name));
  }
  return made;
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
    const auto axes = rope.axes.empty() ? Offset<flatbuffers::Vector<uint8_t>>()
                                        : builder->CreateVector(rope.axes);
    ropes.push_back(fbs::CreateRopeKind(*builder, rope.rotary_dim, rope.amplitude, inv_freq,
                                        long_inv_freq, rope.short_context, rope.theta, axes));
  }
  std::vector<Offset<fbs::Layer>> layers;
  for (size_t i = 0; i < plan.layers.size(); ++i) {
    const bool shares_kv = !spec.kv_layers.empty() && spec.kv_layers[i] != i;
    layers.push_back(BuildLayer(spec.layer_kinds[i], plan.layers[i],
                                shares_kv ? spec.kv_layers[i] : kNoTensor, builder));
  }
  Offset<fbs::Encoder> encoder;
  if (spec.encoder.max_rows != 0) encoder = BuildEncoder(spec, plan, builder);
  Offset<fbs::Pooling> pooling;
  if (spec.pooling.exists) pooling = BuildPooling(spec, plan, builder);
  Offset<fbs::Vision> vision;
  if (spec.vision.exists()) vision = BuildVision(spec.vision, plan.vision, builder);
  Offset<fbs::Mtp> mtp;
  if (spec.mtp != nullptr) mtp = BuildMtp(*spec.mtp, plan.mtp, builder);
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
  b.add_per_layer_width(spec.per_layer_width);
  b.add_per_layer_embedding(plan.per_layer_embedding);
  b.add_per_layer_factor(spec.per_layer_factor());
  b.add_per_layer_projection(plan.per_layer_projection);
  b.add_per_layer_norm(plan.per_layer_norm);
  b.add_per_layer_norm_epsilon(spec.per_layer_width == 0 ? 0.0f : spec.final_norm_epsilon);
  if (spec.encoder.max_rows != 0) b.add_encoder(encoder);
  b.add_embedding_norm(plan.embedding_norm);
  b.add_embedding_norm_bias(plan.embedding_norm_bias);
  b.add_head_dense(plan.head_dense);
  b.add_head_activation(static_cast<fbs::Activation>(spec.head_activation));
  b.add_head_norm(plan.head_norm);
  b.add_head_norm_bias(plan.head_norm_bias);
  b.add_is_bidirectional(spec.is_bidirectional);
  b.add_token_types(plan.token_types);
  if (spec.pooling.exists) b.add_pooling(pooling);
  b.add_n_streams(spec.streams.n);
  b.add_active_stream(spec.streams.active);
  b.add_stream_in(plan.stream_in);
  b.add_stream_out(plan.stream_out);
  b.add_stream_epsilon(spec.streams.epsilon);
  if (spec.vision.exists()) b.add_vision(vision);
  if (spec.mtp != nullptr) b.add_mtp(mtp);
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
  const TranscriptionSpec& speech = generation.transcription;
  const fbs::Transcription transcription(speech.no_timestamps_id, speech.transcribe_id,
                                         speech.translate_id, speech.max_initial_timestamp);
  Offset<flatbuffers::Vector<const fbs::SpeechLanguage*>> languages = 0;
  if (!speech.languages.empty()) {
    languages = builder->CreateVectorOfStructs(SpeechLanguages(speech));
  }
  Offset<flatbuffers::Vector<const fbs::AlignmentHead*>> heads = 0;
  if (!speech.alignment_heads.empty()) {
    std::vector<fbs::AlignmentHead> stored;
    for (const AlignmentHead& head : speech.alignment_heads) {
      stored.emplace_back(head.layer, head.head);
    }
    heads = builder->CreateVectorOfStructs(stored);
  }
  return fbs::CreateGeneration(*builder, generation.do_sample, generation.temperature,
                               generation.top_k, generation.top_p, generation.min_p, eos_ids,
                               bos_id, generation.pad_id, bos_ids, start_ids, options_vector,
                               speech.exists ? &transcription : nullptr, languages, heads,
                               speech.alignment_median, speech.previous_id);
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
