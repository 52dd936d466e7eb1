// Lowers matmuls: kLinear, and the norm and head of kLogits.
#include <bit>

#include "kernels/contract/backend.h"
#include "kernels/vulkan/device/device.h"
#include "kernels/vulkan/lower/matmul.h"
#include "platform/base/arith.h"

namespace arn::vulkan {
namespace {

constexpr uint32_t kSliceTile = 32;     // slices of outputs are multiples of it
constexpr uint32_t kFewRowTile = 4;     // rows per read of the weights
constexpr uint32_t kMaxGroups = 65535;  // per grid dimension, on every device
constexpr uint32_t kSliceOuts = 4;      // outputs per workgroup in the longest slice
constexpr uint64_t kCached = 16 << 20;  // bytes that a cache may hold besides the tiles at work

}  // namespace

bool IsInteger(const Weight& weight) { return arn::IsInteger(weight.dtype); }

uint32_t Lowering::SliceRows(uint32_t row_bytes) {
  const auto rows = static_cast<uint32_t>(Min<uint64_t>(
      Device::kMaxBindingBytes / Max<uint32_t>(row_bytes, 1), uint64_t{kMaxGroups} * kSliceOuts));
  // Whole tiles; with rows of at least 16 bytes this also gives the alignment of a binding.
  return Max(rows / kSliceTile * kSliceTile, kSliceTile);
}

Status Lowering::AddQuantize(const Matmul& matmul) {
  if (matmul.is_quantized) return Status::kOk;
  const Weight& weight = program_.weights[matmul.weight];
  Dispatch d = Begin(Shader::kQuantize, *matmul.step);
  d.modes &= static_cast<uint8_t>(~done_modes_);
  d.row_factor = matmul.row_factor;
  if (matmul.is_logits) {
    d.rows = GridRows::kLogits;
    d.first_row = matmul.first_row;
    d.most_rows = matmul.most_rows;
  }
  Bind(&d, 1, matmul.in);
  SetRow(&d, weight.cols);
  QuantizePush push = {};
  push.n = weight.cols;
  Quantize(&d, &push, matmul.max_rows);
  d.SetPush(push);
  return Add(d);
}

uint32_t Lowering::VariantFor(Mode kernel, DType dtype) const {
  const auto mode = static_cast<uint32_t>(kernel), type = static_cast<uint32_t>(dtype);
  const uint32_t index = traits_.choices.of[mode][type];
  return IsUsable(traits_.matmuls, kernel, dtype, index) ? index : 0;
}

void Lowering::SetOutputs(Mode kernel, DType dtype, uint32_t n_outs, Dispatch* d) const {
  const GemvVariant& v = GemvVariantOf(VariantFor(kernel, dtype));
  const uint32_t one_subgroup = OneSubgroup(traits_.matmuls);
  d->avoid = v.avoid;
  if (v.lanes != 0) {
    d->constants[kWidthId] = v.lanes;
  } else if (one_subgroup != 0) {
    d->constants[kWidthId] = one_subgroup;
    d->constants[kOneSubgroupId] = 1;
  }
  uint32_t outs = v.outs;
  while (CeilDiv(n_outs, outs) > kMaxGroups) outs *= 2;
  d->constants[kMatmulOutsId] = outs;
  d->groups_x = static_cast<uint32_t>(CeilDiv(n_outs, outs));
}

void Lowering::SetTeams(Dispatch* d) const {
  if (d->constants[kOneSubgroupId] == 0) return;
  const uint32_t most = Max(d->groups_x / traits_.least_team_groups, 1u);
  ShareWorkgroup(Min(traits_.most_teams, std::bit_floor(most)), d);
}

void Lowering::ShareWorkgroup(uint32_t teams, Dispatch* d) {
  if (teams == 1) return;
  d->constants[kOneSubgroupId] = 0;
  d->constants[kWidthId] *= teams;
  d->constants[kMatmulTeamsId] = teams;
  d->groups_x = static_cast<uint32_t>(CeilDiv(d->groups_x, teams));
}

Slice Lowering::NextQuantized(uint8_t modes) const {
  const QuantizedRows& in = quantized_rows_[std::countr_zero(modes)];
  const bool is_second = in.rows != 0 && in.slice.offset == workspace_.few_quantized.offset;
  return is_second ? workspace_.quantized : workspace_.few_quantized;
}

Lowering::EndingNorm Lowering::EndingNormOf(const Step& step) const {
  if (const auto* p = step.If<LogitsParams>()) {
    return {.kind = p->norm_kind,
            .is_quantised = IsInteger(program_.weights[p->weight]),
            .epsilon = p->epsilon,
            .weight = p->norm,
            .bias = p->bias,
            .out = workspace_.normed,
            .width = Width(step.in)};
  }
  const auto& p = step.Get<NormParams>();
  return {.kind = p.kind,
          .accumulates = p.accumulate,
          .is_quantised = IsQuantizedNext(step),
          .epsilon = p.epsilon,
          .weight = p.weight,
          .bias = p.bias,
          .out = program_.values[step.out].slice,
          .width = Width(step.out)};
}

void Lowering::EndWithActivation(const Step& act, Mode mode, Dispatch* d) {
  const auto* gated = act.If<GatedActParams>();
  const ValueId out = gated != nullptr ? ActivatedRows(program_, (&act)[-1]) : act.in;
  auto push = d->Push<MatmulPush>();
  if (gated != nullptr) {
    d->constants[kMatmulActivatesId] = kActivatesPairs;
    d->constants[kMatmulActivationId] = static_cast<uint32_t>(gated->activation);
    Bind(d, 2, PlaceOfValue(out));
    push.limit = gated->activation_limit;
    push.out_stride = Width(act.out);
  } else {
    d->constants[kMatmulActivatesId] = kActivatesOutputs;
    d->constants[kMatmulActivationId] = static_cast<uint32_t>(act.Get<ActParams>().activation);
  }
  if (mode != Mode::kMany && IsQuantizedNext(act)) {
    SetTeams(d);
    EndWithQuantised(Width(gated != nullptr ? act.out : act.in), d, &push);
  }
  d->SetPush(push);
}

Status Lowering::AddQuantizeOfActivated(const Step& act) {
  // Activations behind convolutions are quantised by the matmul's own dispatch.
  quantizes_ = quantizes_ && (&act)[-1].op() == Op::kLinear;
  if (!quantizes_) return Status::kOk;
  const Value& rows = program_.values[act.out != kNoValue ? act.out : act.in];
  Dispatch d = Begin(Shader::kQuantize, act);
  d.modes = BitOf(Mode::kMany);
  BindValue(&d, 1, activated_ != kNoValue ? activated_ : act.in);
  SetRow(&d, rows.width);
  QuantizePush push = {};
  push.n = rows.width;
  Quantize(&d, &push, MaxRowsOf(program_, rows));
  d.SetPush(push);
  return Add(d);
}

void Lowering::EndWithRotation(const Step& step, Dispatch* d) {
  const auto& p = step.Get<QkvRopeParams>();
  const KvGroup& group = program_.kv_groups[program_.kinds[p.kind].group];
  d->constants[kMatmulRotatesId] = 1;
  SetRotation(p, d);
  auto push = d->Push<MatmulPush>();
  push.epsilon = p.epsilon;
  // Windows onto the pages, but for the norms.
  for (const uint32_t binding : {6u, 7u, 8u, 9u}) BindAt(d, binding, Place());
  const WeightId norms[] = {p.q_norm, p.k_norm, p.v_norm};
  uint32_t MatmulPush::*const starts[] = {&MatmulPush::ARN_ROPE_Q_NORM_AT,
                                          &MatmulPush::ARN_ROPE_K_NORM_AT,
                                          &MatmulPush::ARN_ROPE_V_NORM_AT};
  for (uint32_t i = 0; i < 3; ++i) {
    if (norms[i] != kNoWeight) push.*starts[i] = BindAt(d, 7 + i, PlaceOfVector(norms[i]));
  }
  const KvPool pool = PoolOf(group.active, group.keys_only);
  push.ARN_ROPE_POOL_AT = pool.at + p.group_layer * pool.layer_stride;
  push.ARN_ROPE_PAGE_STRIDE = pool.page_stride;
  push.ARN_ROPE_V_AT = pool.v_at;
  push.ARN_ROPE_K_SCALES_AT = pool.k_scales_at;
  push.ARN_ROPE_V_SCALES_AT = pool.v_scales_at;
  push.ARN_ROPE_GROUP = program_.kinds[p.kind].group;
  d->SetPush(push);
  if (d->constants[kQkvRotaryDimId] == 0) return;
  const DType dtype = static_cast<DType>(d->constants[kMatmulTypeId]);
  Bind(d, arn::IsInteger(dtype) ? 1 : 5, PlaceOfValue(p.angles));
}

bool Lowering::Attends(const Step& matmul) const {
  return traits_.fuses && traits_.n_windows == 1 &&
         IsAttended(program_, matmul, traits_.segment_positions);
}

void Lowering::EndWithAttention(const Step& step, Dispatch* d) {
  const AttentionKind& kind = program_.kinds[step.Get<AttentionParams>().kind];
  uint32_t* c = d->constants;
  if (c[kOneSubgroupId] == 1) {
    // As many invocations as attention has in a dispatch of its own, with outputs of one head.
    const uint32_t most = Max(kAttentionWidth / c[kWidthId], 1u);
    uint32_t teams = std::bit_floor(Min(traits_.most_teams, most));
    while (kind.head_dim % (c[kMatmulOutsId] * teams) != 0) teams /= 2;
    ShareWorkgroup(teams, d);
  }
  const AttentionLanes lanes = LanesOf(kind.head_dim, c[kWidthId]);
  c[kMatmulAttendsId] = 1;
  c[kAttendPartsId] = lanes.n_parts;
  c[kAttendPerLaneId] = lanes.per_lane;
  c[kAttendHeadsId] = kind.n_heads / kind.n_kv_heads;
  auto push = d->Push<MatmulPush>();
  push.factor = kind.attention_scale;
  push.softcap = kind.softcap;
  push.next_at = BindAt(d, 9, PlaceOf(NextQuantized(d->modes)));
  push.next_values_at = QuantizedHeadWords(kFewRows);
  push.next_words = QuantizedWords(Width(step.out));
  d->SetPush(push);
  d->context = Context::kShort;
}

void Lowering::SetTile(DType dtype, uint32_t n_outs, Dispatch* d) const {
  const GemmVariant& v = GemmVariantOf(VariantFor(Mode::kMany, dtype));
  d->avoid = v.avoid;
  d->row_tile = v.tile_m;
  d->groups_x = static_cast<uint32_t>(CeilDiv(n_outs, v.tile_n));
  d->constants[kMatmulTileMId] = v.tile_m;
  d->constants[kMatmulTileNId] = v.tile_n;
  d->constants[kMatmulBlocksId] = v.blocks;
  if (v.subgroups == 0) {
    d->constants[kWidthId] = v.lanes;
    d->constants[kMatmulLanesNId] = v.lanes_n;
    d->constants[kMatmulDepthId] = v.depth;
    if (v.is_half) d->shader = Shader::kGemmHalf;
    return;
  }
  d->shader = Shader::kGemmCoop;
  d->avoid = kAvoidDot;  // not compiled with dot products
  const CoopShape& coop = traits_.matmuls.coop;
  d->constants[kWidthId] = v.subgroups * traits_.matmuls.subgroup_size;
  d->constants[kMatmulCoopMId] = coop.m;
  d->constants[kMatmulCoopNId] = coop.n;
  d->constants[kMatmulCoopKId] = coop.k;
  d->constants[kMatmulSubgroupsId] = v.subgroups;
  d->constants[kMatmulSubgroupsNId] = v.subgroups_n;
}

Dispatch Lowering::MatmulOf(const Matmul& matmul, Mode kernel, uint32_t first_out,
                            uint32_t n_outs) const {
  const Step& step = *matmul.step;
  const Weight& weight = program_.weights[matmul.weight];
  const DeviceWeight at = WeightAt(matmul.weight);
  const bool is_integer = IsInteger(weight), is_tiled = kernel == Mode::kMany;
  Dispatch d = Begin(is_tiled ? (is_integer ? Shader::kGemmInt : Shader::kGemmFloat)
                              : (is_integer ? Shader::kGemvInt : Shader::kGemvFloat),
                     step);
  d.modes = BitOf(kernel);
  d.row_factor = matmul.row_factor;
  d.head.row_factor = matmul.row_factor;
  d.joins_previous = first_out != 0;
  d.constants[kMatmulTypeId] = static_cast<uint32_t>(weight.dtype);
  d.constants[kMatmulAccumulateId] = matmul.accumulate ? 1 : 0;
  d.constants[kMatmulIsLogitsId] = matmul.is_logits ? 1 : 0;
  d.constants[kMatmulRowsAnInputId] = matmul.rows_an_input;
  if (!is_integer) d.constants[kMatmulWholeId] = weight.cols % 8 == 0 ? 1 : 0;
  if (is_tiled) {
    SetTile(weight.dtype, n_outs, &d);
    // Neighbouring workgroups share one operand, and the other one is read again by each of them:
    // the smaller one, which a cache may hold.
    const uint64_t row_bytes =
        sizeof(uint32_t) * uint64_t{is_integer ? QuantizedWords(weight.cols) : weight.cols};
    const uint64_t inputs = Min<uint64_t>(matmul.max_rows, kMostChunkRows) * row_bytes;
    const bool is_smaller = inputs < uint64_t{n_outs} * at.row_bytes;
    d.constants[kMatmulRowsFirstId] = is_smaller && inputs <= kCached ? 1 : 0;
  } else {
    d.row_tile = kernel == Mode::kFew ? kFewRowTile : 1;
    d.constants[kMatmulRowsId] = d.row_tile;
    d.constants[kMatmulTeamsId] = 1;
    d.constants[kAttendPartsId] = d.constants[kAttendPerLaneId] = d.constants[kAttendHeadsId] = 1;
    // Without an ending, a buffer that the others of joined dispatches bind likewise or not at all.
    for (const uint32_t binding : {6u, 7u, 8u, 9u}) BindAt(&d, binding, {Home::kArrivals});
    SetOutputs(kernel, weight.dtype, n_outs, &d);
    // A second step of a row that ends in the first one would load its end again.
    const bool has_steps = kernel == Mode::kOne && weight.dtype == DType::kInt8 &&
                           at.row_bytes / 16 > d.constants[kWidthId];
    d.constants[kMatmulStepsId] = has_steps ? traits_.matmuls.int8_gemv_steps : 1;
  }
  const QuantizedRows& rows = quantized_rows_[static_cast<uint32_t>(kernel)];
  Bind(&d, 1, matmul.in);
  Bind(&d, 2, matmul.out);
  Bind(&d, 3,
       {Home::kWeights, at.block, at.values + uint64_t{first_out} * at.row_bytes,
        uint64_t{n_outs} * at.row_bytes});
  Bind(&d, 4, {Home::kWeights, at.block, at.heads, at.heads_bytes});
  if (is_integer) {
    Place place = PlaceOf(rows.slice);
    place.range_bytes = QuantizedRangeBytes(rows.rows, weight.cols);
    Bind(&d, 5, place);
  }
  MatmulPush push = {};
  push.cols = weight.cols;
  push.row_quads = at.row_bytes / 16;
  push.first_out = first_out;
  push.n_outs = n_outs;
  push.out_stride = weight.rows;
  push.values_at = QuantizedHeadWords(rows.rows);
  push.x_words = QuantizedWords(weight.cols);
  push.blocks_at = at.blocks_words;
  push.block_words = at.block_words;
  push.factor = matmul.factor;
  push.softcap = matmul.softcap;
  d.SetPush(push);
  d.work = uint64_t{n_outs} * weight.cols;
  if (d.rows == GridRows::kPooled) d.work /= Max(program_.pool_rows, 1u);
  return d;
}

Status Lowering::AddMatmul(const Matmul& matmul, Mode kernel, uint32_t first_out, uint32_t n_outs) {
  Dispatch d = MatmulOf(matmul, kernel, first_out, n_outs);
  if (matmul.is_logits) {
    // Runs of more than one row have any number of logit rows, those of many more than a few.
    const bool is_tiled = kernel == Mode::kMany;
    if (kernel == Mode::kFew) d.modes |= BitOf(Mode::kMany);
    d.rows = is_tiled ? GridRows::kManyLogits : GridRows::kFewLogits;
    d.first_row = matmul.first_row;
    d.most_rows = matmul.most_rows;
    d.head.of_rows = kOfLogits + matmul.first_row;
    d.joins_previous = d.joins_previous || is_tiled;
  } else if (fusion_.ending == Ending::kNorm && (fusion_.modes & d.modes) != 0) {
    SetTeams(&d);
    EndWithNorm<MatmulPush>(EndingNormOf(matmul.step[1]), &d);
  } else if (fusion_.ending == Ending::kActivation && (fusion_.modes & d.modes) != 0) {
    EndWithActivation(matmul.step[1], kernel, &d);
  } else if (fusion_.ending == Ending::kRotation && (fusion_.modes & d.modes) != 0) {
    EndWithRotation(matmul.step[1], &d);
    if (kernel == Mode::kOne && Attends(*matmul.step)) {
      Dispatch of_short = d;
      EndWithAttention(matmul.step[2], &of_short);
      d.context = Context::kLong;
      ARN_TRY(Add(d));
      return Add(of_short);
    }
  }
  return Add(d);
}

Status Lowering::AddMatmuls(const Matmul& matmul) {
  const Weight& weight = program_.weights[matmul.weight];
  if (IsInteger(weight)) ARN_TRY(AddQuantize(matmul));
  const uint32_t slice = SliceRows(WeightAt(matmul.weight).row_bytes);
  for (const Mode kernel : {Mode::kOne, Mode::kFew, Mode::kMany}) {
    if (kernel == Mode::kOne && matmul.first_row != 0) continue;
    for (uint32_t first = 0; first < weight.rows; first += slice) {
      ARN_TRY(AddMatmul(matmul, kernel, first, Min(slice, weight.rows - first)));
    }
  }
  return Status::kOk;
}

Status Lowering::Lower(const Step& step, const LinearParams& p) {
  Matmul matmul;
  matmul.step = &step;
  matmul.weight = p.weight;
  const bool is_activated = activated_ != kNoValue && (&step)[-1].out == step.in;
  matmul.in = PlaceOfValue(is_activated ? activated_ : step.in);
  matmul.out = PlaceOfValue(step.out);
  matmul.max_rows = MaxRowsOf(program_, program_.values[step.in]);
  matmul.row_factor = program_.values[step.out].row_factor;
  matmul.accumulate = p.accumulate;
  matmul.is_quantized = is_quantized_;
  return AddMatmuls(matmul);
}

// The logits of all rows may exceed a binding: processes as many rows at a time as fit.
Status Lowering::Lower(const Step& step, const LogitsParams& p) {
  if (p.chosen != kNoValue) return UnsupportedError(step, "parts of the head");
  const uint32_t width = Width(step.in);
  const uint64_t row_bytes = uint64_t{program_.vocab} * sizeof(float);
  const auto most =
      static_cast<uint32_t>(Device::kMaxBindingBytes / row_bytes / kSliceTile * kSliceTile);
  if (most == 0) return UnsupportedError(step, "32 rows of logits do not fit a binding of 128 MiB");
  for (uint32_t first = 0; first < program_.max_logit_rows; first += most) {
    const uint32_t n = Min(most, program_.max_logit_rows - first);
    Dispatch d = Begin(Shader::kNorm, step);
    d.modes &= static_cast<uint8_t>(~(first == 0 ? done_modes_ : BitOf(Mode::kOne)));
    d.rows = GridRows::kLogits;
    d.row_factor = 1;
    d.first_row = first;
    d.most_rows = n;
    d.constants[kNormIsLayerId] = p.norm_kind == NormKind::kLayer ? 1 : 0;
    d.constants[kNormGatherId] = 1;
    BindValue(&d, 1, step.in);
    Bind(&d, 2, PlaceOf(workspace_.normed));
    BindVector(&d, 3, p.norm);
    if (p.norm_kind == NormKind::kLayer) BindVector(&d, 4, p.bias);
    d.head.of_rows = kOfLogits + first;
    NormPush push = {};
    push.n = push.in_stride = push.out_stride = width;
    push.epsilon = p.epsilon;
    SetRow(&d, width);
    Matmul matmul;
    matmul.step = &step;
    matmul.weight = p.weight;
    matmul.in = PlaceOf(workspace_.normed);
    matmul.out = {Home::kLogits, 0, first * row_bytes, n * row_bytes};
    matmul.max_rows = MaxRowsOf(program_, program_.values[step.in]);
    matmul.is_logits = true;
    matmul.factor = p.factor;
    matmul.softcap = p.softcap;
    matmul.first_row = first;
    matmul.most_rows = n;
    matmul.is_quantized = IsInteger(program_.weights[p.weight]);
    d.constants[kNormIsLostId] = matmul.is_quantized ? 1 : 0;
    if (matmul.is_quantized) Quantize(&d, &push, matmul.max_rows);
    d.SetPush(push);
    ARN_TRY(Add(d));
    ARN_TRY(AddMatmuls(matmul));
  }
  return Status::kOk;
}

}  // namespace arn::vulkan
