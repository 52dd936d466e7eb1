#include "kernels/vulkan/lower/lower.h"

#include <bit>

#include "kernels/contract/check.h"
#include "kernels/vulkan/device/device.h"
#include "kernels/vulkan/lower/matmul.h"
#include "kernels/vulkan/lower/run_words.h"
#include "platform/base/arith.h"

namespace arn::vulkan {
namespace {

// Ties the shaders' enumerators (shaders/shared.h) to those of the library.
static_assert(kTypeF32 == static_cast<uint32_t>(DType::kF32) &&
              kTypeF16 == static_cast<uint32_t>(DType::kF16) &&
              kTypeBf16 == static_cast<uint32_t>(DType::kBf16) &&
              kTypeInt8 == static_cast<uint32_t>(DType::kInt8) &&
              kTypeInt4 == static_cast<uint32_t>(DType::kInt4));
static_assert(kQuantisedPageBit == kQuantisedPage);
static_assert(kRouteMaxGroups == kMaxRouterGroups);

}  // namespace

DeviceWeight Lowering::WeightAt(WeightId id) const {
  if (!weights_.empty()) return weights_[id];
  const auto n = static_cast<uint32_t>(program_.weights.size());
  WeightPlacer placer;
  return id < n ? placer.Place(program_.weights[id]) : placer.PlaceRope(program_.ropes[id - n]);
}

// Assigns addresses in sequence while there is only a plan.
DeviceWeight Lowering::PlacedAt(WeightId id) {
  if (!weights_.empty()) return weights_[id];
  if (id + 1 < n_placed_ || n_placed_ < used_.first) {
    n_placed_ = used_.first;
    placer_ = WeightPlacer(program_);
  }
  while (n_placed_ <= id) placed_ = placer_.Place(program_.weights[n_placed_++]);
  return placed_;
}

Place Lowering::PlaceOf(Slice slice) const {
  return {Home::kActivations, 0, slice.offset, slice.bytes};
}

Place Lowering::PlaceOfRows(Slice slice, uint64_t row_bytes) const {
  Place place = PlaceOf(slice);
  if (range_rows_ != kAllRows) place.range_bytes = range_rows_ * row_bytes;
  return place;
}

Place Lowering::PlaceOfValue(ValueId id) const {
  const Value& value = program_.values[id];
  return PlaceOfRows(value.slice, value.width * sizeof(float));
}

Dispatch Lowering::Begin(Shader shader, const Step& step) const {
  Dispatch d;
  d.shader = shader;
  d.constants[kWidthId] = kWidth;
  d.row_factor = RowFactorOf(program_, step);
  d.head.row_factor = d.row_factor;
  if (IsPooled(program_, step)) {
    d.rows = GridRows::kPooled;
    d.head.of_rows = kOfPooled;
  }
  return d;
}

bool Lowering::IsQuantizedNext(const Step& step) const {
  const bool writes_rows = step.op() == Op::kGatedAct || step.op() == Op::kAct ||
                           (step.op() == Op::kNorm && IsWholeNorm(program_, step));
  return writes_rows && FeedsIntegerMatmul(program_, step);
}

void Lowering::SetQuantized(uint8_t modes, Slice slice, uint64_t rows) {
  for (uint32_t mode = 0; mode < kModeCount; ++mode) {
    if ((modes >> mode & 1) != 0) quantized_rows_[mode] = {slice, rows};
  }
}

uint32_t Lowering::RowWidth(uint32_t n) const {
  const uint32_t quads = static_cast<uint32_t>(CeilDiv(n, 4));
  return Max(Min(traits_.row_width, std::bit_ceil(quads)), kWidth);
}

void Lowering::SetRow(Dispatch* d, uint32_t n, uint32_t stride) const {
  d->constants[kWidthId] = RowWidth(n);
  d->constants[kRowIsWholeId] = (n | stride) % 4 == 0 ? 1 : 0;
}

uint32_t Lowering::BindAt(Dispatch* dispatch, uint32_t binding, Place place) const {
  const uint64_t offset = place.offset & ~(Device::kBindingAlign - 1);
  const auto start = static_cast<uint32_t>((place.offset - offset) / sizeof(uint32_t));
  place.bytes += place.offset - offset;
  place.offset = offset;
  dispatch->places[binding - 1] = place;
  return start;
}

void Lowering::Bind(Dispatch* dispatch, uint32_t binding, Place place) const {
  constexpr uint32_t PushHead::*kStarts[] = {&PushHead::in_at, &PushHead::out_at,
                                             &PushHead::weights_at, &PushHead::rows_at,
                                             &PushHead::extra_at};
  dispatch->head.*kStarts[binding - 1] = BindAt(dispatch, binding, place);
}

void Lowering::BindValue(Dispatch* dispatch, uint32_t binding, ValueId id) const {
  Bind(dispatch, binding, PlaceOfValue(id));
}

void Lowering::BindVector(Dispatch* dispatch, uint32_t binding, WeightId id) const {
  if (id != kNoWeight) Bind(dispatch, binding, PlaceOfVector(id));
}

Place Lowering::PlaceOfVector(WeightId id) const {
  const DeviceWeight w = WeightAt(id);
  return {Home::kWeights, w.block, w.values, w.values_bytes};
}

Status Lowering::UnsupportedError(const Step& step, const char* what) {
  return diag_->Fail(Status::kUnsupported, "Vulkan: layer %u, step %s: %s", step.layer,
                     OpName(step.op()), what);
}

Status Lowering::CheckRanges(const Step& step) {
  if (range_rows_ == kAllRows || (range_rows_ != 0 && HasRanges(program_, step))) {
    return Status::kOk;
  }
  return UnsupportedError(step,
                          "more rows than a grid or a binding of 128 MiB has: run fewer at a time");
}

Status Lowering::Add(const Dispatch& dispatch) {
  if (range_rows_ == kAllRows) return sink_->Add(dispatch, diag_);
  const uint64_t of_run = dispatch.rows == GridRows::kPooled
                              ? program_.max_pooled_rows
                              : uint64_t{program_.max_encoder_rows} * dispatch.row_factor;
  const uint64_t n = (dispatch.modes & BitOf(Mode::kMany)) != 0 ? of_run : 1;
  const uint64_t n_ranges = CeilDiv(n, range_rows_);
  for (uint64_t first = 0; first < n; first += range_rows_) {
    Dispatch d = dispatch;
    d.joins_previous = false;  // bindings of neighbouring ranges overlap
    d.first_row = static_cast<uint32_t>(first);
    d.most_rows = static_cast<uint32_t>(range_rows_);
    d.head.of_rows += d.first_row;
    if (first != 0) d.modes = BitOf(Mode::kMany);
    d.work = CeilDiv(d.work, n_ranges);
    for (Place& place : d.places) {
      if (place.range_bytes == 0) continue;
      const uint64_t skipped = first / range_rows_ * place.range_bytes;
      place.offset += skipped;
      place.bytes = Min(place.bytes - skipped, place.range_bytes + Device::kBindingAlign);
    }
    ARN_TRY(sink_->Add(d, diag_));
  }
  return Status::kOk;
}

Fusion Lowering::FusionAt(uint32_t step) const {
  const Fusion fusion = traits_.fuses ? FusionOf(program_, step) : Fusion();
  if (fusion.ending != Ending::kRotation || traits_.n_windows == 1) return fusion;
  const auto& p = program_.steps[step + 1].Get<QkvRopeParams>();
  const bool has_norm = p.q_norm != kNoWeight || p.k_norm != kNoWeight || p.v_norm != kNoWeight;
  return has_norm ? Fusion() : fusion;  // in the bindings of other windows
}

Status Lowering::Run(DispatchSink* sink, Diag* diag) {
  sink_ = sink;
  diag_ = diag;
  for (uint32_t i = 0; i < program_.steps.size(); ++i) {
    ARN_TRY(sink->BeginStep(i));
    ARN_TRY(CheckRanges(program_.steps[i]));
    quantizes_ = IsQuantizedNext(program_.steps[i]);
    fusion_ = FusionAt(i);
    ARN_TRY(LowerStep(program_.steps[i]));
    // Angles and embeddings depend on the run alone: no barrier between them.
    const Op op = program_.steps[i].op();
    follows_embed_ = op == Op::kEmbed || (follows_embed_ && op == Op::kRopeAngles);
    if (fusion_.ending == Ending::kActivation && program_.steps[i + 1].op() == Op::kGatedAct) {
      activated_ = ActivatedRows(program_, program_.steps[i]);
    } else if (op != Op::kGatedAct) {
      activated_ = kNoValue;
    }
    is_quantized_ = quantizes_;
    // Angles are between an embedding and the norm that ends it.
    if (op != Op::kRopeAngles) done_modes_ = fusion_.modes;
  }
  if (HasChoice(program_)) {
    uint32_t n_dispatches = 0;
    ARN_TRY(sink->BeginChoice(&n_dispatches));
    ARN_TRY(LowerChoice(n_dispatches));
  }
  for (uint32_t g = 0; g < program_.kv_groups.size(); ++g) {
    ARN_TRY(sink->BeginEdits(g));
    ARN_TRY(LowerEdits(g));
  }
  return Status::kOk;
}

Status Lowering::LowerStep(const Step& step) {
  switch (step.op()) {
    case Op::kEmbed: return Lower(step, step.Get<EmbedParams>());
    case Op::kAddEmbeddings: return Lower(step, step.Get<AddEmbeddingsParams>());
    case Op::kRopeAngles: return Lower(step, step.Get<RopeAnglesParams>());
    case Op::kNorm: return Lower(step, step.Get<NormParams>());
    case Op::kLinear: return Lower(step, step.Get<LinearParams>());
    case Op::kQkvRope: return Lower(step, step.Get<QkvRopeParams>());
    case Op::kAttention: return Lower(step, step.Get<AttentionParams>());
    case Op::kGatedAct: return Lower(step, step.Get<GatedActParams>());
    case Op::kAct: return Lower(step, step.Get<ActParams>());
    case Op::kRoute: return Lower(step, step.Get<RouteParams>());
    case Op::kExperts: return Lower(step, step.Get<ExpertsParams>());
    case Op::kLogits: return Lower(step, step.Get<LogitsParams>());
    case Op::kConv: return Lower(step, step.Get<ConvParams>());
    case Op::kScan: return Lower(step, step.Get<ScanParams>());
    case Op::kFeatures: return Lower(step, step.Get<FeaturesParams>());
    case Op::kClamp: return Lower(step, step.Get<ClampParams>());
    case Op::kPool: return Lower(step, step.Get<PoolParams>());
    case Op::kIm2col: return Lower(step, step.Get<Im2colParams>());
    case Op::kAddPositions: return Lower(step, step.Get<AddPositionsParams>());
    case Op::kSelfAttention: return Lower(step, step.Get<SelfAttentionParams>());
    case Op::kStoreKv: return Lower(step, step.Get<StoreKvParams>());
    case Op::kScaleRow: return Lower(step, step.Get<ScaleRowParams>());
    case Op::kSteer:
    case Op::kAdapt: return UnsupportedError(step, "adapters run on the CPU only");
    case Op::kMultiply: return Lower(step, step.Get<MultiplyParams>());
    case Op::kHeadLinear: return Lower(step, step.Get<HeadLinearParams>());
    case Op::kLinearAttention: return Lower(step, step.Get<LinearAttentionParams>());
    case Op::kGate: return Lower(step, step.Get<GateParams>());
    case Op::kMixStreams:
    case Op::kMatchRms:
    case Op::kThreshold:
    case Op::kNormRows: return UnsupportedError(step, "has no shader");
  }
  return UnsupportedError(step, "is not known");
}

Status Lowering::Lower(const Step& step, const EmbedParams& p) {
  const Weight& weight = program_.weights[p.weight];
  const DeviceWeight at = WeightAt(p.weight);
  const uint32_t slice_rows = SliceRows(at.row_bytes);
  for (uint32_t first = 0; first < weight.rows; first += slice_rows) {
    const uint32_t n = Min(slice_rows, weight.rows - first);
    Dispatch d = Begin(Shader::kEmbed, step);
    d.joins_previous = first != 0;
    d.constants[kEmbedTypeId] = static_cast<uint32_t>(weight.dtype);
    d.constants[kEmbedHasPositionsId] = p.positions == kNoWeight ? 0 : 1;
    if (p.embedding_stride != 0) Bind(&d, 1, PlaceOf(workspace_.embeddings));
    BindValue(&d, 2, step.out);
    Bind(&d, 3,
         {Home::kWeights, at.block, at.values + uint64_t{first} * at.row_bytes,
          uint64_t{n} * at.row_bytes});
    const Place heads = {Home::kWeights, at.block, at.heads, at.heads_bytes};
    Bind(&d, 4, heads);
    EmbedPush push = {};
    // Buffers of a norm that is not there: none that one of joined dispatches writes and another
    // reads.
    for (const uint32_t binding : {6u, 9u}) BindAt(&d, binding, {Home::kArrivals});
    for (const uint32_t binding : {7u, 8u}) BindAt(&d, binding, heads);
    if (p.positions != kNoWeight) {
      BindVector(&d, 5, p.positions);
      push.position_words = WeightAt(p.positions).row_bytes / sizeof(float);
    }
    push.cols = weight.cols;
    push.row_words = at.row_bytes / static_cast<uint32_t>(sizeof(uint32_t));
    push.blocks_at = at.blocks_words;
    push.block_words = at.block_words;
    push.factor = p.factor;
    push.first_token = first;
    push.n_tokens = n;
    push.embedding_words = p.embedding_stride;
    if (fusion_.ending == Ending::kNorm) {
      Dispatch of_few = d;
      of_few.modes = fusion_.modes;
      of_few.constants[kWidthId] = RowWidth(weight.cols);
      of_few.SetPush(push);
      EndWithNorm<EmbedPush>(EndingNormOf(*NextOf(program_, step)), &of_few);
      ARN_TRY(Add(of_few));
      d.modes &= static_cast<uint8_t>(~fusion_.modes);
    }
    ARN_TRY(AddColumns(&d, push, weight.cols));
  }
  return Status::kOk;
}

Status Lowering::Lower(const Step& step, const AddEmbeddingsParams& p) {
  Dispatch d = Begin(Shader::kAddEmbeddings, step);
  Bind(&d, 1, PlaceOf(workspace_.embeddings));
  BindValue(&d, 2, step.in);
  AddEmbeddingsPush push = {};
  push.width = Width(step.in);
  push.stride = p.stride;
  push.first = p.first;
  return AddColumns(&d, push, push.width);
}

Status Lowering::Lower(const Step& step, const RopeAnglesParams& p) {
  const RopeKind& rope = program_.ropes[p.rope];
  for (const float f : rope.inv_freq) {
    // The shader reduces angles below 2^24 (shaders/rope_angles.comp).
    if (!(f > -1e30f && f < 1e30f) ||
        static_cast<double>(f < 0 ? -f : f) * program_.max_context >= 16777216.0) {
      return UnsupportedError(step, "a rope angle of 2^24 or more");
    }
  }
  if (rope.inv_freq.empty()) return Status::kOk;
  Dispatch d = Begin(Shader::kRopeAngles, step);
  d.joins_previous = follows_embed_;
  BindValue(&d, 2, step.out);
  BindVector(&d, 3, static_cast<WeightId>(program_.weights.size() + p.rope));
  d.constants[kRopeHasAxesId] = rope.axes.empty() ? 0 : 1;
  RopeAnglesPush push = {};
  push.pairs = static_cast<uint32_t>(rope.inv_freq.size());
  push.amplitude = rope.amplitude;
  push.axes = FirstAxisOf(program_, p.rope);
  return AddColumns(&d, push, rope.inv_freq.size());
}

Status Lowering::Lower(const Step& step, const NormParams& p) {
  const uint32_t width = Width(step.in);
  const uint32_t n = p.group != 0 ? p.group : program_.weights[p.weight].cols;
  Dispatch d = Begin(Shader::kNorm, step);
  d.modes &= static_cast<uint8_t>(~done_modes_);
  d.groups_x = width / n;
  d.constants[kNormIsLayerId] = p.kind == NormKind::kLayer ? 1 : 0;
  d.constants[kNormAccumulateId] = p.accumulate ? 1 : 0;
  BindValue(&d, 1, step.in);
  BindValue(&d, 2, step.out);
  BindVector(&d, 3, p.weight);
  if (p.kind == NormKind::kLayer) BindVector(&d, 4, p.bias);
  SetRow(&d, n, width);
  NormPush push = {};
  push.n = n;
  push.in_stride = push.out_stride = width;
  push.group_weights = p.group;
  push.epsilon = p.epsilon;
  if (quantizes_) Quantize(&d, &push, MaxRowsOf(program_, program_.values[step.out]));
  d.constants[kNormIsLostId] = IsLost(step) ? 1 : 0;
  d.SetPush(push);
  return Add(d);
}

bool Lowering::IsLost(const Step& norm) const {
  return quantizes_ && traits_.fuses && !norm.Get<NormParams>().accumulate &&
         !IsReadFrom(program_, norm.out, &norm + 2);
}

Status Lowering::AddActivation(const Step& step, const GatedActParams& p, Place in, Place out,
                               uint32_t n, uint32_t row_factor, WeightId parameters) {
  Dispatch d = Begin(Shader::kGatedAct, step);
  SetRow(&d, n);
  d.row_factor = row_factor;
  d.constants[kActivationId] = static_cast<uint32_t>(p.activation);
  d.constants[kActIsGatedId] = in.home == Home::kNone ? 0 : 1;
  if (in.home != Home::kNone) Bind(&d, 1, in);
  Bind(&d, 2, out);
  BindVector(&d, 3, parameters);
  GatedActPush push = {};
  push.n = n;
  push.limit = p.activation_limit;
  if (quantizes_) {
    const ValueId written = step.out != kNoValue ? step.out : step.in;
    Quantize(&d, &push, MaxRowsOf(program_, program_.values[written]));
  } else {
    d.constants[kWidthId] = kWidth;
    d.groups_x = static_cast<uint32_t>(CeilDiv(n, 4 * kWidth));
  }
  d.SetPush(push);
  return Add(d);
}

Status Lowering::Lower(const Step& step, const GatedActParams& p) {
  if (done_modes_ == kAllModes) return AddQuantizeOfActivated(step);
  const Value& out = program_.values[step.out];
  return AddActivation(step, p, PlaceOfValue(step.in), PlaceOfValue(step.out), out.width,
                       out.row_factor);
}

Status Lowering::Lower(const Step& step, const ActParams& p) {
  if (done_modes_ == kAllModes) return AddQuantizeOfActivated(step);
  const Value& x = program_.values[step.in];
  return AddActivation(step, {p.activation}, Place(), PlaceOfValue(step.in), x.width, x.row_factor,
                       p.parameters);
}

Status Lowering::Lower(const Step& step, const MultiplyParams& p) {
  Dispatch d = Begin(Shader::kMultiply, step);
  d.constants[kMultiplyHasValueId] = p.by != kNoValue ? 1 : 0;
  d.constants[kMultiplyHasScaleId] = p.scale != kNoWeight ? 1 : 0;
  MultiplyPush push = {};
  if (p.by != kNoValue) {
    BindValue(&d, 1, p.by);
    push.stride = Width(p.by);
  }
  BindValue(&d, 2, step.in);
  BindVector(&d, 3, p.scale);
  push.width = Width(step.in);
  push.first = p.first;
  push.factor = p.factor;
  return AddColumns(&d, push, push.width);
}

Status Lowering::Lower(const Step& step, const ScaleRowParams& p) {
  Dispatch d = Begin(Shader::kScaleRow, step);
  BindValue(&d, 1, p.scale);
  BindValue(&d, 2, step.in);
  ScaleRowPush push = {};
  push.n = Width(step.in);
  return AddColumns(&d, push, push.n);
}

}  // namespace arn::vulkan
