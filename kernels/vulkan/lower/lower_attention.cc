// Lowers attention and KV steps.
#include "kernels/vulkan/lower/lower.h"
#include "kernels/vulkan/lower/run_words.h"
#include "platform/base/arith.h"

namespace arn::vulkan {
namespace {

uint32_t Words(uint64_t bytes) { return static_cast<uint32_t>(bytes / sizeof(uint32_t)); }

// Query heads of a workgroup that has a row by itself. Latents are wide and all heads share them:
// read for each head they would be most of what a token reads. Each head takes registers, too.
uint32_t GroupHeadsOf(const AttentionKind& kind, bool keys_only) {
  uint32_t heads = keys_only ? 4 : 1;
  while (kind.n_heads % heads != 0) --heads;
  return heads;
}

// Sets the constants of shaders whose keys and values are rows.
void SetNoPages(Dispatch* d, const AttentionKind& kind) {
  d->constants[kKvHeadDimId] = kind.head_dim;
  d->constants[kKvPageTokensId] = 1;
}

}  // namespace

KvPool PoolOf(const KvPages& pages, bool keys_only) {
  return {
      Words(pages.pool.offset),    Words(pages.page_stride),
      Words(pages.layer_stride),   keys_only ? 0 : Words(pages.v_offset),
      Words(pages.k_scale_offset), Words(keys_only ? pages.k_scale_offset : pages.v_scale_offset)};
}

void Lowering::SetKvFormat(Dispatch* d, const KvGroup& group) const {
  uint32_t* c = d->constants;
  c[kKvWindowsId] = traits_.n_windows;
  c[kKvWindowShiftId] = traits_.window_shift;
  c[kKvKTypeId] = static_cast<uint32_t>(group.k_type);
  c[kKvVTypeId] = static_cast<uint32_t>(group.v_type);
  c[kKvHeadDimId] = group.head_dim;
  c[kKvPageTokensId] = group.page_tokens;
  c[kKvQuantisedKBitsId] = group.quantised_k_bits;
  c[kKvQuantisedVBitsId] = group.quantised_v_bits;
  c[kKvGroupSizeId] = Max(group.group_size, 1u);
  c[kKvHasQuantisedId] = group.quantised.n_pages != 0 ? 1 : 0;
}

// Adds the norm over all q, or all k, heads together.
Status Lowering::AddHeadNorm(const Step& step, WeightId weight, uint32_t first, uint32_t n,
                             float epsilon) {
  if (weight == kNoWeight) return Status::kOk;
  Dispatch d = Begin(Shader::kNorm, step);
  Place place = PlaceOfValue(step.in);
  place.offset += uint64_t{first} * sizeof(float);
  place.bytes -= uint64_t{first} * sizeof(float);
  Bind(&d, 1, place);
  Bind(&d, 2, place);
  BindVector(&d, 3, weight);
  SetRow(&d, n, first | Width(step.in));
  NormPush push = {};
  push.n = n;
  push.in_stride = push.out_stride = Width(step.in);
  push.epsilon = epsilon;
  d.SetPush(push);
  return Add(d);
}

void Lowering::SetRotation(const QkvRopeParams& p, Dispatch* d) const {
  const AttentionKind& kind = program_.kinds[p.kind];
  const bool has_pages = kind.group != kNoGroup, spans_heads = NormsSpanHeads(program_, p);
  const bool rotates = kind.rope != kNoRope;
  uint32_t* c = d->constants;
  c[kQkvHeadsId] = kind.n_heads;
  c[kQkvKvHeadsId] = kind.n_kv_heads;
  c[kQkvRotaryDimId] = rotates ? program_.ropes[kind.rope].rotary_dim : 0;
  c[kQkvHasQNormId] = p.q_norm != kNoWeight && !spans_heads ? 1 : 0;
  c[kQkvHasKNormId] = p.k_norm != kNoWeight && !spans_heads ? 1 : 0;
  c[kQkvHasVNormId] = p.v_norm != kNoWeight ? 1 : 0;
  c[kQkvStoresId] = has_pages && !p.shares_kv ? 1 : 0;
  c[kQkvNormFollowsId] = kind.qk_norm_follows_rope ? 1 : 0;
  if (has_pages) {
    SetKvFormat(d, program_.kv_groups[kind.group]);
  } else {
    SetNoPages(d, kind);
  }
}

Status Lowering::Lower(const Step& step, const QkvRopeParams& p) {
  const AttentionKind& kind = program_.kinds[p.kind];
  const bool has_pages = kind.group != kNoGroup;
  if (has_pages) ARN_TRY(CheckEncoderPages(step, program_.kv_groups[kind.group]));
  const bool spans_heads = NormsSpanHeads(program_, p);
  if (spans_heads) {
    const uint32_t q_width = kind.n_heads * kind.head_dim;
    ARN_TRY(AddHeadNorm(step, p.q_norm, 0, q_width, p.epsilon));
    if (!p.shares_kv) {
      ARN_TRY(AddHeadNorm(step, p.k_norm, q_width, kind.n_kv_heads * kind.head_dim, p.epsilon));
    }
  }
  Dispatch d = Begin(Shader::kQkvRope, step);
  d.modes &= static_cast<uint8_t>(~done_modes_);
  SetRotation(p, &d);
  BindVector(&d, 1, p.v_norm);
  BindValue(&d, 2, step.in);
  BindVector(&d, 3, p.q_norm);
  BindVector(&d, 4, p.k_norm);
  if (d.constants[kQkvRotaryDimId] != 0) BindValue(&d, 5, p.angles);
  uint32_t stored = p.shares_kv ? 0 : 2;
  QkvRopePush push = {};
  if (has_pages) {
    if (program_.kv_groups[kind.group].keys_only) stored = Min(stored, 1u);
    SetPools(program_.kv_groups[kind.group], &push);
    push.layer = p.group_layer;
    push.group = kind.group;
  }
  push.stride = Width(step.in);
  push.epsilon = p.epsilon;
  push.temperature = kind.query_temperature;
  push.temperature_step = Max(kind.query_temperature_step, 1u);
  push.temperature_shift = kind.query_temperature_shift;
  push.clip = kind.qkv_clip;
  d.SetPush(push);
  d.groups_x = kind.n_heads + stored * kind.n_kv_heads;
  return Add(d);
}

// kQkvRope on rows without queries, norms and rotation.
Status Lowering::Lower(const Step& step, const StoreKvParams& p) {
  const AttentionKind& kind = program_.kinds[p.kind];
  const KvGroup& group = program_.kv_groups[kind.group];
  ARN_TRY(CheckEncoderPages(step, group));
  Dispatch d = Begin(Shader::kQkvRope, step);
  d.constants[kQkvKvHeadsId] = kind.n_kv_heads;
  d.constants[kQkvStoresId] = 1;
  SetKvFormat(&d, group);
  BindValue(&d, 2, step.in);
  QkvRopePush push = {};
  SetPools(group, &push);
  push.layer = p.group_layer;
  push.group = kind.group;
  push.stride = Width(step.in);
  push.temperature_step = 1;
  d.SetPush(push);
  d.groups_x = 2 * kind.n_kv_heads;
  return Add(d);
}

Status Lowering::Lower(const Step& step, const AttentionParams& p) {
  return AddAttention(step, p, /*is_self=*/false);
}

Status Lowering::Lower(const Step& step, const SelfAttentionParams& p) {
  AttentionParams params;
  params.kind = p.kind;
  params.relative_position_bias = p.relative_position_bias;
  return AddAttention(step, params, /*is_self=*/true);
}

Status Lowering::AddAttention(const Step& step, const AttentionParams& p, bool is_self) {
  const AttentionKind& kind = program_.kinds[p.kind];
  const AttentionLanes lanes = LanesOf(kind.head_dim);
  Dispatch d = Begin(Shader::kAttention, step);
  if (is_self) {
    SetNoPages(&d, kind);
    d.constants[kAttentionHasPartsId] = kind.has_parts ? 1 : 0;
    d.constants[kAttentionIsCausalId] = kind.is_causal ? 1 : 0;
  } else {
    SetKvFormat(&d, program_.kv_groups[kind.group]);
    d.constants[kAttentionHasPartsId] = EmbeddingStride(program_) != 0 ? 1 : 0;
  }
  d.constants[kWidthId] = kAttentionWidth;
  d.constants[kAttentionHeadsId] = kind.n_heads;
  d.constants[kAttentionKvHeadsId] = kind.n_kv_heads;
  d.constants[kAttentionIsCrossId] = kind.is_cross_attention ? 1 : 0;
  d.constants[kAttentionIsSelfId] = is_self ? 1 : 0;
  d.constants[kAttentionHasSinksId] = p.sinks != kNoWeight ? 1 : 0;
  d.constants[kAttentionHasBiasId] = p.relative_position_bias != kNoWeight ? 1 : 0;
  d.constants[kAttendPartsId] = lanes.n_parts;
  d.constants[kAttendPerLaneId] = lanes.per_lane;
  d.constants[kAttentionSegmentId] = traits_.segment_positions;
  d.segments = SegmentsOf(program_, step, traits_.segment_positions);
  BindValue(&d, 1, step.in);
  BindValue(&d, 2, step.out);
  BindVector(&d, 3, p.sinks);
  BindVector(&d, 4, p.relative_position_bias);
  if (d.segments.may_share()) Bind(&d, 5, PlaceOf(workspace_.partials));
  AttentionPush push = {};
  if (!is_self) SetPools(program_.kv_groups[kind.group], &push);
  push.layer = p.group_layer;
  push.group = is_self ? 0 : kind.group;
  push.in_stride = Width(step.in);
  push.window = kind.window;
  push.chunk = kind.chunk;
  push.scale = kind.attention_scale;
  push.softcap = kind.softcap;
  if (p.relative_position_bias != kNoWeight) {
    push.n_distances = program_.weights[p.relative_position_bias].rows;
    push.bias_stride = Words(WeightAt(p.relative_position_bias).row_bytes);
  }
  push.most_segments = d.segments.most;
  d.SetPush(push);
  const bool keys_only = !is_self && program_.kv_groups[kind.group].keys_only;
  const uint32_t group_heads = GroupHeadsOf(kind, keys_only);
  d.constants[kAttendHeadsId] = group_heads;
  d.groups_x = kind.n_heads / group_heads;
  d.work = 2 * uint64_t{kind.n_heads} * kind.head_dim * program_.max_context;
  Dispatch of_many = d;
  of_many.modes = BitOf(Mode::kMany);
  SetAttentionTile(kind, &of_many);
  const bool has_ranges = range_rows_ != kAllRows;
  ARN_TRY(has_ranges ? AddAttentionOfRanges(step, kind, of_many) : Add(of_many));
  d.modes = BitOf(Mode::kOne) | BitOf(Mode::kFew);
  d.constants[kAttentionMergesId] = traits_.fuses ? 1 : 0;
  if (fusion_.ending == Ending::kQuantize) {
    d.constants[kAttentionQuantizesId] = 1;
    const Slice out = NextQuantized(d.modes);
    Bind(&d, 4, PlaceOf(out));
    push.values_at = QuantizedHeadWords(kFewRows);
    push.row_words = QuantizedWords(Width(step.out));
    d.SetPush(push);
    SetQuantized(d.modes, out, kFewRows);
    const auto index = static_cast<size_t>(&step - program_.steps.data());
    if (index >= 2 && Attends((&step)[-2])) d.context = Context::kLong;
  }
  ARN_TRY(Add(d));
  if (traits_.fuses || !d.segments.may_share()) return Status::kOk;
  d.rows = GridRows::kShared;
  d.constants[kAttentionIsMergeId] = 1;
  d.work = 0;
  return Add(d);
}

Status Lowering::AddAttentionOfRanges(const Step& step, const AttentionKind& kind,
                                      const Dispatch& dispatch) {
  const CopiedHeads copied = CopiedHeadsOf(program_, kind, traits_.binding_bytes);
  if (copied.heads == 0) {
    return UnsupportedError(step, "keys of a head that do not fit a binding of 128 MiB");
  }
  if (dispatch.shader != Shader::kAttentionTile || dispatch.constants[kAttentionHasBiasId] == 1) {
    return UnsupportedError(step,
                            "heads of more than 256 elements, or a bias, with more rows than a "
                            "grid or a binding of 128 MiB has");
  }
  for (uint32_t first = 0; first < kind.n_kv_heads; first += copied.heads) {
    const uint32_t n = Min(copied.heads, kind.n_kv_heads - first);
    Dispatch d = dispatch;
    for (const bool is_values : {false, true}) {
      const Slice all = workspace_.partials;
      const Slice to = {all.region, all.offset + (is_values ? copied.values_at : 0),
                        copied.values_at};
      Dispatch copy = Begin(Shader::kColumns, step);
      copy.modes = dispatch.modes;
      BindValue(&copy, 1, step.in);
      ColumnsPush push = {};
      push.width = n * kind.head_dim;
      push.stride = Width(step.in);
      push.first = (kind.n_heads + (is_values ? kind.n_kv_heads : 0) + first) * kind.head_dim;
      Bind(&copy, 2, PlaceOfRows(to, push.width * sizeof(float)));
      ARN_TRY(AddColumns(&copy, push, push.width));
      Bind(&d, is_values ? 3 : 5, PlaceOf(to));
    }
    d.constants[kAttentionIsCopiedId] = 1;
    d.begins_segment = true;  // much work, of all rows and this many
    d.groups_x = dispatch.groups_x / kind.n_kv_heads * n;
    d.work = dispatch.work * n / kind.n_kv_heads;
    auto push = d.Push<AttentionPush>();
    push.first_kv_head = first;
    d.SetPush(push);
    ARN_TRY(Add(d));
  }
  return Status::kOk;
}

uint64_t Lowering::BytesSeen(const AttentionKind& kind) const {
  if (kind.group == kNoGroup) {  // rows of f32
    const uint64_t row = 2 * uint64_t{kind.n_kv_heads} * kind.head_dim * sizeof(float);
    return program_.max_encoder_rows * row;
  }
  const KvGroup& group = program_.kv_groups[kind.group];
  const uint64_t window = kind.window != 0 ? kind.window : kind.chunk;
  const uint64_t seen =
      window == 0 ? program_.max_context : Min(window, uint64_t{program_.max_context});
  return seen * group.active.layer_bytes / group.page_tokens;
}

bool Lowering::ChoosesMatrices() const {
  for (const Weight& weight : program_.weights) {
    if (!IsInteger(weight.dtype)) continue;
    if (GemmVariantOf(VariantFor(Mode::kMany, weight.dtype)).subgroups != 0) return true;
  }
  return false;
}

bool Lowering::SetAttentionMatrices(const AttentionKind& kind, Dispatch* d) const {
  if (kind.group == kNoGroup) return false;
  const KvGroup& group = program_.kv_groups[kind.group];
  // f32 pages would be rounded.
  if (group.k_type == DType::kF32 || group.v_type == DType::kF32) return false;
  const AttentionTile tile = MatrixTileOf(kind, traits_.matrices, traits_.shared_memory);
  if (tile.pairs == 0) return false;
  SetTile(kind, tile, d);
  d->shader = Shader::kAttentionCoop;
  d->avoid = kAvoidDot;
  d->constants[kAttentionCoopMId] = tile.coop.m;
  d->constants[kAttentionCoopNId] = tile.coop.n;
  d->constants[kAttentionCoopKId] = tile.coop.k;
  return true;
}

void Lowering::SetAttentionTile(const AttentionKind& kind, Dispatch* d) const {
  const bool has_ranges = range_rows_ != kAllRows;  // which tiles alone have
  const bool has_matrices = traits_.attention == kAttentionOfMatrices ||
                            (traits_.attention == kAttentionOfTiles && ChoosesMatrices());
  if (has_matrices && SetAttentionMatrices(kind, d)) return;
  if (!has_ranges && BytesSeen(kind) <= traits_.row_attention_bytes) return;
  uint32_t variant = Max(traits_.attention, has_ranges ? kAttentionOfTiles : 0);
  if (variant == kAttentionOfMatrices) variant = kAttentionOfTiles;
  const AttentionTile tile = AttentionTileOf(kind, variant, traits_.shared_memory);
  if (tile.pairs == 0) return;
  SetTile(kind, tile, d);
  d->shader = Shader::kAttentionTile;
  d->constants[kAttentionKeepsQueriesId] = tile.keeps_queries ? 1 : 0;
}

void Lowering::SetTile(const AttentionKind& kind, const AttentionTile& tile, Dispatch* d) {
  const auto push = d->Push<AttentionPush>();
  const bool has_quads = push.in_at % 4 == 0 && push.in_stride % 4 == 0 && kind.head_dim % 4 == 0;
  d->segments = Segments();
  d->constants[kWidthId] = tile.lanes;
  for (const uint32_t id :
       {kAttendPartsId, kAttendPerLaneId, kAttentionSegmentId, kAttendHeadsId}) {
    d->constants[id] = 0;
  }
  d->constants[kAttentionPairsId] = tile.pairs;
  d->constants[kAttentionKeysId] = tile.keys;
  d->constants[kAttentionTileRowsId] = tile.rows;
  d->constants[kAttentionTileHeadsId] = tile.heads;
  d->constants[kAttentionInQuadsId] = has_quads ? 1 : 0;
  d->row_tile = tile.rows;
  d->groups_x = tile.groups_x;
}

Status Lowering::LowerEdits(uint32_t g) {
  const KvGroup& group = program_.kv_groups[g];
  // State slots and encoder pages have no edits: runs write them whole.
  if (group.state_floats != 0 || group.is_encoder) return Status::kOk;
  Dispatch d = Begin(Shader::kKvEdit, Step());
  d.modes = BitOf(Mode::kOne);
  d.rows = GridRows::kEdits;
  SetKvFormat(&d, group);
  KvEditPush push = {};
  SetPools(group, &push);
  push.layers = FirstLayerOf(program_, g);
  d.SetPush(push);
  d.groups_x = group.n_kv_heads;
  d.groups_z = group.n_layers;
  d.constants[kEditHasValuesId] = group.keys_only ? 0 : 1;
  return Add(d);
}

}  // namespace arn::vulkan
