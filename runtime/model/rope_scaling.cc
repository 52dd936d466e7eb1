#include "runtime/model/rope_scaling.h"

#include "kernels/math/rope_frequencies.h"
#include "runtime/model/field_checks.h"

namespace arn {

Status CheckRopeScaling(const ModelSpec& spec, const RopeScaling& scaling, uint32_t* out_context,
                        Diag* diag) {
  *out_context = spec.max_context;
  if (!scaling.exists()) {
    if (scaling.factor == 0.0f) return Status::kOk;
    return diag->Fail(Status::kBadArgument, "rope_factor is %g, but rope_scaling is not set",
                      static_cast<double>(scaling.factor));
  }
  if (!(scaling.factor > 1.0f && scaling.factor <= kMaxRopeFactor)) {
    return diag->Fail(Status::kBadArgument, "rope_factor is %g, expected more than 1, at most %g",
                      static_cast<double>(scaling.factor), static_cast<double>(kMaxRopeFactor));
  }
  if (spec.ropes.size() == 0 || spec.positions != kNoWeight || spec.encoder.exists()) {
    return diag->Fail(Status::kUnsupported,
                      "rope_scaling: RoPE is not what limits this model's context");
  }
  if (spec.ropes.size() > 1 || spec.rope_variants[0].theta == 0.0f) {
    return diag->Fail(Status::kUnsupported,
                      "rope_scaling: the checkpoint has a scaling of its own or frequencies by "
                      "layer type, or the bundle is from before 0.2 (convert it again)");
  }
  const double context =
      static_cast<double>(spec.max_context) * static_cast<double>(scaling.factor);
  if (context > kMaxContext) {
    return diag->Fail(Status::kBadArgument,
                      "rope_factor is %g: a context of %.0f tokens, at most %u are supported",
                      static_cast<double>(scaling.factor), context, kMaxContext);
  }
  *out_context = static_cast<uint32_t>(context);
  return Status::kOk;
}

void ScaleRope(const ModelSpec& spec, const RopeScaling& scaling, float* inv_freq, RopeKind* rope) {
  const auto theta = static_cast<double>(spec.rope_variants[0].theta);
  const uint32_t dim = rope->rotary_dim;
  if (scaling.type == RopeScalingType::kLinear) {
    for (uint32_t i = 0; i < dim / 2; ++i) {
      inv_freq[i] = LinearRopeFrequency(theta, dim, i, scaling.factor);
    }
  } else {
    YarnRope::Shape shape;
    shape.theta = theta;
    shape.dim = dim;
    shape.context = spec.max_context;
    shape.factor = static_cast<double>(scaling.factor);
    const YarnRope yarn(shape);
    for (uint32_t i = 0; i < dim / 2; ++i) inv_freq[i] = yarn.Frequency(i);
    rope->amplitude = static_cast<float>(YarnRope::Amplitude(shape.factor));
  }
  rope->inv_freq = {inv_freq, dim / 2};
}

}  // namespace arn
