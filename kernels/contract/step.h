// Step: an op with that op's parameters. The rest of an op's contract (name, checks, work, dump) is
// in kernels/contract/ops/, and the arguments of its kernels in kernels/contract/ops.h.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>

#include "kernels/contract/activation_list.h"

namespace arn {

// Each op works on Step::in and Step::out; one that works in place has no `out`.
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
  // Ops of the encoder and of cross-attention, the first also of a decoder:
  kFeatures,       // features of the run -> out
  kIm2col,         // in -> out: im2col of a 1D convolution
  kAddPositions,   // in place on in: adds the position's row
  kSelfAttention,  // in [q | k | v] of the whole encoder input -> out; bidirectional
  kStoreKv,        // in [k | v] -> the pages of a group
  kScaleRow,       // in place on in: each row times the sigmoid of a number of its own
  kMultiply,       // in place on in: times columns of another value, times a constant
  kHeadLinear,     // in -> out: a matrix of its own for each head
  // Ops of the decoder again:
  kLinearAttention,  // in [q | k | v] and gates -> out: linear attention with decay, a matrix of
                     // states per head
  kGate,             // in place on in: times an activated gate, with a norm of groups if it has one
  kPool,             // rows in of each sequence -> out, one row a sequence (of the encoder)
  // Ops of the decoder again:
  kMixStreams,     // in and the residual streams: predicts, corrects or averages the streams
  kMatchRms,       // in -> out: times a factor that gives it the root mean square of another value
  kThreshold,      // in place on the first columns of in: keeps what exceeds a quantile of them
  kAdapt,          // in -> out +=: what the adapters of each sequence change of a kLinear
  kAddEmbeddings,  // in place on in: adds columns of the embeddings that tokens have (kEmbed)
  // An op of the encoder again:
  kClamp,  // in place on columns of in: clamps them to a range
  // An op of the decoder again:
  kSteer,  // in place on in: adds what the adapters of each sequence have for the end of a layer
  // An op of the encoder again:
  kNormRows,  // in place on in: a norm of all rows of the run together
};
inline constexpr uint32_t kOpCount = 32;
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
  // Sparse mixer (Liu et al., "GRIN", 2024, arXiv:2409.12136): the largest logit, then the largest
  // of the others, and so on. Each weight is a softmax over the experts not chosen before whose
  // logit is close to the largest of them: within 2 router_jitter, relative.
  kSparseMixer = 2,
};

enum class NormKind : uint8_t {
  kRms = 0,    // x / sqrt(mean(x^2) + epsilon) * weight
  kLayer = 1,  // (x - mean(x)) / sqrt(variance(x) + epsilon) * weight + bias
};

using ValueId = uint16_t;   // index into Program::values
using WeightId = uint32_t;  // index into Program::weights
inline constexpr WeightId kNoWeight = UINT32_MAX;
inline constexpr ValueId kNoValue = UINT16_MAX;

// ---- parameters, one struct per op -------------------------------------------------------------

struct EmbedParams {
  static constexpr Op kOp = Op::kEmbed;
  WeightId weight = kNoWeight;     // [vocab, width of out]
  WeightId positions = kNoWeight;  // f32 rows, one per position, or none
  float factor = 1.0f;             // multiplies the token's row
  // Columns of a row of RunArgs::embeddings. Tokens below 0 take the first ones of theirs, without
  // the factor. 0: they take the table's row of id 0.
  uint32_t embedding_stride = 0;
};

struct RopeAnglesParams {
  static constexpr Op kOp = Op::kRopeAngles;
  uint16_t rope = 0;  // index into Program::ropes
};

struct NormParams {
  static constexpr Op kOp = Op::kNorm;
  WeightId weight = kNoWeight;  // of kRms: [width of in], or [n] for each n neighbours
  WeightId bias = kNoWeight;    // NormKind::kLayer
  float epsilon = 0.0f;
  NormKind kind = NormKind::kRms;
  bool accumulate = false;
  uint32_t group = 0;  // not 0: of kRms, normalises so many neighbours; the weight has them all
};

struct LinearParams {
  static constexpr Op kOp = Op::kLinear;
  WeightId weight = kNoWeight;  // [width of out, width of in]
  bool accumulate = false;
};

struct QkvRopeParams {
  static constexpr Op kOp = Op::kQkvRope;
  uint16_t kind = 0;          // index into Program::kinds
  uint16_t group_layer = 0;   // index inside the KV group
  ValueId angles = kNoValue;  // [rows, rotary_dim]: cos[half] then sin[half]
  bool shares_kv = false;     // `in` is q only; K and V are those of the earlier layer with this
                              // group_layer
  float epsilon = 0.0f;
  // RMSNorm per head if the weight has head_dim elements; over all q (k) heads together if it has
  // as many elements as they have; or none.
  WeightId q_norm = kNoWeight;
  WeightId k_norm = kNoWeight;
  WeightId v_norm = kNoWeight;  // [head_dim] or none
};

struct AttentionParams {
  static constexpr Op kOp = Op::kAttention;
  uint16_t kind = 0;         // index into Program::kinds
  uint16_t group_layer = 0;  // index inside the KV group
  bool shares_kv = false;    // as in QkvRopeParams
  // Relative position bias [distances, n_heads], added to the scores, or none. Row d is for keys d
  // positions before the query; the last row also covers all distances beyond.
  WeightId relative_position_bias = kNoWeight;
  // Attention sinks [n_heads], a logit per head that only adds to the softmax denominator; or none.
  WeightId sinks = kNoWeight;
};

struct GatedActParams {
  static constexpr Op kOp = Op::kGatedAct;
  Activation activation = Activation::kSilu;
  float activation_limit = 0.0f;  // Activation::kClampedSwiglu
};

struct ActParams {
  static constexpr Op kOp = Op::kAct;
  Activation activation = Activation::kSilu;
  // Activation::kXielu: [alpha_p, alpha_n, beta, epsilon], the alphas before their softplus.
  WeightId parameters = kNoWeight;
};

// Bounds the memory of a choice.
inline constexpr uint32_t kMaxRouterGroups = 64;

struct RouteParams {
  static constexpr Op kOp = Op::kRoute;
  uint16_t n_experts = 0;
  uint16_t n_chosen = 0;  // experts per row
  RouteScore route_score = RouteScore::kSoftmax;
  bool norm_topk_prob = false;  // divides the chosen weights by their sum
  // Group-limited routing (Liu et al., 2024, arXiv:2412.19437): chooses among the experts of the
  // n_groups_chosen groups whose two largest scores have the largest sums. 0: no groups.
  uint16_t n_groups = 0;  // of consecutive experts
  uint16_t n_groups_chosen = 0;
  WeightId correction = kNoWeight;  // [n_experts], added to the scores for choosing only; or none
  float topk_epsilon = 0.0f;        // added to the sum that norm_topk_prob divides by
  float topk_least = 0.0f;          // which is at least this
  float router_jitter = 0.0f;       // RouteScore::kSparseMixer
};

struct ExpertsParams {
  static constexpr Op kOp = Op::kExperts;
  WeightId weight = kNoWeight;  // gate_up of the first expert, then its down, then gate_up of the
                                // next expert, ...
  uint16_t n_experts = 0;
  uint16_t n_chosen = 0;          // experts per row
  ValueId topk = kNoValue;        // output of kRoute
  ValueId gathered = kNoValue;    // rows of one expert [width of in]
  ValueId gate_up = kNoValue;     // [2 n]; without a gate [n]
  ValueId activated = kNoValue;   // activation(gate) * up [n]; without a gate the value of gate_up,
                                  // activated in place
  ValueId expert_out = kNoValue;  // [width of out]
  Activation activation = Activation::kSilu;
  bool is_gated = true;
  bool weighs_input = false;      // multiplies an expert's input by its weight, not its output
  bool accumulate = true;         // adds to `out`; else overwrites it
  float activation_limit = 0.0f;  // Activation::kClampedSwiglu

  WeightId gate_up_of(uint32_t expert) const { return weight + 2 * expert; }
  WeightId down_of(uint32_t expert) const { return weight + 2 * expert + 1; }
};

// False in libraries without ARENITE_SPECULATION, in which no head has parts.
#ifdef ARENITE_NO_SPECULATION
inline constexpr bool kHasHeadParts = false;
#else
inline constexpr bool kHasHeadParts = true;
#endif

struct LogitsParams {
  static constexpr Op kOp = Op::kLogits;
  WeightId norm = kNoWeight;    // the final norm
  WeightId bias = kNoWeight;    // of the norm; NormKind::kLayer
  WeightId weight = kNoWeight;  // the head [vocab, width of in]
  float epsilon = 0.0f;
  float factor = 1.0f;   // multiplies the logits
  float softcap = 0.0f;  // then as in AttentionKind
  NormKind norm_kind = NormKind::kRms;
  // Output of kRoute, or none: its ids are of n_parts equal parts of the head's rows. The logits of
  // the other parts are -infinity, and their rows are not read. With parts the factor is 1, and
  // there is no softcap.
  ValueId chosen = kNoValue;
  uint16_t n_parts = 0;
};

// The last [taps, columns of weight] inputs of a sequence, oldest first. The input is the last
// columns of `in`. With is_gated, `in` is [b | c | x], the input is b * x and the result is
// multiplied by c.
struct ConvParams {
  static constexpr Op kOp = Op::kConv;
  WeightId weight = kNoWeight;  // [taps, channels]
  WeightId bias = kNoWeight;    // or none
  uint16_t group = 0;           // index into kv_groups; a group of states
  uint16_t group_layer = 0;     // index inside the group
  uint32_t state_offset = 0;    // f32 elements from the start of the layer's state
  bool is_gated = false;
};

// The result goes to the last columns of `out`.
struct ScanParams {
  static constexpr Op kOp = Op::kScan;
  WeightId rates = kNoWeight;     // A [states, width of in], negative
  WeightId skip = kNoWeight;      // D [width of in], the skip connection from the input
  ValueId time_steps = kNoValue;  // dt [width of in], before the softplus
  ValueId mix = kNoValue;         // [2 states]: B (input to state), then C (state to output)
  uint16_t group = 0;             // as in ConvParams
  uint16_t group_layer = 0;
  uint32_t state_offset = 0;
};

// Heads of states [key_dim, value_dim]. `in` is [q | k | v]: (width of in - width of out) / 2
// elements of q and as many of k, then v, as wide as out. Consecutive heads share a head of q and
// k.
struct LinearAttentionParams {
  static constexpr Op kOp = Op::kLinearAttention;
  // Rows of [2 or 3, heads]: decay rates (A, negative), the bias of the time steps, and the skip
  // connection (D), if any.
  WeightId heads = kNoWeight;
  // Its first columns, as many as `out` has, are of kGate; then come the heads' time steps and, for
  // the delta rule, their betas.
  ValueId gates = kNoValue;
  uint16_t group = 0;  // as in ConvParams
  uint16_t group_layer = 0;
  uint16_t key_dim = 0;
  uint32_t state_offset = 0;
  float time_step_low = 0.0f;   // time steps are at least this, after the softplus
  float time_step_high = 0.0f;  // and at most this; 0: no limit
  bool has_delta_rule = false;
  bool doubles_betas = false;
};

// With a norm, each group of norm_group elements is normalised by its root mean square.
struct GateParams {
  static constexpr Op kOp = Op::kGate;
  WeightId norm = kNoWeight;  // [norm_group], or [width of in], or none
  uint32_t norm_group = 0;
  float epsilon = 0.0f;
  ValueId gate = kNoValue;  // its first columns, as many as `in` has, are the gate
  // Not 0: the gate has one column for each head of so many columns of `in`, and its softplus
  // multiplies the head. There is no norm then, and no activation.
  uint32_t head_dim = 0;
  Activation activation = Activation::kSilu;
  bool norms_first = false;  // multiplies norm(in) by the gate; else normalises in times the gate
};

// The steps of a program copy different columns of a row of features.
struct FeaturesParams {
  static constexpr Op kOp = Op::kFeatures;
  uint32_t first = 0;   // first column
  uint32_t stride = 0;  // columns of a row of features; 0: as wide as `out`
  // A run may leave out so many of the last rows, which are then 0.
  uint16_t optional_rows = 0;
};

struct Im2colParams {
  static constexpr Op kOp = Op::kIm2col;
  uint16_t n_taps = 0;
  uint16_t stride = 1;   // rows of `in` per row of `out`
  uint16_t padding = 0;  // rows of zeros before the first row of `in`, and behind the last
};

// Group normalisation with one group (Wu and He, 2018, arXiv:1803.08494): x becomes (x - mean) /
// sqrt(variance + epsilon) * weight + bias with the mean and variance of all elements of all rows.
// Leaves out the last rows, one for every `stride` rows that the run has left out of its features.
struct NormRowsParams {
  static constexpr Op kOp = Op::kNormRows;
  WeightId weight = kNoWeight;  // [width of in], likewise bias
  WeightId bias = kNoWeight;
  float epsilon = 0.0f;
  uint16_t stride = 1;  // rows of features from a row to the next
};

inline constexpr uint32_t kTokenTypes = 2;

struct AddPositionsParams {
  static constexpr Op kOp = Op::kAddPositions;
  WeightId positions = kNoWeight;  // f32 rows, one per position, or none
  // f32 rows, one per token type, or none: row 0 for SequenceRows::n_first_type rows, then row 1.
  WeightId token_types = kNoWeight;
};

struct SelfAttentionParams {
  static constexpr Op kOp = Op::kSelfAttention;
  uint16_t kind = 0;  // index into Program::kinds
  // As in AttentionParams, but the middle row is for distance 0.
  WeightId relative_position_bias = kNoWeight;
};

// Makes one row of several: those of a text (sentence-transformers' models/Pooling.py), or of the
// patches of an image.
enum class PoolKind : uint8_t {
  kFirst = 0,         // the first row
  kLast = 1,          // the last row
  kMean = 2,          // sum / n
  kMax = 3,           // the largest of each column
  kMeanSqrt = 4,      // sum / sqrt(n)
  kWeightedMean = 5,  // sum of (i + 1) row_i / sum of (i + 1)
  kConcat = 6,        // the first row, then the second, ..; with Program::pool_rows only
};
inline constexpr uint32_t kPoolKindCount = 7;

struct PoolParams {
  static constexpr Op kOp = Op::kPool;
  PoolKind mode = PoolKind::kMean;
  // A pooled row then becomes (row * factor - shift) * scale.
  float factor = 1.0f;
  WeightId shift = kNoWeight;  // [width of out], or none; likewise scale
  WeightId scale = kNoWeight;
};

struct ClampParams {
  static constexpr Op kOp = Op::kClamp;
  WeightId ranges = kNoWeight;  // [2 n]: low and high of each
  uint32_t range = 0;           // which of them
  uint32_t first = 0;           // first column
  uint32_t n_columns = 0;
};

struct StoreKvParams {
  static constexpr Op kOp = Op::kStoreKv;
  uint16_t kind = 0;         // index into Program::kinds
  uint16_t group_layer = 0;  // index inside the KV group
};

struct ScaleRowParams {
  static constexpr Op kOp = Op::kScaleRow;
  ValueId scale = kNoValue;  // [1], before the sigmoid
};

struct MultiplyParams {
  static constexpr Op kOp = Op::kMultiply;
  ValueId by = kNoValue;       // its columns from `first` on; or none
  WeightId scale = kNoWeight;  // [1], or none
  uint32_t first = 0;
  float factor = 1.0f;
};

inline constexpr uint32_t kMaxStreams = 8;

// Alternating updates (AltUp; Baykal et al., 2023): a layer works on one of n residual streams,
// whose change corrects the others.
enum class StreamRule : uint8_t {
  // stream_i += sum of coefs[i n + j] stream_j; in = stream_active.
  kPredict = 0,
  // stream_i += (1 + coefs[i]) (in - stream_active); in = stream_active, times `scale`.
  kCorrect = 1,
  kMean = 2,  // in = the mean of the streams
};
inline constexpr uint32_t kStreamRuleCount = 3;

struct MixStreamsParams {
  static constexpr Op kOp = Op::kMixStreams;
  ValueId streams = kNoValue;  // the first; the others follow. As wide as `in`.
  uint16_t n_streams = 0;
  uint16_t active = 0;         // index of a stream
  ValueId coefs = kNoValue;    // [n * n], [n] or none
  WeightId scale = kNoWeight;  // [width of in], or none: StreamRule::kCorrect
  StreamRule rule = StreamRule::kPredict;
};

// out = in * rms(like) / sqrt(max(mean(in^2), epsilon)).
struct MatchRmsParams {
  static constexpr Op kOp = Op::kMatchRms;
  ValueId like = kNoValue;
  float epsilon = 0.0f;
};

// x = max(0, x - (mean + deviations * standard deviation)), of the first n_columns of `in`.
struct ThresholdParams {
  static constexpr Op kOp = Op::kThreshold;
  uint32_t n_columns = 0;
  float deviations = 0.0f;
};

// Tokens of the vocabulary leave their row as it is (DeepStack; Meng et al., 2024,
// arXiv:2406.04334).
struct AddEmbeddingsParams {
  static constexpr Op kOp = Op::kAddEmbeddings;
  uint32_t first = 0;   // first column
  uint32_t stride = 0;  // that of kEmbed
};

// Behind the kLinear of this weight, with its in and out.
struct AdaptParams {
  static constexpr Op kOp = Op::kAdapt;
  WeightId weight = kNoWeight;  // [width of out, width of in]
};

struct SteerParams {
  static constexpr Op kOp = Op::kSteer;
  uint32_t layer = 0;  // whose output `in` is: the residual stream
};

// A head of `in` is [first columns | width of gathered], one of `out` is [n_copied columns | width
// of projected]: the first n_copied columns of the head of `in`, and its last times the head's
// matrix. Behind the heads, `out` has the two tails.
struct HeadLinearParams {
  static constexpr Op kOp = Op::kHeadLinear;
  WeightId weight = kNoWeight;  // [width of projected, width of gathered]; the next head's follows
  uint16_t n_heads = 0;
  uint16_t first = 0;
  uint16_t n_copied = 0;        // at most `first`
  ValueId gathered = kNoValue;  // rows of one head
  ValueId projected = kNoValue;
  ValueId tails[2] = {kNoValue, kNoValue};  // or none
};

// The largest of the structs above; a larger one does not compile.
inline constexpr size_t kMaxParamsBytes = sizeof(LogitsParams);

// ---- Step --------------------------------------------------------------------------------------

// Plain data of 40 bytes. Constructed from the parameters, so that op and parameters always belong
// together.
class Step {
 public:
  uint16_t layer = 0;  // for messages and dumps
  ValueId in = kNoValue;
  ValueId out = kNoValue;

  Step() : Step(EmbedParams()) {}
  // in and out: kNoValue where the op has none.
  template <typename Params>
  explicit Step(const Params& params, ValueId in_id = kNoValue, ValueId out_id = kNoValue,
                uint32_t layer_index = 0)
      : layer(static_cast<uint16_t>(layer_index)), in(in_id), out(out_id), op_(Params::kOp) {
    static_assert(std::is_trivially_copyable_v<Params> && sizeof(Params) <= kMaxParamsBytes &&
                  alignof(Params) <= alignof(uint32_t));
    new (params_) Params(params);
  }

  Op op() const { return op_; }

  // Returns the parameters, or null if the step is of another op.
  template <typename Params>
  const Params* If() const {
    return op_ == Params::kOp ? std::launder(reinterpret_cast<const Params*>(params_)) : nullptr;
  }
  template <typename Params>
  Params* If() {
    return op_ == Params::kOp ? std::launder(reinterpret_cast<Params*>(params_)) : nullptr;
  }
  // REQUIRES: the step is of this op.
  template <typename Params>
  const Params& Get() const {
    assert(op_ == Params::kOp);
    return *std::launder(reinterpret_cast<const Params*>(params_));
  }
  template <typename Params>
  Params& Get() {
    assert(op_ == Params::kOp);
    return *std::launder(reinterpret_cast<Params*>(params_));
  }

 private:
  Op op_;
  alignas(uint32_t) std::byte params_[kMaxParamsBytes] = {};
};
static_assert(std::is_trivially_copyable_v<Step> && sizeof(Step) == 40);

// Values, weights and matrices that a step names, besides in and out. kNoValue and kNoWeight are
// left out.
struct StepOperands {
  static constexpr uint32_t kMaxValues = kMaxStreams + 1, kMaxWeights = 3;
  ValueId values[kMaxValues] = {};
  uint32_t n_values = 0;
  WeightId weights[kMaxWeights] = {};  // read whole in every run: vectors, and small f32 matrices
  uint32_t n_weights = 0;
  WeightId first_matrix = kNoWeight;  // matrices of matmuls, one after the other
  uint32_t n_matrices = 0;
  bool accumulates = false;  // adds to out

  // True if the step multiplies by matrix `id`.
  bool Multiplies(WeightId id) const {
    return id >= first_matrix && id - first_matrix < n_matrices;
  }

  void AddValue(ValueId id) {
    if (id != kNoValue) values[n_values++] = id;
  }
  void AddWeight(WeightId id) {
    if (id != kNoWeight) weights[n_weights++] = id;
  }
};
StepOperands OperandsOf(const Step& step);

}  // namespace arn
