#include "runtime/model/read_dense.h"

#include "runtime/model/field_checks.h"
#include "runtime/model/read_enums.h"
#include "runtime/model/read_layer.h"
#include "runtime/model/read_tensor.h"
#include "runtime/model/tensor_shapes.h"

namespace arn {

Status ReadDense(const fbs::Dense& dense, uint32_t index, uint32_t width, const ModelSpec& spec,
                 DenseSpec* out, Diag* diag) {
  Shapes shapes(spec.weights, diag);
  if (dense.weight() >= spec.weights.size()) {
    return diag->Fail(Status::kBadBundle, "dense layer %u: tensor %u of %zu", index, dense.weight(),
                      spec.weights.size());
  }
  out->width = spec.weights[dense.weight()].rows;
  ARN_TRY(CheckRange("dense", out->width, 1, kMaxWidth, diag));
  ARN_TRY(shapes.Matrix("dense", index, dense.weight(), out->width, width, &out->weight));
  out->has_activation = dense.has_activation();
  ARN_TRY(ReadActivation("dense.activation", dense.activation(), &out->activation, diag));
  if (out->activation == Activation::kClampedSwiglu || out->activation == Activation::kXielu) {
    return diag->Fail(Status::kUnsupported, "model.dense.activation is %s",
                      ActivationName(out->activation));
  }
  ARN_TRY(ReadNormKind("dense.norm_kind", dense.norm_kind(), &out->norm_kind, diag));
  ARN_TRY(CheckEpsilon("dense.norm_epsilon", dense.norm_epsilon(), diag));
  out->norm_epsilon = dense.norm_epsilon();
  return ReadNorm("dense.norm", index, dense.norm(), dense.norm_bias(), out->norm_kind, out->width,
                  &shapes, &out->norm, &out->norm_bias);
}

}  // namespace arn
