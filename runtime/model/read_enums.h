// Converts the bundle's enums. Refuses unknown values, naming field and number.
#pragma once

#include "kernels/contract/program.h"
#include "platform/base/diag.h"
#include "runtime/bundle/bundle.h"
#include "runtime/bundle/layer_fields.h"

namespace arn {

inline Status ReadNormKind(const char* field, fbs::NormKind kind, NormKind* out, Diag* diag) {
  switch (kind) {
    case fbs::NormKind::Rms: *out = NormKind::kRms; return Status::kOk;
    case fbs::NormKind::Layer: *out = NormKind::kLayer; return Status::kOk;
  }
  return diag->Fail(Status::kUnsupported, "model.%s %u is not known to this version", field,
                    static_cast<unsigned>(kind));
}

inline Status ReadActivation(const char* field, fbs::Activation activation, Activation* out,
                             Diag* diag) {
  switch (activation) {
    case fbs::Activation::Silu: *out = Activation::kSilu; return Status::kOk;
    case fbs::Activation::GeluTanh: *out = Activation::kGeluTanh; return Status::kOk;
    case fbs::Activation::Gelu: *out = Activation::kGelu; return Status::kOk;
    case fbs::Activation::ClampedSwiglu: *out = Activation::kClampedSwiglu; return Status::kOk;
    case fbs::Activation::Relu: *out = Activation::kRelu; return Status::kOk;
    case fbs::Activation::ReluSquared: *out = Activation::kReluSquared; return Status::kOk;
    case fbs::Activation::QuickGelu: *out = Activation::kQuickGelu; return Status::kOk;
    case fbs::Activation::Tanh: *out = Activation::kTanh; return Status::kOk;
    case fbs::Activation::Sigmoid: *out = Activation::kSigmoid; return Status::kOk;
    case fbs::Activation::Mish: *out = Activation::kMish; return Status::kOk;
    case fbs::Activation::Xielu: *out = Activation::kXielu; return Status::kOk;
  }
  return diag->Fail(Status::kUnsupported, "model.%s %u is not known to this version", field,
                    static_cast<unsigned>(activation));
}

inline Status ReadRouteScore(const char* field, fbs::RouteScore score, RouteScore* out,
                             Diag* diag) {
  switch (score) {
    case fbs::RouteScore::Softmax: *out = RouteScore::kSoftmax; return Status::kOk;
    case fbs::RouteScore::Sigmoid: *out = RouteScore::kSigmoid; return Status::kOk;
    case fbs::RouteScore::SparseMixer: *out = RouteScore::kSparseMixer; return Status::kOk;
  }
  return diag->Fail(Status::kUnsupported, "model.%s %u is not known to this version", field,
                    static_cast<unsigned>(score));
}

inline Status ReadMixer(const char* field, fbs::Mixer mixer, Mixer* out, Diag* diag) {
  switch (mixer) {
    case fbs::Mixer::Attention: *out = Mixer::kAttention; return Status::kOk;
    case fbs::Mixer::Conv: *out = Mixer::kConv; return Status::kOk;
    case fbs::Mixer::Scan: *out = Mixer::kScan; return Status::kOk;
    case fbs::Mixer::LinearAttention: *out = Mixer::kLinearAttention; return Status::kOk;
    case fbs::Mixer::None: *out = Mixer::kNone; return Status::kOk;
  }
  return diag->Fail(Status::kUnsupported, "model.%s %u is not known to this version", field,
                    static_cast<unsigned>(mixer));
}

}  // namespace arn
