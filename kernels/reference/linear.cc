#include "kernels/contract/code_type.h"
#include "kernels/pack/pack.h"
#include "kernels/reference/ops.h"
#include "platform/base/arith.h"
#include "platform/base/layout.h"

namespace arn::reference {
namespace {

// Offsets into the scratch: one row of weights as integers or floats, its block scales, their
// minimums and, for integer weights, all activation rows quantised, with room for their residuals.
struct Scratch {
  uint64_t values, scales, minimums, rows, activations, stride, bytes;
};

Scratch PlanScratch(const Weight& weight, uint32_t rows) {
  const uint64_t padded = AlignUp(weight.cols, kInt4BlockSize);
  const uint64_t n = IsInteger(weight.dtype) ? 2 * uint64_t{rows} : 0;
  Scratch s;
  s.values = 0;
  s.scales = AlignUp(padded * sizeof(float), kSliceAlign);
  const CodeType* codes = FindCodeType(weight.dtype);
  const uint64_t block = Min(kInt4BlockSize, codes == nullptr ? kInt4BlockSize : codes->block);
  const uint64_t blocks = AlignUp(padded / block * sizeof(float), kSliceAlign);
  s.minimums = s.scales + blocks;
  s.rows = s.minimums + (HasMinimums(weight.dtype) ? blocks : 0);
  s.activations = s.rows + AlignUp(n * sizeof(QuantizedRow), kSliceAlign);
  s.stride = padded;
  s.bytes = s.activations + n * padded;
  return s;
}

double DotFloat(const float* x, const float* w, uint32_t n) {
  double sum = 0.0;
  for (uint32_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(w[i]);
  return sum;
}

int64_t DotInt(const int8_t* a, int32_t zero_point, const int8_t* w, uint32_t n) {
  int64_t sum = 0;
  for (uint32_t i = 0; i < n; ++i) sum += int64_t{a[i] - zero_point} * w[i];
  return sum;
}

void Put(double value, const Weight& weight, uint32_t row, bool accumulate, float* out) {
  const auto y = static_cast<float>(value + static_cast<double>(UnpackBias(weight, row)));
  *out = accumulate ? *out + y : y;
}

void LinearFloat(const float* x, uint32_t rows, const Weight& weight, bool accumulate, float* out,
                 float* w) {
  for (uint32_t n = 0; n < weight.rows; ++n) {
    UnpackRowF32(weight, n, w);
    for (uint32_t m = 0; m < rows; ++m) {
      const double dot = DotFloat(x + uint64_t{m} * weight.cols, w, weight.cols);
      Put(dot, weight, n, accumulate, out + uint64_t{m} * weight.rows + n);
    }
  }
}

// Returns one output element of one quantised row. `scales`: one entry (int8) or one per block;
// `minimums`: one per block of the types that have them.
double DotQuantized(const Weight& weight, const int8_t* activations, int32_t zero_point,
                    const int8_t* integers, const float* scales, const float* minimums) {
  const CodeType* codes = FindCodeType(weight.dtype);
  const uint32_t group = codes != nullptr               ? codes->block
                         : weight.dtype == DType::kInt4 ? kInt4BlockSize
                                                        : weight.cols;
  double sum = 0.0;
  for (uint32_t c = 0; c < weight.cols; c += group) {
    const uint32_t n = Min(group, weight.cols - c);
    const int64_t dot = DotInt(activations + c, zero_point, integers + c, n);
    sum += static_cast<double>(dot) * static_cast<double>(scales[c / group]);
    if (!HasMinimums(weight.dtype)) continue;
    int64_t all = 0;
    for (uint32_t i = c; i < c + n; ++i) all += activations[i] - zero_point;
    sum -= static_cast<double>(all) * static_cast<double>(minimums[c / group]);
  }
  return sum;
}

// Computes the quantisation residual: x minus the dequantised row.
void LeftOver(const float* x, const QuantizedRow& row, const int8_t* values, uint32_t n,
              float* out) {
  for (uint32_t i = 0; i < n; ++i) {
    out[i] = x[i] - static_cast<float>(values[i] - row.zero_point) * row.scale;
  }
}

void LinearInteger(const float* x, uint32_t rows, const Weight& weight, bool splits_rows,
                   bool accumulate, float* out, std::byte* scratch) {
  const Scratch parts = PlanScratch(weight, rows);
  auto* integers = reinterpret_cast<int8_t*>(scratch + parts.values);
  auto* scales = reinterpret_cast<float*>(scratch + parts.scales);
  auto* minimums = reinterpret_cast<float*>(scratch + parts.minimums);
  auto* quantized = reinterpret_cast<QuantizedRow*>(scratch + parts.rows);
  auto* activations = reinterpret_cast<int8_t*>(scratch + parts.activations);
  const bool is_symmetric = TakesSymmetricRows(weight.dtype);
  for (uint32_t m = 0; m < rows; ++m) {
    const float* row = x + uint64_t{m} * weight.cols;
    quantized[m] = QuantizeRow(row, weight.cols, is_symmetric, activations + m * parts.stride);
    if (!splits_rows) continue;
    // The weight row is not unpacked yet, so its scratch is free.
    auto* left = reinterpret_cast<float*>(scratch + parts.values);
    LeftOver(row, quantized[m], activations + m * parts.stride, weight.cols, left);
    quantized[rows + m] =
        QuantizeRow(left, weight.cols, is_symmetric, activations + (rows + m) * parts.stride);
  }
  for (uint32_t n = 0; n < weight.rows; ++n) {
    if (weight.dtype == DType::kInt8) {
      UnpackRowInt8(weight, n, integers, scales);
    } else if (kHasLowBits && FindCodeType(weight.dtype) != nullptr) {
      UnpackRowLevels(weight, n, integers, scales, minimums);
    } else {
      UnpackRowInt4(weight, n, integers, scales);
    }
    for (uint32_t m = 0; m < rows; ++m) {
      double sum = 0.0;
      for (uint32_t at = m; at < (splits_rows ? 2 * rows : rows); at += rows) {
        sum += DotQuantized(weight, activations + at * parts.stride, quantized[at].zero_point,
                            integers, scales, minimums) *
               static_cast<double>(quantized[at].scale);
      }
      Put(sum, weight, n, accumulate, out + uint64_t{m} * weight.rows + n);
    }
  }
}

}  // namespace

uint64_t LinearScratchBytes(const Weight& weight, uint32_t rows) {
  return PlanScratch(weight, rows).bytes;
}

void Linear(const float* x, uint32_t rows, const Weight& weight, bool splits_rows, bool accumulate,
            float* out, std::byte* scratch) {
  if (IsInteger(weight.dtype)) {
    LinearInteger(x, rows, weight, splits_rows, accumulate, out, scratch);
  } else {
    LinearFloat(x, rows, weight, accumulate, out, reinterpret_cast<float*>(scratch));
  }
}

}  // namespace arn::reference
