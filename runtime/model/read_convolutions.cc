#include "runtime/model/read_convolutions.h"

#include "platform/base/arith.h"
#include "runtime/bundle/optional_fields.h"
#include "runtime/model/field_checks.h"
#include "runtime/model/read_enums.h"
#include "runtime/model/read_tensor.h"
#include "runtime/model/tensor_shapes.h"

namespace arn {
namespace {

constexpr uint32_t kMaxTaps = 1024;
constexpr uint32_t kMaxStride = 256;
constexpr uint32_t kPairTaps = 3;  // of conv1 and conv2

// conv1 and conv2: two neighbours and a padded border, the second with stride 2.
Status ReadPair(const fbs::Encoder& encoder, Span<ConvolutionSpec> out, Diag* diag) {
  for (uint32_t i = 0; i < out.size(); ++i) {
    ConvolutionSpec& convolution = out[i];
    convolution.weight = i == 0 ? encoder.conv1() : encoder.conv2();
    convolution.taps = kPairTaps;
    convolution.stride = i == 0 ? 1 : 2;
    convolution.padding = 1;
    ARN_TRY(ReadActivation("encoder.conv_activation", encoder.conv_activation(),
                           &convolution.activation, diag));
  }
  return Status::kOk;
}

Status ReadConvolution(const fbs::Convolution& in, ConvolutionSpec* out, Diag* diag) {
  ARN_TRY(CheckRange("encoder.convolutions.taps", in.taps(), 1, kMaxTaps, diag));
  ARN_TRY(CheckRange("encoder.convolutions.stride", in.stride(), 1, kMaxStride, diag));
  ARN_TRY(CheckRange("encoder.convolutions.padding", in.padding(), 0, (in.taps() - 1) / 2, diag));
  ARN_TRY(CheckEpsilon("encoder.convolutions.norm_epsilon", in.norm_epsilon(), diag));
  ARN_TRY(
      ReadActivation("encoder.convolutions.activation", in.activation(), &out->activation, diag));
  out->weight = in.weight();
  out->taps = static_cast<uint16_t>(in.taps());
  out->stride = static_cast<uint16_t>(in.stride());
  out->padding = static_cast<uint16_t>(in.padding());
  out->norm = in.norm();
  out->norm_bias = in.norm_bias();
  out->norm_epsilon = in.norm_epsilon();
  return Status::kOk;
}

// Checks the shapes of a convolution's tensors, and sets its channels. *inputs: the channels
// before it, then its own.
Status CheckShapes(const ModelSpec& spec, ConvolutionSpec* convolution, uint32_t* inputs,
                   Diag* diag) {
  if (convolution->activation == Activation::kClampedSwiglu ||
      convolution->activation == Activation::kXielu) {
    return diag->Fail(Status::kBadBundle,
                      "model.encoder: a convolution has no gate and no "
                      "parameters for its activation");
  }
  Shapes shapes(spec.weights, diag);
  const uint32_t rows =
      convolution->weight < spec.weights.size() ? spec.weights[convolution->weight].rows : 1;
  ARN_TRY(CheckRange("encoder.convolutions.channels", rows, 1, kMaxWidth / 3, diag));
  ARN_TRY(CheckRange("encoder.convolutions.columns", uint64_t{convolution->taps} * *inputs, 1,
                     kMaxWidth, diag));
  ARN_TRY(shapes.Matrix("encoder convolution", 0, convolution->weight, rows,
                        uint64_t{convolution->taps} * *inputs));
  if (convolution->norm != kNoWeight) {
    ARN_TRY(shapes.Vector("encoder convolution's norm", 0, convolution->norm, rows));
    ARN_TRY(shapes.Vector("encoder convolution's norm_bias", 0, convolution->norm_bias, rows));
  }
  *inputs = convolution->channels = rows;
  return Status::kOk;
}

}  // namespace

FrameRule FrameRule::Before(const ConvolutionSpec& c) const {
  FrameRule out;
  out.per_row = static_cast<uint16_t>(per_row * c.stride);
  out.more = static_cast<uint16_t>(more * c.stride + c.taps - 1 - 2 * c.padding);
  // A padded border must be where it is for all rows.
  out.optional = static_cast<uint16_t>(c.padding != 0 ? 0 : optional * c.stride + c.stride - 1);
  return out;
}

uint64_t ConvolutionCount(const fbs::Encoder* encoder) {
  if (encoder == nullptr || encoder->feature_width() == 0) return 0;
  const uint64_t n = CountOf(encoder->convolutions());
  return n == 0 ? 2 : n;
}

Status ReadConvolutions(const fbs::Encoder& encoder, Arena* arena, const ModelSpec& spec,
                        EncoderSpec* out, Diag* diag) {
  const uint64_t n = ConvolutionCount(&encoder);
  if (n == 0) return Status::kOk;
  ARN_TRY(CheckRange("encoder.convolutions", n, 1, kMaxConvolutions, diag));
  ARN_TRY(CheckRange("encoder.feature_width", encoder.feature_width(), 1, kMaxWidth / 3, diag));
  ARN_ASSIGN(Span<ConvolutionSpec> list, arena->AllocateArray<ConvolutionSpec>(n));
  const auto* given = encoder.convolutions();
  if (CountOf(given) == 0) {
    ARN_TRY(ReadPair(encoder, list, diag));
  } else {
    for (uint32_t i = 0; i < n; ++i) ARN_TRY(ReadConvolution(*given->Get(i), &list[i], diag));
  }
  uint32_t channels = encoder.feature_width();
  for (ConvolutionSpec& convolution : list) {
    ARN_TRY(CheckShapes(spec, &convolution, &channels, diag));
  }
  if (channels != out->hidden) {
    return diag->Fail(Status::kBadBundle,
                      "model.encoder: the last convolution makes %u channels, expected %u",
                      channels, out->hidden);
  }
  bool is_padded = false;
  uint64_t per_row = 1, more = 0;
  for (size_t i = n; i > 0; --i) {
    const ConvolutionSpec& convolution = list[i - 1];
    per_row *= convolution.stride;
    more = more * convolution.stride + convolution.taps - 1 - 2u * convolution.padding;
    ARN_TRY(CheckRange("encoder.convolutions: frames of a row", Max(per_row, more), 0, UINT16_MAX,
                       diag));
    out->frames = out->frames.Before(convolution);
    is_padded = is_padded || convolution.padding != 0;
  }
  if (is_padded) out->frames.optional = 0;
  out->feature_width = encoder.feature_width();
  out->takes_samples = encoder.takes_samples();
  out->convolutions = list;
  return Status::kOk;
}

}  // namespace arn
