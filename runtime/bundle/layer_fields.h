// The fields of a layer, declared once: from these lists follow the structs that the converter
// fills and the runtime reads, the converter's writer (converter/write/index.cc), the reader with
// its range checks (runtime/model/read_kind.cc), comparison and text.
//
// A field has the same name in bundle.fbs, here, in a family's row (converter/family/family.h) and
// in the step that it ends up in. index.cc does not compile if bundle.fbs and a list differ.
#pragma once

#include <cstdint>

#include "kernels/contract/program.h"

namespace arn {

// Token mixer of a layer.
enum class Mixer : uint8_t {
  kAttention = 0,
  kConv = 1,
  kScan = 2,
  kLinearAttention = 3,
  kNone = 4
};

// X(type, name, default, low, high), in the order in which they are written. low and high are the
// range that the reader accepts; an enum's are its own. The bounds are expressions of the reader,
// which defines has_attention, has_state, has_channels (a convolution or a scan), is_scan and
// is_linear (0 or 1), and `kind`, the fields as read.
// docs/bundle-format.md and bundle.fbs say what a field means.
// clang-format off
#define ARN_LAYER_KIND_FIELDS(X)                                                                \
  X(uint32_t, n_heads, 0, has_attention, has_attention * kMaxHeads)                             \
  X(uint32_t, n_kv_heads, 0, has_attention, has_attention * kind.n_heads)                       \
  X(uint32_t, head_dim, 0, has_attention * 2, has_attention * kMaxHeadDim)                      \
  X(uint32_t, window, 0, 0, has_attention * kMaxContext)                                        \
  X(uint32_t, chunk, 0, 0, has_attention * kMaxContext)                                         \
  X(float, attention_scale, 0.0f, -kAnyFloat, kAnyFloat)                                        \
  X(uint32_t, rope, 0, 0, kNoRope)                                                              \
  X(uint32_t, ffn_dim, 0, 0, kMaxWidth / 2)                                                     \
  X(NormKind, norm, NormKind::kRms, 0, 0)                                                       \
  X(float, norm_epsilon, 0.0f, 0.0f, 1.0f)                                                      \
  X(Activation, activation, Activation::kSilu, 0, 0)                                            \
  X(bool, has_qk_norm, false, 0, 1)                                                             \
  X(float, softcap, 0.0f, 0.0f, kAnyFloat)                                                      \
  X(bool, qk_norm_spans_heads, false, 0, 1)                                                     \
  X(bool, is_gated, true, 0, 1)                                                                 \
  X(bool, is_parallel, false, 0, 1)                                                             \
  X(uint32_t, n_experts, 0, 0, kMaxExperts)                                                     \
  X(uint32_t, n_experts_used, 0, kind.n_experts == 0 ? 0 : 1, kind.n_experts)                   \
  X(bool, norm_topk_prob, false, 0, 1)                                                          \
  X(float, activation_limit, 0.0f, 0.0f, kAnyFloat)                                             \
  X(float, query_temperature, 0.0f, -kAnyFloat, kAnyFloat)                                      \
  X(uint32_t, query_temperature_step, 0, kind.query_temperature == 0.0f ? 0 : 1, kMaxContext)   \
  X(RouteScore, route_score, RouteScore::kSoftmax, 0, 0)                                        \
  X(bool, weighs_input, false, 0, 1)                                                            \
  X(uint32_t, shared_ffn_dim, 0, 0, kind.n_experts == 0 ? 0 : kMaxWidth / 2)                    \
  X(Mixer, mixer, Mixer::kAttention, 0, 0)                                                      \
  X(uint32_t, mixer_width, 0, has_channels, has_channels * (kMaxWidth / 3))                     \
  X(uint32_t, conv_taps, 0, has_state, has_state * kMaxConvTaps)                                \
  X(uint32_t, scan_states, 0, is_scan, is_scan * kMaxScanStates)                                \
  X(uint32_t, scan_rank, 0, is_scan, is_scan * kMaxWidth)                                       \
  X(uint32_t, router_groups, 0, 0, Min(kind.n_experts, kMaxRouterGroups))                       \
  X(uint32_t, router_groups_used, 0, kind.router_groups == 0 ? 0 : 1, kind.router_groups)       \
  X(float, topk_epsilon, 0.0f, 0.0f, kAnyFloat)                                                 \
  X(float, topk_least, 0.0f, 0.0f, kAnyFloat)                                                   \
  X(float, router_jitter, 0.0f, 0.0f, kAnyFloat)                                                \
  X(uint32_t, latent_dim, 0, 0, has_attention * kMaxHeadDim)                                    \
  X(uint32_t, latent_key_dim, 0, kind.latent_dim == 0 ? 0 : 1,                                  \
    kind.latent_dim == 0 ? 0 : kMaxHeadDim)                                                     \
  X(uint32_t, latent_value_dim, 0, kind.latent_dim == 0 ? 0 : 1,                                \
    kind.latent_dim == 0 ? 0 : kMaxHeadDim)                                                     \
  X(uint32_t, latent_query_rank, 0, 0, kind.latent_dim == 0 ? 0 : kMaxWidth)                    \
  X(float, latent_norm_epsilon, 0.0f, 0.0f, 1.0f)                                               \
  X(uint32_t, linear_heads, 0, is_linear, is_linear * kMaxHeads)                                \
  X(uint32_t, linear_key_heads, 0, is_linear, is_linear * kind.linear_heads)                    \
  X(uint32_t, linear_key_dim, 0, is_linear, is_linear * kMaxHeadDim)                            \
  X(uint32_t, linear_value_dim, 0, is_linear, is_linear * kMaxHeadDim)                          \
  X(bool, has_delta_rule, false, 0, is_linear)                                                  \
  X(float, time_step_low, 0.0f, 0.0f, kAnyFloat)                                                \
  X(float, time_step_high, 0.0f, 0.0f, kAnyFloat)                                               \
  X(uint32_t, mixer_norm_group, 0, 0, is_linear * kMaxWidth)                                    \
  X(bool, norms_before_gate, false, 0, 1)                                                       \
  X(bool, has_attention_gate, false, 0, has_attention)                                          \
  X(bool, is_hybrid, false, 0, has_state)                                                       \
  X(uint32_t, query_temperature_shift, 1, 0, 1)                                                 \
  X(bool, qk_norm_follows_rope, false, 0, 1)                                                    \
  X(float, qkv_clip, 0.0f, 0.0f, kAnyFloat)                                                     \
  X(bool, norms_follow_sum, false, 0, 1)                                                        \
  X(uint32_t, laurel_rank, 0, 0, has_attention * kMaxWidth)                                     \
  X(float, attention_sum_factor, 1.0f, -kAnyFloat, kAnyFloat)                                   \
  X(bool, has_gate_threshold, false, 0, 1)                                                      \
  X(float, gate_threshold, 0.0f, -kAnyFloat, kAnyFloat)                                         \
  X(float, scan_norm_epsilon, 0.0f, 0.0f, 1.0f)                                                 \
  X(bool, has_image_windows, false, 0, 1)                                                       \
  X(bool, doubles_betas, false, 0, kind.has_delta_rule)                                         \
  X(float, mixer_norm_epsilon, 0.0f, 0.0f, 1.0f)                                                \
  X(bool, has_head_gates, false, 0, kind.has_attention_gate)

// X(name): the tensors of a layer, in the order in which they are written.
#define ARN_LAYER_TENSORS(X)                                                                    \
  X(attention_norm) X(qkv) X(q_norm) X(k_norm) X(attention_out) X(ffn_norm) X(gate_up) X(down)  \
  X(attention_norm_bias) X(ffn_norm_bias) X(attention_post_norm) X(ffn_post_norm)               \
  X(router) X(experts) X(sinks) X(relative_position_bias)                                       \
  X(cross_norm) X(cross_norm_bias) X(cross_q) X(cross_kv) X(cross_out)                          \
  X(shared_gate_up) X(shared_down)                                                              \
  X(mixer_in) X(conv) X(conv_bias) X(scan_low) X(scan_steps) X(scan_mix) X(scan_rates)          \
  X(scan_skip) X(router_correction) X(shared_gate) X(v_norm) X(per_layer_gate)                 \
  X(per_layer_out) X(per_layer_norm) X(output_scale)                                            \
  X(query_low) X(query_low_norm) X(latent_rotated) X(latent) X(latent_norm)                     \
  X(latent_keys) X(latent_values)                                                               \
  X(linear_heads) X(mixer_norm) X(attention_gate) X(mixer_out)                                  \
  X(attention_sub_norm) X(ffn_sub_norm) X(act_parameters)                                       \
  X(laurel_low) X(laurel_out) X(laurel_norm)                                                    \
  X(stream_router_norm) X(stream_router) X(stream_predict) X(stream_correct) X(stream_scale)    \
  X(router_norm) X(experts_norm) X(experts_post_norm) X(shared_post_norm) X(cross_post_norm)       \
  X(scan_low_norm) X(scan_mix_norm) X(clamps)
// clang-format on

// Names the ranges of Layer.clamps in their order: inputs of matmuls, then outputs.
enum class ClampPlace : uint8_t {
  kQkvIn,
  kAttentionOutIn,
  kGateUpIn,
  kDownIn,
  kQ,
  kK,
  kV,
  kAttentionOut,
  kGate,
  kUp,
  kDown
};
inline constexpr uint32_t kClampPlaces = 11;

// A layer type: everything that may differ between layers but weights.
struct LayerKind {
#define ARN_DECLARE(type, name, initial, low, high) type name = initial;
  ARN_LAYER_KIND_FIELDS(ARN_DECLARE)
#undef ARN_DECLARE

  // Attention to one latent vector per token, of which keys and values of all heads are made
  // (multi-head latent attention).
  bool is_latent() const { return latent_dim != 0; }
  bool has_attention() const { return mixer == Mixer::kAttention || is_hybrid; }
  bool has_state() const { return mixer != Mixer::kAttention && mixer != Mixer::kNone; }
  bool is_linear() const { return mixer == Mixer::kLinearAttention; }
  // Its steps are the decoder's only.
  bool has_low_rank_residual_or_threshold() const {
    return laurel_rank != 0 || attention_sum_factor != 1.0f || has_gate_threshold;
  }
  uint32_t mixer_out_width() const {
    return is_linear() ? linear_heads * linear_value_dim : mixer_width;
  }
  // Channels of the convolution: of linear attention, those of q, k and v.
  uint32_t conv_width() const { return mixer_out_width() + 2 * linear_key_heads * linear_key_dim; }
  // State of one layer and sequence in f32 elements: the last convolution inputs [conv_taps - 1,
  // conv_width], then the scan states [scan_states, mixer_width], or those of the heads.
  uint32_t conv_floats() const { return has_state() ? (conv_taps - 1) * conv_width() : 0; }
  uint32_t state_floats() const {
    return conv_floats() + scan_states * mixer_width +
           linear_heads * linear_key_dim * linear_value_dim;
  }
  // Output width of the mixer's first matrix: [b | c | x], [z | x], or of linear attention [z |
  // time steps | betas | q | k | v], without betas if it has no delta rule.
  uint32_t mixer_in_width() const {
    if (!is_linear()) return (mixer == Mixer::kConv ? 3 : 2) * mixer_width;
    return mixer_out_width() + (has_delta_rule ? 2 : 1) * linear_heads + conv_width();
  }

  bool operator==(const LayerKind&) const = default;
};

// Indices of a layer's tensors; kNoWeight: it has none.
struct LayerTensors {
#define ARN_DECLARE(name) WeightId name = kNoWeight;
  ARN_LAYER_TENSORS(ARN_DECLARE)
#undef ARN_DECLARE
};

// Number of fields in the lists.
#define ARN_COUNT(...) +1
inline constexpr uint32_t kLayerKindFields = 0 ARN_LAYER_KIND_FIELDS(ARN_COUNT);
inline constexpr uint32_t kLayerTensors = 0 ARN_LAYER_TENSORS(ARN_COUNT);
#undef ARN_COUNT

}  // namespace arn
