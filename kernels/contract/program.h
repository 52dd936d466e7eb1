// Program: a model's forward pass as a list of coarse steps. The runtime builds it from a bundle's
// layer types; the backends run it. Plain data: no pointers to code.
#pragma once

#include <cstdint>

#include "kernels/contract/activation_list.h"
#include "kernels/contract/kv_view.h"
#include "kernels/contract/weight.h"
#include "platform/base/layout.h"
#include "platform/base/span.h"

namespace arn {

enum class Op : uint8_t {
  kEmbed,       // token ids -> out: the token's row times a factor, plus the position's row
  kRopeAngles,  // positions -> out: cos and sin of one RoPE type, shared by the layers that use it
  kNorm,        // in -> out, or out += if accumulate
  kLinear,      // in -> out, or out += if accumulate
  kQkvRope,     // in place on in: q/k norm, RoPE; then appends K and V to the pages (unless the
                // layer shares another layer's)
  kAttention,   // in (q part) and the pages -> out
  kGatedAct,    // in [gate | up] -> out
  kAct,         // in place on in
  kRoute,       // router logits in -> out [n_chosen ids, n_chosen weights]: the experts of each row
  kExperts,     // in and topk -> out +=: weighted sum of the chosen experts' outputs
  kLogits,      // in -> logits (final norm + head) of the selected rows
  kConv,        // in -> out: per-channel (depthwise) causal convolution over the tokens of a
                // sequence
  kScan,        // in, time steps and mix -> out: selective scan (SSM state per sequence)
  // Ops of the encoder and of cross-attention:
  kFeatures,       // features of the run -> out
  kIm2col,         // in -> out: im2col of a 1D convolution
  kAddPositions,   // in place on in: adds the position's row
  kSelfAttention,  // in [q | k | v] of the whole encoder input -> out; bidirectional
  kStoreKv,        // in [k | v] -> the pages of a group
};
inline constexpr uint32_t kOpCount = 18;
const char* OpName(Op op);  // "embed", "rope_angles", ...

#define ARN_ENUMERATOR(enumerator, value, name) enumerator = value,
enum class Activation : uint8_t { ARN_ACTIVATIONS(ARN_ENUMERATOR) };
#undef ARN_ENUMERATOR
#define ARN_COUNT(enumerator, value, name) +1
inline constexpr uint32_t kActivationCount = 0 ARN_ACTIVATIONS(ARN_COUNT);
#undef ARN_COUNT
const char* ActivationName(Activation activation);  // "silu", "gelu_tanh", ...

// Scoring function of the router.
enum class RouteScore : uint8_t {
  kSoftmax = 0,  // over the logits of all experts
  kSigmoid = 1,  // of the expert's own logit
};

enum class NormKind : uint8_t {
  kRms = 0,    // x / sqrt(mean(x^2) + epsilon) * weight
  kLayer = 1,  // (x - mean(x)) / sqrt(variance(x) + epsilon) * weight + bias
};

using ValueId = uint16_t;   // index into Program::values
using WeightId = uint32_t;  // index into Program::weights
// Limits that size the kernels' scratch buffers.
inline constexpr uint32_t kMaxHeadDim = 1024;
inline constexpr uint32_t kMaxConvTaps = 64;
inline constexpr uint32_t kMaxScanStates = 256;
inline constexpr WeightId kNoWeight = UINT32_MAX;
inline constexpr ValueId kNoValue = UINT16_MAX;
inline constexpr uint32_t kNoRope = UINT32_MAX;
inline constexpr uint32_t kNoGroup = UINT32_MAX;

// An activation: [rows, width] f32, row-major. Row stride is width.
//
// Layers of different head counts or feed-forward widths use values of different widths. Only the
// widest has bytes of its own; the others are views: dense rows at the start of its bytes.
struct Value {
  const char* name = nullptr;
  uint32_t width = 0;
  uint16_t row_factor = 1;     // rows per row of a run
  bool is_encoder = false;     // written by the encoder steps
  ValueId view_of = kNoValue;  // an earlier value, at least as wide; kNoValue: has its own bytes
  uint32_t first_step = 0;     // step that writes it first; in a view, those of view_of
  uint32_t last_step = 0;      // step that reads it last
  Slice slice;                 // Region::kActivations, placed by the memory plan
};

// Attention parameters of a layer besides its weights. Layers of the same type share one entry.
struct AttentionKind {
  uint32_t n_heads = 0;     // 0: the layers have no attention, all other fields are ignored
  uint32_t n_kv_heads = 0;  // divides n_heads
  uint32_t head_dim = 0;
  uint32_t window = 0;           // a query at p sees keys at p - window + 1 .. p; 0: all up to p
  uint32_t chunk = 0;            // a query at p sees no key before p - p % chunk; 0: no chunks
  float attention_scale = 0.0f;  // multiplies q.k
  float softcap = 0.0f;          // a score s then becomes softcap * tanh(s / softcap); 0: off
  uint32_t rope = 0;             // index into Program::ropes, or kNoRope: no rotation
  uint32_t group = 0;            // index into Program::kv_groups, or kNoGroup (kSelfAttention only)
  // q at position p is multiplied by 1 + query_temperature * log(1 + floor((p + 1) /
  // query_temperature_step)). 0: off.
  float query_temperature = 0.0f;
  uint32_t query_temperature_step = 0;
  // Cross-attention: keys and values come from the encoder output, and every query sees all of
  // them. The group has one page per sequence, large enough for the whole encoder output. window,
  // chunk and rope are ignored.
  bool is_cross_attention = false;
};

// Returns the kind for kStoreKv, which is kQkvRope on rows without queries.
AttentionKind WithoutQueries(AttentionKind kind);

// Returns the factor applied to q at `position` (transformers: attn_temperature_tuning, with
// attn_scale and floor_scale).
float QueryTemperature(const AttentionKind& kind, uint32_t position);

// RoPE with half-split pairs: element i is paired with element i + rotary_dim / 2. The angle of
// pair i at position p is p * inv_freq[i], in f32 as transformers computes it. cos and sin are
// multiplied by `amplitude` (YaRN's attention factor, otherwise 1).
struct RopeKind {
  uint32_t rotary_dim = 0;  // even, <= head_dim; elements past it are not rotated
  float amplitude = 1.0f;
  Span<const float> inv_freq;  // [rotary_dim / 2]
};

struct Step {
  Op op = Op::kEmbed;
  bool accumulate = false;                        // kLinear, kNorm
  bool norm_topk_prob = false;                    // kRoute: normalises the chosen weights to sum 1
                                                  // (norm_topk_prob)
  RouteScore route_score = RouteScore::kSoftmax;  // kRoute
  bool weighs_input = false;                      // kExperts: multiplies an expert's input by its
                                                  // weight, instead of its output
  bool shares_kv = false;                     // kQkvRope, kAttention: `in` is q only; K and V are
                                              // those of the earlier layer with this group_layer
  Activation activation = Activation::kSilu;  // kGatedAct, kAct
  NormKind norm_kind = NormKind::kRms;        // kNorm, kLogits
  uint16_t layer = 0;                         // for messages and dumps
  uint16_t kind = 0;                          // kQkvRope, kAttention: index into Program::kinds
  uint16_t group_layer = 0;  // kQkvRope, kAttention, kConv, kScan: index inside the KV group
  ValueId in = kNoValue;
  ValueId out = kNoValue;
  ValueId angles = kNoValue;   // kQkvRope: [rows, rotary_dim]: cos[half] then sin[half]
  ValueId topk = kNoValue;     // kExperts: output of kRoute
  ValueId scratch = kNoValue;  // kExperts: the first of four consecutive values: rows of one expert
                               // [width of in], gate and up [2 n], activation(gate) * up [n], the
                               // expert's output [width of out]
  uint16_t n_experts = 0;      // kRoute, kExperts
  uint16_t n_chosen = 0;       // kRoute, kExperts: experts per row
  WeightId weight = kNoWeight;  // kEmbed, kNorm, kLinear, kLogits (head); kExperts: gate_up of the
                                // first expert, then its down, then gate_up of the next expert, ...
  // kQkvRope: RMSNorm per head if the weight has head_dim elements; over all q (k) heads together
  // if it has as many elements as they have.
  WeightId q_norm = kNoWeight;
  WeightId k_norm = kNoWeight;
  WeightId norm = kNoWeight;       // kLogits: the final norm
  WeightId bias = kNoWeight;       // NormKind::kLayer; kConv
  WeightId positions = kNoWeight;  // kEmbed: f32 rows, one per position, or none
  // kAttention, kSelfAttention: relative position bias [distances, n_heads], added to the scores,
  // or none. Row d is for keys d - origin positions before the query; the first and last rows also
  // cover all distances beyond. origin is 0 in kAttention, the middle row in kSelfAttention, which
  // is bidirectional.
  WeightId relative_position_bias = kNoWeight;
  WeightId sinks = kNoWeight;     // kAttention: attention sinks [n_heads], a logit per head that
                                  // only adds to the softmax denominator; or none
  float epsilon = 0.0f;           // kNorm, kQkvRope, kLogits
  float factor = 1.0f;            // kEmbed: multiplies the token's row; kLogits: multiplies the
                                  // logits
  float softcap = 0.0f;           // kLogits: as in AttentionKind, applied after the factor
  float activation_limit = 0.0f;  // kGatedAct, kExperts: limit of Activation::kClampedSwiglu
  uint16_t rope = 0;              // kRopeAngles
  // kConv: the last [taps, columns of weight] inputs of a sequence, oldest first; `bias` is
  // optional. The input is the last columns of `in`. With is_gated, `in` is [b | c | x], the input
  // is b * x and the result is multiplied by c.
  // kScan: weight is A [states, width of in], negative; the result goes to the last columns of
  // `out`.
  bool is_gated = false;
  ValueId time_steps = kNoValue;  // kScan: dt [width of in], before the softplus
  ValueId mix = kNoValue;         // kScan: [2 states]: B (input to state), then C (state to output)
  WeightId skip = kNoWeight;      // kScan: D [width of in], the skip connection from the input
  uint16_t group = 0;             // kConv, kScan: index into kv_groups; a group of states
  uint32_t state_offset = 0;      // kConv, kScan: f32 elements from the start of the layer's state
  uint16_t n_taps = 0;  // kIm2col: kernel width, odd and centred on the row. The stride in rows of
                        // `in` is the quotient of the row_factors.
};

struct Program {
  Span<const Step> steps;
  Span<Value> values;
  Span<const Weight> weights;
  Span<const AttentionKind> kinds;
  Span<const RopeKind> ropes;
  Span<const KvGroup> kv_groups;
  uint32_t vocab = 0;
  uint32_t max_rows = 0;        // max tokens per run (the prefill chunk)
  uint32_t max_logit_rows = 0;  // max logit rows per run; <= max_rows
  uint32_t max_context = 0;     // positions are below this
  // The first n_encoder_steps steps are the encoder: they run once per sequence, on all its encoder
  // rows. The remaining steps run on the sequence's tokens.
  uint32_t n_encoder_steps = 0;
  uint32_t max_encoder_rows = 0;
  // Quantises the rows multiplied by integer weights to int8 twice: the rows, then the residual.
  // False: once.
  bool splits_rows = false;
  Slice logits;  // Region::kIo, [max_logit_rows, vocab] f32
};

// Return the steps of a run, and the maximum number of rows of a value.
Span<const Step> StepsOf(const Program& program, bool is_encoder);
uint64_t MaxRowsOf(const Program& program, const Value& value);

// True if a kQkvRope step's q norm and k norm each span all heads.
bool NormsSpanHeads(const Program& program, const Step& step);

}  // namespace arn
