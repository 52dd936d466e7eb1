// Program: the list of coarse steps that a decoder is. It is the contract between the runtime,
// which builds it from a bundle's layer kinds, and the backends, which run it. Plain data: no
// pointers to code.
#pragma once

#include <cstdint>

#include "kernels/kv_view.h"
#include "kernels/weight.h"
#include "platform/base/layout.h"
#include "platform/base/span.h"

namespace arn {

enum class Op : uint8_t {
  kEmbed,       // token ids -> out: the token's row times a factor, plus the position's row
  kRopeAngles,  // positions -> out: cos and sin of one rope kind, shared by the layers that use it
  kNorm,        // in -> out, or out += when accumulate
  kLinear,      // in -> out, or out += when accumulate
  kQkvRope,     // in place on in: q/k norm, RoPE; then K and V are appended to the pages (unless
                // the layer shares another's)
  kAttention,   // in (q part) and the pages -> out
  kGatedAct,    // in [gate | up] -> out
  kAct,         // in place on in
  kRoute,       // router logits in -> out [n_chosen ids, n_chosen weights]: the experts of each row
  kExperts,     // in and routes -> out +=: the weighted sum of what each row's experts make of it
  kLogits,      // in -> logits (final norm + head) of the rows that were asked for
  kConv,        // in -> out: each channel's convolution over the tokens of its sequence
  kScan,        // in, time steps and mix -> out: a state that each token decays and adds to
  // Of what a sequence attends to beside its own tokens, its source:
  kFeatures,       // the features of the run -> out
  kUnfold,         // in -> out: each row with its neighbours, what a convolution multiplies
  kAddPositions,   // in place on in: the position's row is added
  kSelfAttention,  // in [q | k | v] of the whole source -> out; each row sees all
  kStoreKv,        // in [k | v] -> the pages of a group
};
inline constexpr uint32_t kOpCount = 18;
const char* OpName(Op op);  // "embed", "rope_angles", ...

enum class Activation : uint8_t {
  kSilu = 0,      // x sigmoid(x)
  kGeluTanh = 1,  // x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
  kGelu = 2,      // x/2 (1 + erf(x / sqrt 2))
  // Of kGatedAct and kExperts alone: min(gate, limit) sigmoid(1.702 min(gate, limit)) times
  // (1 + up), with up held to [-limit, limit] (OpenAI, arXiv:2508.10925, section 2).
  kClampedSwiglu = 3,
  kRelu = 4,  // max(x, 0)
};
inline constexpr uint32_t kActivationCount = 5;

// What an expert's weight is made of.
enum class RouteScore : uint8_t {
  kSoftmax = 0,  // over the logits of all experts
  kSigmoid = 1,  // of its own logit
};

enum class NormKind : uint8_t {
  kRms = 0,    // x / sqrt(mean(x^2) + epsilon) * weight
  kLayer = 1,  // (x - mean(x)) / sqrt(variance(x) + epsilon) * weight + bias
};

using ValueId = uint16_t;   // index into Program::values
using WeightId = uint32_t;  // index into Program::weights
// Heads wider than this have no place in the kernels' scratch.
inline constexpr uint32_t kMaxHeadDim = 1024;
// Neither have longer convolutions, nor more states a channel.
inline constexpr uint32_t kMaxConvTaps = 64;
inline constexpr uint32_t kMaxScanStates = 256;
inline constexpr WeightId kNoWeight = UINT32_MAX;
inline constexpr ValueId kNoValue = UINT16_MAX;
inline constexpr uint32_t kNoRope = UINT32_MAX;
inline constexpr uint32_t kNoGroup = UINT32_MAX;

// An activation: [rows, width] f32, row-major. Row stride is width.
struct Value {
  const char* name = nullptr;
  uint32_t width = 0;
  uint16_t row_factor = 1;  // rows for each row of a run
  bool is_source = false;   // written by the steps of the source
  uint32_t first_step = 0;  // written first by this step
  uint32_t last_step = 0;   // read last by this step
  Slice slice;              // Region::kActivations, placed by the memory plan
};

// What a layer's attention needs besides its weights. Layers of the same kind share one entry.
struct AttentionKind {
  uint32_t n_heads = 0;     // 0: layers of this kind have no attention, the rest says nothing
  uint32_t n_kv_heads = 0;  // divides n_heads
  uint32_t head_dim = 0;
  uint32_t window = 0;   // a query at p sees keys at p - window + 1 .. p; 0: all up to p
  uint32_t chunk = 0;    // and none before its chunk's first position, p - p % chunk; 0: no chunks
  float scale = 0.0f;    // multiplies q.k
  float softcap = 0.0f;  // then a score s becomes softcap * tanh(s / softcap); 0: it stays
  uint32_t rope = 0;     // index into Program::ropes, or kNoRope: nothing is rotated
  uint32_t group = 0;    // index into Program::kv_groups, or kNoGroup: of kSelfAttention alone
  // q at position p is multiplied by 1 + temperature * log(1 + floor((p + 1) / temperature_step));
  // 0: it stays.
  float temperature = 0.0f;
  uint32_t temperature_step = 0;
  // Keys and values are those of the sequence's source, all of which every query sees; the group
  // has one page a sequence with room for all of it. window, chunk and rope say nothing.
  bool sees_source = false;
};

// The kind of kStoreKv, which is kQkvRope of rows that have no queries.
AttentionKind WithoutQueries(AttentionKind kind);

// What q at `position` is multiplied by (what transformers' configurations call
// attn_temperature_tuning, with attn_scale and floor_scale).
float QueryTemperature(const AttentionKind& kind, uint32_t position);

// RoPE (half-split pairs: element i turns with element i + rotary_dim / 2). Angle of pair i at
// position p is p * inv_freq[i], in f32 as the reference computes it; cos and sin are multiplied by
// `amplitude` (YaRN's attention factor, otherwise 1).
struct RopeKind {
  uint32_t rotary_dim = 0;  // even, <= head_dim; elements past it are not rotated
  float amplitude = 1.0f;
  Span<const float> inv_freq;  // [rotary_dim / 2]
};

struct Step {
  Op op = Op::kEmbed;
  bool accumulate = false;                        // kLinear, kNorm
  bool renormalise = false;                       // kRoute: the chosen experts' weights add up to 1
  RouteScore route_score = RouteScore::kSoftmax;  // kRoute
  bool weighs_input = false;                  // kExperts: what an expert reads has its weight as a
                                              // factor, and not what it makes
  bool shares_kv = false;                     // kQkvRope, kAttention: `in` is q alone; K and V are
                                              // those of the earlier layer with this group_layer
  Activation activation = Activation::kSilu;  // kGatedAct, kAct
  NormKind norm_kind = NormKind::kRms;        // kNorm, kLogits
  uint16_t layer = 0;                         // for messages and dumps
  uint16_t kind = 0;                          // kQkvRope, kAttention: index into Program::kinds
  uint16_t group_layer = 0;  // kQkvRope, kAttention, kConv, kScan: index inside the KV group
  ValueId in = kNoValue;
  ValueId out = kNoValue;
  ValueId angles = kNoValue;   // kQkvRope: [rows, rotary_dim]: cos[half] then sin[half]
  ValueId routes = kNoValue;   // kExperts: what kRoute made
  ValueId scratch = kNoValue;  // kExperts: the first of four values that follow each other: rows of
                               // one expert [width of in], gate and up [2 n], their product [n],
                               // the expert's output [width of out]
  uint16_t n_experts = 0;      // kRoute, kExperts
  uint16_t n_chosen = 0;       // kRoute, kExperts: of each row
  WeightId weight = kNoWeight;  // kEmbed, kNorm, kLinear, kLogits (head); kExperts: gate_up of the
                                // first expert, followed by its down, the next one's gate_up, ...
  WeightId q_norm = kNoWeight;  // kQkvRope: RMSNorm of each head when it has head_dim elements, of
  WeightId k_norm = kNoWeight;  // all q (k) heads as one when it has theirs
  WeightId norm = kNoWeight;    // kLogits: the final norm
  WeightId bias = kNoWeight;    // NormKind::kLayer; kConv
  WeightId positions = kNoWeight;  // kEmbed: f32 rows, one for each position, or none
  // kAttention, kSelfAttention: [distances, n_heads], added to the scores. Row d is of keys that
  // are d - origin positions before the query, the first and last also of all beyond; origin is 0
  // in kAttention, the middle row in kSelfAttention, which sees both ways. Or none.
  WeightId distance_bias = kNoWeight;
  WeightId sinks = kNoWeight;     // kAttention: [n_heads], a score of each head's softmax that
                                  // takes its share and adds nothing; or none
  float epsilon = 0.0f;           // kNorm, kQkvRope, kLogits
  float factor = 1.0f;            // kEmbed: of the token's row; kLogits: of the logits
  float softcap = 0.0f;           // kLogits: as AttentionKind's, after the factor
  float activation_limit = 0.0f;  // kGatedAct, kExperts: of Activation::kClampedSwiglu
  uint16_t rope = 0;              // kRopeAngles
  // kConv: of the last [taps, columns of weight] inputs of a sequence, oldest first; `bias` may be
  // there. The input is the last columns of `in`; when is_gated, `in` is [b | c | x], the input is
  // b * x and the result is multiplied by c.
  // kScan: weight is [states, width of in], the rates of decay, negative; the result goes into the
  // last columns of `out`.
  bool is_gated = false;
  ValueId time_steps = kNoValue;  // kScan: [width of in], before the softplus
  ValueId mix = kNoValue;         // kScan: [2 states]: what goes into the states, what out of them
  WeightId skip = kNoWeight;      // kScan: [width of in], of the input that passes by
  uint16_t group = 0;             // kConv, kScan: index into kv_groups, one of states
  uint32_t state_offset = 0;      // kConv, kScan: elements from the start of the layer's state
  uint16_t n_taps = 0;  // kUnfold: odd; the row in the middle is the row itself. in's rows
                        // that a row of out steps on by: the quotient of row_factors
};

struct Program {
  Span<const Step> steps;
  Span<Value> values;
  Span<const Weight> weights;
  Span<const AttentionKind> kinds;
  Span<const RopeKind> ropes;
  Span<const KvGroup> kv_groups;
  uint32_t vocab = 0;
  uint32_t max_rows = 0;        // tokens in one run at most (the prefill chunk)
  uint32_t max_logit_rows = 0;  // rows of logits in one run at most; <= max_rows
  uint32_t max_context = 0;     // positions are below this
  // The first steps are those of the source: they run once for a sequence, on all rows of its
  // source. The others run on its tokens.
  uint32_t n_source_steps = 0;
  uint32_t max_source_rows = 0;
  Slice logits;  // Region::kIo, [max_logit_rows, vocab] f32
};

// The steps of a run, and how many rows a value has at most.
Span<const Step> StepsOf(const Program& program, bool is_source);
uint64_t MaxRowsOf(const Program& program, const Value& value);

// Whether a kQkvRope step's q norm and k norm are each one over all heads.
bool NormsSpanHeads(const Program& program, const Step& step);

}  // namespace arn
