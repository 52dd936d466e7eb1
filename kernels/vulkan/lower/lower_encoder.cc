// Lowers encoder steps. The host writes the features (backend_vulkan.cc).
#include "kernels/contract/kv_page.h"
#include "kernels/vulkan/device/device.h"
#include "kernels/vulkan/lower/lower.h"

namespace arn::vulkan {
namespace {

constexpr uint32_t kWidth = 64;

}  // namespace

Status Lowering::Lower(const Step& step, const Im2colParams& p) {
  Dispatch d = Begin(Shader::kIm2col, step);
  BindValue(&d, 1, step.in);
  BindValue(&d, 2, step.out);
  Im2colPush push = {};
  push.width = Width(step.in);
  push.taps = p.n_taps;
  push.stride = uint32_t{program_.values[step.in].row_factor} /
                uint32_t{program_.values[step.out].row_factor};
  d.SetPush(push);
  d.groups_x = static_cast<uint32_t>(CeilDiv(Width(step.out), kWidth));
  return sink_->Add(d, diag_);
}

Status Lowering::Lower(const Step& step, const AddPositionsParams& p) {
  if (p.positions == kNoWeight || p.token_types != kNoWeight) {
    return UnsupportedError(step, "token types have no shader");
  }
  const DeviceWeight at = WeightAt(p.positions);
  if (at.values_bytes + Device::kBindingAlign > Device::kMaxBindingBytes) {
    return UnsupportedError(step, "positions that do not fit a binding of 128 MiB");
  }
  Dispatch d = Begin(Shader::kAddPositions, step);
  BindValue(&d, 2, step.in);
  BindVector(&d, 3, p.positions);
  AddPositionsPush push = {};
  push.width = Width(step.in);
  push.position_words = static_cast<uint32_t>(at.row_bytes / sizeof(float));
  d.SetPush(push);
  d.groups_x = static_cast<uint32_t>(CeilDiv(Width(step.in), kWidth));
  return sink_->Add(d, diag_);
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
