// Lowers encoder steps. The host writes the features (backend_vulkan.cc).
#include "kernels/contract/kv_page.h"
#include "kernels/vulkan/device/device.h"
#include "kernels/vulkan/lower/lower.h"
#include "platform/base/arith.h"

namespace arn::vulkan {

static_assert(static_cast<uint32_t>(PoolKind::kConcat) == 6 && kPoolKindCount == 7);  // pool.comp

// Features that are as wide as the value are written there by the host.
Status Lowering::Lower(const Step& step, const FeaturesParams& p) {
  if (p.optional_rows != 0) return UnsupportedError(step, "rows that may be absent");
  if (p.stride == 0) return Status::kOk;
  Dispatch d = Begin(Shader::kColumns, step);
  Bind(&d, 1, PlaceOfRows(workspace_.features, p.stride * sizeof(float)));
  BindValue(&d, 2, step.out);
  ColumnsPush push = {};
  push.width = Width(step.out);
  push.stride = p.stride;
  push.first = p.first;
  return AddColumns(&d, push, push.width);
}

Status Lowering::Lower(const Step& step, const ClampParams& p) {
  Dispatch d = Begin(Shader::kClamp, step);
  BindValue(&d, 2, step.in);
  BindVector(&d, 3, p.ranges);
  ClampPush push = {};
  push.width = Width(step.in);
  push.first = p.first;
  push.n = p.n_columns;
  push.range = p.range;
  return AddColumns(&d, push, push.n);
}

Status Lowering::Lower(const Step& step, const PoolParams& p) {
  Dispatch d = Begin(Shader::kPool, step);
  d.rows = GridRows::kPooled;
  d.head.of_rows = kOfPooled;
  d.constants[kPoolKindId] = static_cast<uint32_t>(p.mode);
  d.constants[kPoolHasShiftId] = p.shift != kNoWeight ? 1 : 0;
  d.constants[kPoolHasScaleId] = p.scale != kNoWeight ? 1 : 0;
  const Value& in = program_.values[step.in];
  Bind(&d, 1, PlaceOfRows(in.slice, uint64_t{program_.pool_rows} * in.width * sizeof(float)));
  BindValue(&d, 2, step.out);
  BindVector(&d, 3, p.shift);
  BindVector(&d, 4, p.scale);
  PoolPush push = {};
  push.width = Width(step.in);
  push.out_width = Width(step.out);
  push.n_rows = program_.pool_rows;
  push.factor = p.factor;
  return AddColumns(&d, push, push.out_width);
}

Status Lowering::Lower(const Step& step, const Im2colParams& p) {
  if (p.n_taps != 2 * p.padding + 1) return UnsupportedError(step, "rows fewer than read");
  Dispatch d = Begin(Shader::kIm2col, step);
  BindValue(&d, 1, step.in);
  BindValue(&d, 2, step.out);
  Im2colPush push = {};
  push.width = Width(step.in);
  push.taps = p.n_taps;
  push.stride = p.stride;
  return AddColumns(&d, push, Width(step.out));
}

Status Lowering::Lower(const Step& step, const AddPositionsParams& p) {
  const auto row_words = [&](WeightId id) {
    return id == kNoWeight ? 0 : static_cast<uint32_t>(WeightAt(id).row_bytes / sizeof(float));
  };
  Dispatch d = Begin(Shader::kAddPositions, step);
  d.constants[kAddHasPositionsId] = p.positions != kNoWeight ? 1 : 0;
  d.constants[kAddHasTypesId] = p.token_types != kNoWeight ? 1 : 0;
  BindValue(&d, 2, step.in);
  BindVector(&d, 3, p.positions);
  BindVector(&d, 4, p.token_types);
  if (d.places[2].bytes > Device::kMaxBindingBytes) {
    return UnsupportedError(step, "positions that do not fit a binding of 128 MiB");
  }
  AddPositionsPush push = {};
  push.width = Width(step.in);
  push.position_words = row_words(p.positions);
  push.type_words = row_words(p.token_types);
  return AddColumns(&d, push, Width(step.in));
}

// An encoder page holds any number of tokens, not a power of two: each head must still start at a
// word.
Status Lowering::CheckEncoderPages(const Step& step, const KvGroup& group) {
  for (const DType type : {group.k_type, group.v_type}) {
    if (!group.is_encoder || KvValueBytes(group, type, 0) % sizeof(uint32_t) == 0) continue;
    return UnsupportedError(step, "encoder keys or values whose heads share a 32-bit word");
  }
  return Status::kOk;
}

}  // namespace arn::vulkan
