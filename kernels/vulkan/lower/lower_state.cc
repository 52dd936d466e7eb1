// Lowers layers with a fixed-size state: short convolutions and selective scans.
#include "kernels/vulkan/lower/lower.h"
#include "platform/base/arith.h"

namespace arn::vulkan {
namespace {

constexpr uint32_t kWidth = 64;

// Sets what shaders/state.glsl reads.
template <typename Push>
void SetState(const Step& step, Push* push) {
  push->layer = step.group_layer;
  push->group = step.group;
  push->state_at = step.state_offset;
}

}  // namespace

Status Lowering::LowerConv(const Step& step) {
  const Weight& weight = program_.weights[step.weight];
  Dispatch d = Begin(Shader::kConv, step);
  d.constants[kConvIsGatedId] = step.is_gated ? 1 : 0;
  d.constants[kConvHasBiasId] = step.bias != kNoWeight ? 1 : 0;
  BindValue(&d, 1, step.in);
  BindValue(&d, 2, step.out);
  BindVector(&d, 3, step.weight);
  BindVector(&d, 4, step.bias);
  BindKv(&d, program_.kv_groups[step.group]);
  ConvPush push = {};
  SetState(step, &push);
  push.width = weight.cols;
  push.in_stride = Width(step.in);
  push.taps = weight.rows;
  push.weight_stride = static_cast<uint32_t>(WeightAt(step.weight).row_bytes / sizeof(float));
  d.SetPush(push);
  d.groups_x = static_cast<uint32_t>(CeilDiv(weight.cols, kWidth));
  d.work = uint64_t{weight.rows} * weight.cols;
  return sink_->Add(d, diag_);
}

Status Lowering::LowerScan(const Step& step) {
  const Weight& rates = program_.weights[step.weight];
  for (const bool passes_by : {true, false}) {
    Dispatch d = Begin(Shader::kScan, step);
    const WeightId weight = passes_by ? step.skip : step.weight;
    d.constants[kScanPassesById] = passes_by ? 1 : 0;
    d.constants[kScanStatesId] = rates.rows;
    BindValue(&d, 1, step.in);
    BindValue(&d, 2, step.out);
    BindVector(&d, 3, weight);
    BindValue(&d, 4, step.time_steps);
    BindValue(&d, 5, step.mix);
    BindKv(&d, program_.kv_groups[step.group]);
    ScanPush push = {};
    SetState(step, &push);
    push.width = rates.cols;
    push.out_stride = Width(step.out);
    push.weight_stride = static_cast<uint32_t>(WeightAt(weight).row_bytes / sizeof(float));
    d.SetPush(push);
    d.groups_x = static_cast<uint32_t>(CeilDiv(rates.cols, kWidth));
    // 8 per state: an exponential costs several multiplications.
    d.work = 8 * uint64_t{rates.rows} * rates.cols;
    ARN_TRY(sink_->Add(d, diag_));
  }
  return Status::kOk;
}

}  // namespace arn::vulkan
