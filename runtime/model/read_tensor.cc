#include "runtime/model/read_tensor.h"

#include <cinttypes>

#include "kernels/contract/code_type.h"
#include "kernels/pack/pack.h"
#include "platform/base/result.h"

namespace arn {
namespace {

static_assert(static_cast<uint32_t>(fbs::DType::MAX) + 1 == kDTypeCount);

Status ReadDType(const fbs::Tensor& tensor, DType* out, Diag* diag) {
  if (static_cast<uint32_t>(tensor.dtype()) >= kDTypeCount) {
    return diag->Fail(Status::kUnsupported, "tensor %s: dtype %u is not known to this version",
                      tensor.name()->c_str(), static_cast<unsigned>(tensor.dtype()));
  }
  *out = static_cast<DType>(tensor.dtype());
  if (kHasLowBits || FindCodeType(*out) == nullptr) return Status::kOk;
  return diag->Fail(Status::kUnsupported,
                    "tensor %s: this library is built without %s (ARENITE_LOW_BITS)",
                    tensor.name()->c_str(), DTypeName(*out));
}

Status ReadLayout(const fbs::Tensor& tensor, WeightLayout* out, Diag* diag) {
  const fbs::Layout* layout = tensor.layout();
  if (layout == nullptr) {
    return diag->Fail(Status::kBadBundle, "tensor %s has no layout", tensor.name()->c_str());
  }
  switch (layout->order()) {
    case fbs::WeightOrder::Rows: out->order = WeightOrder::kRows; break;
    case fbs::WeightOrder::Panels: out->order = WeightOrder::kPanels; break;
    case fbs::WeightOrder::DeviceRows: out->order = WeightOrder::kDeviceRows; break;
    default:
      return diag->Fail(Status::kUnsupported, "tensor %s: order %u is not known to this version",
                        tensor.name()->c_str(), static_cast<unsigned>(layout->order()));
  }
  out->nr = layout->nr();
  out->kr = layout->kr();
  out->sr = layout->sr();
  out->planes = layout->planes();
  return Status::kOk;
}

}  // namespace

Status ReadTensor(const Bundle& bundle, const fbs::Tensor& tensor, Weight* out, Diag* diag) {
  const char* name = tensor.name()->c_str();  // required key: the verifier has checked it
  const fbs::Segment* segment = tensor.segment();
  if (segment == nullptr) return diag->Fail(Status::kBadBundle, "tensor %s has no segment", name);
  ARN_TRY(ReadDType(tensor, &out->dtype, diag));
  ARN_TRY(ReadLayout(tensor, &out->layout, diag));
  out->is_vector = tensor.is_vector();
  out->rows = tensor.rows();
  out->cols = tensor.cols();
  uint64_t expected = 0;
  if (out->is_vector) {
    if (out->dtype != DType::kF32 || out->layout.order != WeightOrder::kRows || out->rows != 1 ||
        out->cols == 0 || out->cols > kMaxWidth) {
      return diag->Fail(Status::kBadBundle, "tensor %s: a vector is one f32 row of 1..%u elements",
                        name, kMaxWidth);
    }
    expected = uint64_t{out->cols} * sizeof(float);
  } else if (out->rows == 0 || out->cols == 0 || out->rows > kMaxVocab * 4u ||
             out->cols > kMaxWidth ||
             !PackedBytes(out->dtype, out->layout, out->rows, out->cols, &expected)) {
    return diag->Fail(Status::kBadBundle,
                      "tensor %s: %s [%u, %u] in layout nr %u kr %u sr %u planes %u does not exist",
                      name, DTypeName(out->dtype), out->rows, out->cols, out->layout.nr,
                      out->layout.kr, out->layout.sr, out->layout.planes);
  }
  if (segment->bytes() != expected) {
    return diag->Fail(Status::kBadBundle,
                      "tensor %s: %s [%u, %u] takes %" PRIu64 " bytes, the segment has %" PRIu64,
                      name, DTypeName(out->dtype), out->rows, out->cols, expected,
                      static_cast<uint64_t>(segment->bytes()));
  }
  ARN_TRY(CheckSegment(bundle, *segment, name, diag));
  out->data = bundle.segments.data() + segment->offset();
  out->bytes = segment->bytes();
  return Status::kOk;
}

}  // namespace arn
