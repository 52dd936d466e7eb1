#include "kernels/vulkan/lower/row_ranges.h"

#include "kernels/contract/code_type.h"
#include "kernels/vulkan/device/device.h"
#include "platform/base/arith.h"

namespace arn::vulkan {
namespace {

constexpr uint64_t kRangeTile = 128;  // rows of the largest tile
// Bytes of a binding that data leaves free: it begins earlier, and quantised rows are aligned.
constexpr uint64_t kSpare = 2 * Device::kBindingAlign;
static_assert(kRangeTile * sizeof(float) % Device::kBindingAlign == 0);

// Lists the ops of towers that compute each row alone.
constexpr Op kOfRows[] = {Op::kFeatures,     Op::kRopeAngles, Op::kNorm, Op::kLinear,
                          Op::kQkvRope,      Op::kGatedAct,   Op::kAct,  Op::kClamp,
                          Op::kAddPositions, Op::kMultiply};

// Collects the rows and widths of what a program's dispatches bind.
struct Shapes {
  uint64_t rows = 0, row_bytes = 0, bytes = 0;  // the most of each

  void Add(uint64_t n, uint64_t n_bytes) {
    rows = Max(rows, n);
    row_bytes = Max(row_bytes, n_bytes);
    bytes = Max(bytes, n * n_bytes);
  }
};

Shapes ShapesOf(const Program& program) {
  Shapes shapes;
  for (const Value& value : program.values) {
    shapes.Add(MaxRowsOf(program, value), uint64_t{value.width} * sizeof(float));
  }
  for (const Step& step : program.steps) {
    if (const auto* features = step.If<FeaturesParams>()) {
      shapes.Add(program.max_encoder_rows, uint64_t{features->stride} * sizeof(float));
    } else if (step.op() == Op::kPool) {
      const uint64_t width = program.values[step.in].width;
      shapes.Add(program.max_pooled_rows, program.pool_rows * width * sizeof(float));
    } else if (const auto* linear = step.If<LinearParams>()) {
      const Weight& weight = program.weights[linear->weight];
      if (!IsInteger(weight.dtype)) continue;
      shapes.Add(MaxRowsOf(program, program.values[step.in]),
                 (2 + QuantizedWords(weight.cols)) * sizeof(uint32_t));
    }
  }
  return shapes;
}

}  // namespace

uint64_t RangeRowsOf(const Program& program, uint64_t binding_bytes) {
  if (program.n_encoder_steps != program.steps.size()) return kAllRows;
  const Shapes shapes = ShapesOf(program);
  const uint64_t room = binding_bytes - kSpare;
  if (shapes.rows <= kMaxGridRows && shapes.bytes <= room) return kAllRows;
  const uint64_t most = Min(kMaxGridRows, room / shapes.row_bytes) / kRangeTile * kRangeTile;
  if (most == 0) return 0;
  return AlignUp(CeilDiv(shapes.rows, CeilDiv(shapes.rows, most)), kRangeTile);
}

bool HasRanges(const Program& program, const Step& step) {
  if (step.op() == Op::kPool) return program.pool_rows != 0;
  for (const Op op : kOfRows) {
    if (step.op() == op) return true;
  }
  return step.op() == Op::kSelfAttention;
}

uint32_t QuantizedHeadWords(uint64_t rows) {
  return static_cast<uint32_t>(AlignUp(2 * rows, kSliceAlign / sizeof(uint32_t)));
}

uint32_t QuantizedWords(uint32_t cols) {
  return static_cast<uint32_t>(AlignUp(cols, kInt4BlockSize) / sizeof(uint32_t));
}

uint64_t QuantizedBytes(uint64_t rows, uint32_t cols) {
  return (QuantizedHeadWords(rows) + rows * QuantizedWords(cols)) * sizeof(uint32_t);
}

uint64_t QuantizedRangeBytes(uint64_t rows, uint32_t cols) {
  return AlignUp(QuantizedBytes(rows, cols), Device::kBindingAlign);
}

CopiedHeads CopiedHeadsOf(const Program& program, const AttentionKind& kind,
                          uint64_t binding_bytes) {
  const uint64_t head = uint64_t{program.max_encoder_rows} * kind.head_dim * sizeof(float);
  CopiedHeads copied;
  copied.heads = static_cast<uint32_t>(
      Min<uint64_t>(kind.n_kv_heads, (binding_bytes - kSpare) / Max<uint64_t>(head, 1)));
  copied.values_at = AlignUp(copied.heads * head, Device::kBindingAlign);
  return copied;
}

}  // namespace arn::vulkan
