// ModelSpec: the plain, checked view of a bundle's model. After ReadModelSpec every index is in
// range, every tensor has the shape its place asks for, and every number is finite: what builds on
// it checks nothing again.
#pragma once

#include <cstdint>

#include "kernels/program.h"
#include "kernels/weight.h"
#include "platform/base/arena.h"
#include "platform/base/diag.h"
#include "platform/base/span.h"
#include "runtime/bundle/bundle.h"
#include "runtime/model/mixer_spec.h"

namespace arn {

struct LayerKindSpec {
  AttentionKind attention;  // of other mixers only its group is set
  MixerSpec mixer;
  uint32_t ffn_dim = 0;  // 0: no feed-forward part
  float norm_epsilon = 0.0f;
  NormKind norm = NormKind::kRms;
  Activation activation = Activation::kSilu;
  bool has_qk_norm = false;
  bool qk_norm_spans_heads = false;
  bool is_gated = true;
  bool is_parallel = false;
  uint32_t n_experts = 0;  // 0: gate_up and down; else ffn_dim is that of each expert
  uint32_t n_experts_used = 0;
  bool renormalises_routes = false;
  RouteScore route_score = RouteScore::kSoftmax;
  bool routes_weigh_input = false;
  uint32_t shared_ffn_dim = 0;  // 0: nothing beside the experts
  float activation_limit = 0.0f;
};

struct LayerSpec {
  uint32_t kind = 0;
  uint32_t group_layer = 0;  // index inside its KV group
  bool shares_kv = false;    // group_layer is an earlier layer's; qkv has the q heads alone
  WeightId attention_norm = kNoWeight;  // kNoWeight: the block reads x itself
  WeightId attention_norm_bias = kNoWeight;
  WeightId attention_post_norm = kNoWeight;
  WeightId qkv = kNoWeight;
  WeightId q_norm = kNoWeight;
  WeightId k_norm = kNoWeight;
  WeightId attention_out = kNoWeight;
  MixerTensors mixer;             // of kinds with another mixer than attention, which have no qkv
  WeightId ffn_norm = kNoWeight;  // kNoWeight: the block reads x itself
  WeightId ffn_norm_bias = kNoWeight;
  WeightId ffn_post_norm = kNoWeight;
  WeightId gate_up = kNoWeight;
  WeightId down = kNoWeight;
  WeightId router = kNoWeight;   // of kinds with experts
  WeightId experts = kNoWeight;  // gate_up, down, gate_up, ...
  WeightId sinks = kNoWeight;
  WeightId shared_gate_up = kNoWeight;
  WeightId shared_down = kNoWeight;
  WeightId distance_bias = kNoWeight;
  WeightId cross_norm = kNoWeight;  // this and the following: of layers that attend to a source
  WeightId cross_norm_bias = kNoWeight;
  WeightId cross_q = kNoWeight;  // kNoWeight: they do not
  WeightId cross_kv = kNoWeight;
  WeightId cross_out = kNoWeight;
  uint32_t cross_layer = 0;  // index inside the source's group
};

// Layers whose KV has one shape and that see the same positions share a group of pages; those whose
// states have one size share a group of slots.
struct KvGroupSpec {
  uint32_t n_layers = 0;      // those with keys and values, or a state, of their own
  uint32_t state_floats = 0;  // of each layer; 0: keys and values
  bool is_source = false;     // those of what a sequence attends to beside its own tokens
  uint32_t n_kv_heads = 0;
  uint32_t head_dim = 0;
  uint32_t window = 0;
  uint32_t chunk = 0;
};

inline constexpr uint32_t kMaxRopeKinds = 8;

// What a rope is in sessions with room for more than short_context tokens (0: the same).
struct LongRope {
  uint32_t short_context = 0;
  Span<const float> inv_freq;
};

inline constexpr uint32_t kMaxSourceRows = 1u << 20;

// What a sequence attends to beside its own tokens: tokens through the embedding, or features
// through two convolutions, then layers in which each row sees all.
struct SourceSpec {
  uint32_t max_rows = 0;       // 0: there is none
  uint32_t feature_width = 0;  // of each of the two frames that become a row; 0: tokens
  WeightId conv1 = kNoWeight;  // [hidden, 3 feature_width], the earliest input first
  WeightId conv2 = kNoWeight;  // [hidden, 3 hidden], of each second row
  Activation conv_activation = Activation::kGelu;
  WeightId positions = kNoWeight;
  Span<const LayerKindSpec> kinds;
  Span<const LayerSpec> layers;
  NormKind final_norm_kind = NormKind::kRms;
  WeightId final_norm = kNoWeight;
  WeightId final_norm_bias = kNoWeight;
  float final_norm_epsilon = 0.0f;
  uint32_t group = 0;  // index into ModelSpec::groups

  bool exists() const { return max_rows != 0; }
};

struct ModelSpec {
  uint32_t hidden = 0;
  uint32_t vocab = 0;
  uint32_t max_context = 0;
  Span<const LayerKindSpec> kinds;
  Span<const RopeKind> ropes;
  Span<const LongRope> long_ropes;  // one for each of ropes
  Span<const LayerSpec> layers;
  Span<const Weight> weights;  // by tensor index
  KvGroupSpec groups[kMaxKvGroups];
  uint32_t n_groups = 0;
  SourceSpec source;
  WeightId embedding = kNoWeight;
  float embedding_factor = 1.0f;
  WeightId positions = kNoWeight;
  NormKind final_norm_kind = NormKind::kRms;
  WeightId final_norm = kNoWeight;
  WeightId final_norm_bias = kNoWeight;
  float final_norm_epsilon = 0.0f;
  WeightId head = kNoWeight;
  float logits_factor = 1.0f;
  float logits_softcap = 0.0f;
  uint64_t weight_bytes = 0;  // each tensor once
  uint64_t n_parameters = 0;  // rows * cols of each tensor once
};

// Arena bytes that ReadModelSpec takes at most.
uint64_t ModelSpecBytes(const fbs::Model& model);

// The spec points into the bundle and the arena. Errors name the field and the value.
Status ReadModelSpec(const Bundle& bundle, Arena* arena, ModelSpec* out, Diag* diag);

}  // namespace arn
