// Lowers layers with a fixed-size state: short convolutions and selective scans.
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

}  // namespace

Status Lowering::Lower(const Step& step, const ConvParams& p) {
  const Weight& weight = program_.weights[p.weight];
  Dispatch d = Begin(Shader::kConv, step);
  d.constants[kConvIsGatedId] = p.is_gated ? 1 : 0;
  d.constants[kConvHasBiasId] = p.bias != kNoWeight ? 1 : 0;
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
  return sink_->Add(d, diag_);
}

Status Lowering::Lower(const Step& step, const ScanParams& p) {
  const Weight& rates = program_.weights[p.rates];
  for (const bool passes_by : {true, false}) {
    Dispatch d = Begin(Shader::kScan, step);
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
    ARN_TRY(sink_->Add(d, diag_));
  }
  return Status::kOk;
}

}  // namespace arn::vulkan
