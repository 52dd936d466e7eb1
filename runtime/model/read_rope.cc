#include "runtime/model/read_rope.h"

#include "runtime/model/field_checks.h"

namespace arn {

Status ReadRope(const fbs::RopeKind& rope, RopeKind* out, RopeVariants* out_variants, Diag* diag) {
  ARN_TRY(CheckRange("ropes.rotary_dim", rope.rotary_dim(), 2, kMaxHeadDim, diag));
  ARN_TRY(CheckFinite("ropes.amplitude", rope.amplitude(), diag));
  const uint32_t half = rope.rotary_dim() / 2;
  if (rope.rotary_dim() % 2 != 0 || rope.inv_freq() == nullptr || rope.inv_freq()->size() != half) {
    return diag->Fail(Status::kBadBundle, "model.ropes.inv_freq: rotary_dim %u needs %u values",
                      rope.rotary_dim(), half);
  }
  for (float f : *rope.inv_freq()) ARN_TRY(CheckFinite("ropes.inv_freq", f, diag));
  out->rotary_dim = rope.rotary_dim();
  out->amplitude = rope.amplitude();
  out->inv_freq = {rope.inv_freq()->data(), half};
  if (rope.axes() != nullptr && rope.axes()->size() != 0) {
    if (rope.axes()->size() != half) {
      return diag->Fail(Status::kBadBundle, "model.ropes.axes: rotary_dim %u needs %u values",
                        rope.rotary_dim(), half);
    }
    for (const uint8_t axis : *rope.axes()) {
      ARN_TRY(CheckRange("ropes.axes", axis, 0, kRopeAxes - 1, diag));
    }
    out->axes = {rope.axes()->data(), half};
  }
  ARN_TRY(CheckFinite("ropes.theta", rope.theta(), diag));
  if (rope.theta() != 0.0f && !(rope.theta() > 1.0f)) {
    return diag->Fail(Status::kBadBundle, "model.ropes.theta is %g, expected more than 1, or 0",
                      static_cast<double>(rope.theta()));
  }
  out_variants->theta = rope.theta();
  if (rope.short_context() == 0) return Status::kOk;
  if (rope.long_inv_freq() == nullptr || rope.long_inv_freq()->size() != half) {
    return diag->Fail(Status::kBadBundle,
                      "model.ropes.long_inv_freq: rotary_dim %u needs %u values", rope.rotary_dim(),
                      half);
  }
  for (float f : *rope.long_inv_freq()) ARN_TRY(CheckFinite("ropes.long_inv_freq", f, diag));
  out_variants->short_context = rope.short_context();
  out_variants->long_inv_freq = {rope.long_inv_freq()->data(), half};
  return Status::kOk;
}

}  // namespace arn
