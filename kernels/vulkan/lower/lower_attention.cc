// Lowers attention and KV steps.
#include "kernels/vulkan/lower/lower.h"
#include "kernels/vulkan/lower/push_words.h"
#include "kernels/vulkan/lower/run_words.h"
#include "platform/base/arith.h"

namespace arn::vulkan {
namespace {

uint32_t Words(uint64_t bytes) { return static_cast<uint32_t>(bytes / sizeof(uint32_t)); }

}  // namespace

void Lowering::BindKv(Dispatch* d, const KvGroup& group) const {
  uint32_t* c = d->constants + kFirstKvConstant;
  *c++ = traits_.n_windows;
  *c++ = traits_.window_shift;
  *c++ = static_cast<uint32_t>(group.k_type);
  *c++ = static_cast<uint32_t>(group.v_type);
  *c++ = group.head_dim;
  *c++ = group.page_tokens;
  for (const KvPages* pages : {&group.active, &group.quantised}) {
    *c++ = Words(pages->pool.offset);
    *c++ = Words(pages->page_stride);
    *c++ = Words(pages->layer_stride);
    *c++ = Words(pages->v_offset);
    *c++ = Words(pages->k_scale_offset);
    *c++ = Words(pages->v_scale_offset);
  }
  *c++ = group.quantised_k_bits;
  *c++ = group.quantised_v_bits;
  *c++ = Max(group.group_size, 1u);
  *c++ = group.quantised.n_pages != 0 ? 1 : 0;
}

// Adds the norm over all q, or all k, heads together.
Status Lowering::AddHeadNorm(const Step& step, WeightId weight, uint32_t first, uint32_t n) {
  if (weight == kNoWeight) return Status::kOk;
  Dispatch d = Begin(Shader::kNorm, step);
  const Slice slice = program_.values[step.in].slice;
  const Place place = {Home::kActivations, 0, slice.offset + uint64_t{first} * sizeof(float),
                       slice.bytes - uint64_t{first} * sizeof(float)};
  Bind(&d, 1, place);
  Bind(&d, 2, place);
  BindVector(&d, 3, weight);
  PushWords push(&d);
  push.Add(n);
  push.Add(Width(step.in));
  push.Add(Width(step.in));
  push.Add(step.epsilon);
  return sink_->Add(d, diag_);
}

Status Lowering::LowerQkvRope(const Step& step) {
  const bool is_store = step.op == Op::kStoreKv;
  const AttentionKind kind =
      is_store ? WithoutQueries(program_.kinds[step.kind]) : program_.kinds[step.kind];
  const KvGroup& group = program_.kv_groups[kind.group];
  ARN_TRY(CheckEncoderPages(step, group));
  const bool spans_heads = NormsSpanHeads(program_, step);
  if (spans_heads) {
    ARN_TRY(AddHeadNorm(step, step.q_norm, 0, kind.n_heads * kind.head_dim));
    if (!step.shares_kv) {
      ARN_TRY(AddHeadNorm(step, step.k_norm, kind.n_heads * kind.head_dim,
                          kind.n_kv_heads * kind.head_dim));
    }
  }
  Dispatch d = Begin(Shader::kQkvRope, step);
  d.constants[1] = kind.n_heads;
  d.constants[2] = kind.n_kv_heads;
  d.constants[3] = kind.rope == kNoRope ? 0 : program_.ropes[kind.rope].rotary_dim;
  d.constants[4] = step.q_norm != kNoWeight && !spans_heads ? 1 : 0;
  d.constants[5] = step.k_norm != kNoWeight && !spans_heads ? 1 : 0;
  d.constants[6] = step.shares_kv ? 1 : 0;
  BindKv(&d, group);
  BindValue(&d, 2, step.in);
  BindVector(&d, 3, step.q_norm);
  BindVector(&d, 4, step.k_norm);
  if (d.constants[3] != 0) BindValue(&d, 5, step.angles);
  PushWords push(&d);
  push.Add(uint32_t{step.group_layer});
  push.Add(kind.group);
  push.Add(Width(step.in));
  push.Add(step.epsilon);
  push.Add(kind.query_temperature);
  push.Add(Max(kind.query_temperature_step, 1u));
  d.groups_x = kind.n_heads + (step.shares_kv ? 0 : 2 * kind.n_kv_heads);
  return sink_->Add(d, diag_);
}

Status Lowering::LowerAttention(const Step& step) {
  const bool is_self = step.op == Op::kSelfAttention;
  const AttentionKind& kind = program_.kinds[step.kind];
  const AttentionLanes lanes = LanesOf(kind);
  Dispatch d = Begin(Shader::kAttention, step);
  if (is_self) {
    d.constants[kFirstKvConstant + 4] = kind.head_dim;
    d.constants[kFirstKvConstant + 5] = 1;
  } else {
    BindKv(&d, program_.kv_groups[kind.group]);
  }
  d.constants[1] = kind.n_heads;
  d.constants[2] = kind.n_kv_heads;
  d.constants[3] = kind.is_cross_attention ? 1 : 0;
  d.constants[4] = is_self ? 1 : 0;
  d.constants[5] = step.sinks != kNoWeight ? 1 : 0;
  d.constants[6] = step.relative_position_bias != kNoWeight ? 1 : 0;
  d.constants[0] = kAttentionWidth;
  d.constants[7] = lanes.n_parts;
  d.constants[8] = lanes.per_lane;
  d.constants[9] = traits_.segment_positions;
  d.segments = SegmentsOf(program_, step, traits_.segment_positions);
  BindValue(&d, 1, step.in);
  BindValue(&d, 2, step.out);
  BindVector(&d, 3, step.sinks);
  BindVector(&d, 4, step.relative_position_bias);
  if (d.segments.may_share()) Bind(&d, 5, PlaceOf(workspace_.partials));
  PushWords push(&d);
  push.Add(uint32_t{step.group_layer});
  push.Add(is_self ? 0 : kind.group);
  push.Add(Width(step.in));
  push.Add(kind.window);
  push.Add(kind.chunk);
  push.Add(kind.attention_scale);
  push.Add(kind.softcap);
  const bool has_bias = step.relative_position_bias != kNoWeight;
  push.Add(has_bias ? program_.weights[step.relative_position_bias].rows : 0);
  push.Add(has_bias ? Words(WeightAt(step.relative_position_bias).row_bytes) : 0);
  push.Add(d.segments.most);
  d.groups_x = kind.n_heads;
  d.work = 2 * uint64_t{kind.n_heads} * kind.head_dim * program_.max_context;
  ARN_TRY(sink_->Add(d, diag_));
  if (!d.segments.may_share()) return Status::kOk;
  d.rows = GridRows::kShared;
  d.modes = BitOf(Mode::kOne) | BitOf(Mode::kFew);
  d.constants[10] = 1;
  d.work = 0;
  return sink_->Add(d, diag_);
}

Status Lowering::LowerEdits(uint32_t g) {
  const KvGroup& group = program_.kv_groups[g];
  // State slots and encoder pages have no edits: runs write them whole.
  if (group.state_floats != 0 || group.is_encoder) return Status::kOk;
  Dispatch d = Begin(Shader::kKvEdit, Step());
  d.modes = BitOf(Mode::kOne);
  d.rows = GridRows::kEdits;
  BindKv(&d, group);
  PushWords push(&d);
  push.Add(FirstLayerOf(program_, g));
  d.groups_x = group.n_kv_heads;
  d.groups_z = group.n_layers;
  return sink_->Add(d, diag_);
}

}  // namespace arn::vulkan
