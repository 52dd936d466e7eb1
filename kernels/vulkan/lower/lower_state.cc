// Lowers layers with a fixed-size state: short convolutions and selective scans.
#include "kernels/vulkan/lower/lower.h"
#include "kernels/vulkan/lower/push_words.h"

namespace arn::vulkan {
namespace {

constexpr uint32_t kWidth = 64;

}  // namespace

// Adds the arguments of shaders/state.glsl.
void Lowering::PutState(const Step& step, Dispatch* dispatch) const {
  BindKv(dispatch, program_.kv_groups[step.group]);
  PushWords push(dispatch);
  push.Add(uint32_t{step.group_layer});
  push.Add(uint32_t{step.group});
  push.Add(step.state_offset);
}

Status Lowering::LowerConv(const Step& step) {
  const Weight& weight = program_.weights[step.weight];
  Dispatch d = Begin(Shader::kConv, step);
  d.constants[1] = step.is_gated ? 1 : 0;
  d.constants[2] = step.bias != kNoWeight ? 1 : 0;
  BindValue(&d, 1, step.in);
  BindValue(&d, 2, step.out);
  BindVector(&d, 3, step.weight);
  BindVector(&d, 4, step.bias);
  PutState(step, &d);
  PushWords push(&d);
  push.Add(weight.cols);
  push.Add(Width(step.in));
  push.Add(weight.rows);
  push.Add(static_cast<uint32_t>(WeightAt(step.weight).row_bytes / sizeof(float)));
  d.groups_x = static_cast<uint32_t>(CeilDiv(weight.cols, kWidth));
  d.work = uint64_t{weight.rows} * weight.cols;
  return sink_->Add(d, diag_);
}

Status Lowering::LowerScan(const Step& step) {
  const Weight& rates = program_.weights[step.weight];
  for (const bool passes_by : {true, false}) {
    Dispatch d = Begin(Shader::kScan, step);
    const WeightId weight = passes_by ? step.skip : step.weight;
    d.constants[1] = passes_by ? 1 : 0;
    d.constants[2] = rates.rows;
    BindValue(&d, 1, step.in);
    BindValue(&d, 2, step.out);
    BindVector(&d, 3, weight);
    BindValue(&d, 4, step.time_steps);
    BindValue(&d, 5, step.mix);
    PutState(step, &d);
    PushWords push(&d);
    push.Add(rates.cols);
    push.Add(Width(step.out));
    push.Add(static_cast<uint32_t>(WeightAt(weight).row_bytes / sizeof(float)));
    d.groups_x = static_cast<uint32_t>(CeilDiv(rates.cols, kWidth));
    // 8 per state: an exponential costs several multiplications.
    d.work = 8 * uint64_t{rates.rows} * rates.cols;
    ARN_TRY(sink_->Add(d, diag_));
  }
  return Status::kOk;
}

}  // namespace arn::vulkan
