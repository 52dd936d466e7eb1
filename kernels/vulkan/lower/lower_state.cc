// Lowers layers with a fixed-size state: short convolutions, selective scans and linear attention
// with its gate.
#include "kernels/contract/ops.h"
#include "kernels/vulkan/lower/lower.h"
#include "platform/base/arith.h"

namespace arn::vulkan {
namespace {

// Sets what shaders/state.glsl reads.
template <typename Params, typename Push>
void SetState(const Program& program, const Params& p, Push* push) {
  SetPools(program.kv_groups[p.group], push);
  push->layer = p.group_layer;
  push->group = p.group;
  push->state_at = p.state_offset;
}

// How linear_attention.comp divides the states of a head.
struct LinearTile {
  static constexpr uint32_t kMaxKeys = 512;  // of which shared memory holds two rows
  static constexpr uint32_t kColumns = 16;   // of a workgroup: a whole number of them is a panel
  uint32_t parts = 0;                        // of the keys, four columns each
  uint32_t block = 0;                        // rows in shared memory at a time
  constexpr uint32_t lanes() const { return parts * kColumns / 4; }
};
static_assert(kStateColumns % LinearTile::kColumns == 0);

constexpr uint32_t PartsOf(uint32_t key_dim) { return key_dim <= 128 ? 16 : 32; }

// Returns the bytes of shared memory: rows, factors, the sums of each invocation, twice, those of
// squares, and what common.glsl declares.
constexpr uint64_t LinearBytes(const LinearTile& tile, uint32_t key_dim, bool has_delta_rule) {
  constexpr uint64_t kFloat = sizeof(float), kQuad = 4 * kFloat;
  const uint64_t keys = AlignUp(key_dim, tile.parts), delta = has_delta_rule ? 1 : 0;
  const uint64_t rows = (2 * tile.block + delta) * keys + tile.block * LinearTile::kColumns;
  return rows * kFloat + (tile.block + 1) * kQuad +
         tile.lanes() * (2 * (1 + delta) * kQuad + 3 * kFloat);
}
static_assert(LinearBytes({PartsOf(LinearTile::kMaxKeys), 1}, LinearTile::kMaxKeys, true) <=
              Device::kMinSharedMemory);

LinearTile LinearTileOf(uint32_t key_dim, bool has_delta_rule) {
  constexpr uint32_t kMaxBlock = 8;
  LinearTile tile = {PartsOf(key_dim), kMaxBlock};
  while (LinearBytes(tile, key_dim, has_delta_rule) > Device::kMinSharedMemory) tile.block /= 2;
  return tile;
}

}  // namespace

Status Lowering::Lower(const Step& step, const ConvParams& p) {
  const Weight& weight = program_.weights[p.weight];
  Dispatch d = Begin(Shader::kConv, step);
  d.constants[kConvIsGatedId] = p.is_gated ? 1 : 0;
  d.constants[kConvHasBiasId] = p.bias != kNoWeight ? 1 : 0;
  if (fusion_.ending == Ending::kActivation) {
    const Step& act = (&step)[1];
    d.constants[kConvIsActivatedId] = 1;
    d.constants[kConvActivationId] = static_cast<uint32_t>(act.Get<ActParams>().activation);
  }
  BindValue(&d, 1, step.in);
  BindValue(&d, 2, step.out);
  BindVector(&d, 3, p.weight);
  BindVector(&d, 4, p.bias);
  SetKvFormat(&d, program_.kv_groups[p.group]);
  ConvPush push = {};
  SetState(program_, p, &push);
  push.width = weight.cols;
  push.in_stride = Width(step.in);
  push.taps = weight.rows;
  push.weight_stride = static_cast<uint32_t>(WeightAt(p.weight).row_bytes / sizeof(float));
  d.SetPush(push);
  d.groups_x = static_cast<uint32_t>(CeilDiv(weight.cols, kWidth));
  d.work = uint64_t{weight.rows} * weight.cols;
  return Add(d);
}

Status Lowering::Lower(const Step& step, const ScanParams& p) {
  const Weight& rates = program_.weights[p.rates];
  for (const bool passes_by : {true, false}) {
    Dispatch d = Begin(Shader::kScan, step);
    if (!passes_by) d.rows = GridRows::kSequences;
    const WeightId weight = passes_by ? p.skip : p.rates;
    d.constants[kScanPassesById] = passes_by ? 1 : 0;
    d.constants[kScanStatesId] = rates.rows;
    BindValue(&d, 1, step.in);
    BindValue(&d, 2, step.out);
    BindVector(&d, 3, weight);
    BindValue(&d, 4, p.time_steps);
    BindValue(&d, 5, p.mix);
    SetKvFormat(&d, program_.kv_groups[p.group]);
    ScanPush push = {};
    SetState(program_, p, &push);
    push.width = rates.cols;
    push.out_stride = Width(step.out);
    push.weight_stride = static_cast<uint32_t>(WeightAt(weight).row_bytes / sizeof(float));
    d.SetPush(push);
    d.groups_x = static_cast<uint32_t>(CeilDiv(rates.cols, kWidth));
    // 8 per state: an exponential costs several multiplications.
    d.work = 8 * uint64_t{rates.rows} * rates.cols;
    ARN_TRY(Add(d));
  }
  return Status::kOk;
}

Status Lowering::Lower(const Step& step, const LinearAttentionParams& p) {
  if (p.key_dim > LinearTile::kMaxKeys) {
    return UnsupportedError(step, "keys of more than 512 elements");
  }
  const LinearAttentionArgs args = LinearAttentionOf(program_, step);
  const LinearTile tile = LinearTileOf(args.key_dim, args.has_delta_rule);
  Dispatch d = Begin(Shader::kLinearAttention, step);
  d.rows = GridRows::kSequences;
  d.constants[kWidthId] = tile.lanes();
  d.constants[kLinearKeyDimId] = args.key_dim;
  d.constants[kLinearPartsId] = tile.parts;
  d.constants[kLinearBlockId] = tile.block;
  d.constants[kLinearPanelId] = kStateColumns;
  d.constants[kLinearHasDeltaRuleId] = args.has_delta_rule ? 1 : 0;
  d.constants[kLinearHasSkipId] = args.has_skip ? 1 : 0;
  BindValue(&d, 1, step.in);
  BindValue(&d, 2, step.out);
  BindVector(&d, 3, p.heads);
  BindValue(&d, 4, p.gates);
  SetKvFormat(&d, program_.kv_groups[p.group]);
  LinearAttentionPush push = {};
  SetState(program_, p, &push);
  push.n_heads = args.n_heads;
  push.heads_per_key = args.heads_per_key;
  push.value_dim = args.value_dim;
  push.weight_stride = static_cast<uint32_t>(WeightAt(p.heads).row_bytes / sizeof(float));
  push.gates_stride = static_cast<uint32_t>(args.gates_stride);
  push.beta_factor = args.beta_factor;
  push.time_step_low = args.time_step_low;
  push.time_step_high = args.time_step_high;
  push.length_epsilon = kLengthEpsilon;
  d.SetPush(push);
  d.groups_x = args.n_heads * static_cast<uint32_t>(CeilDiv(args.value_dim, LinearTile::kColumns));
  d.work = 4 * uint64_t{args.key_dim} * Width(step.out);
  return Add(d);
}

Status Lowering::Lower(const Step& step, const GateParams& p) {
  const GateArgs args = GateOf(program_, p);
  Dispatch d = Begin(Shader::kGate, step);
  d.constants[kActivationId] = static_cast<uint32_t>(args.activation);
  d.constants[kGateIsOfHeadsId] = args.head_dim != 0 ? 1 : 0;
  BindValue(&d, 1, p.gate);
  BindValue(&d, 2, step.in);
  BindVector(&d, 3, p.norm);
  GatePush push = {};
  push.width = Width(step.in);
  push.stride = Width(p.gate);
  push.head_dim = args.head_dim;
  if (p.norm == kNoWeight) {
    d.groups_x = static_cast<uint32_t>(CeilDiv(push.width, kWidth));
  } else {
    d.constants[kGateNormId] = args.norms_first ? kGateNormPrecedes : kGateNormFollows;
    SetRow(&d, args.norm_group);
    push.n = args.norm_group;
    push.group_weights = args.norm_repeats ? 0 : args.norm_group;
    push.epsilon = args.epsilon;
    d.groups_x = push.width / args.norm_group;
  }
  if (fusion_.ending == Ending::kQuantize) {
    Dispatch few = d;
    few.modes = fusion_.modes;
    few.constants[kRowQuantizesId] = 1;
    Bind(&few, 5, PlaceOf(workspace_.few_quantized));
    push.values_at = QuantizedHeadWords(kFewRows);
    push.row_words = QuantizedWords(push.width);
    few.SetPush(push);
    SetQuantized(few.modes, workspace_.few_quantized, kFewRows);
    ARN_TRY(Add(few));
    d.modes &= static_cast<uint8_t>(~fusion_.modes);
  }
  d.SetPush(push);
  return Add(d);
}

}  // namespace arn::vulkan
