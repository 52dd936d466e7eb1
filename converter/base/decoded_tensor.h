// A tensor of a checkpoint that is computed from stored ones while it is read: weights that others
// have quantised, as floats or, where an element type of bundles holds them, as their levels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "converter/base/source_tensor.h"
#include "kernels/contract/code_type.h"
#include "platform/base/dtype.h"

namespace arn::convert {

class DecodedTensor {
 public:
  // Says what of the tensor's rows an integer type of bundles holds
  // (converter/quantize/quantize.h).
  enum class Held {
    kNo,       // levels of its own
    kNearly,   // the levels, but a scale is rounded, or level -128 becomes -127
    kExactly,  // levels and scales
  };

  // tensor: the name without its parts, the shape, and type F32. method: for messages.
  DecodedTensor(SourceTensor tensor, std::string method)
      : tensor_(std::move(tensor)), method_(std::move(method)) {}
  virtual ~DecodedTensor() = default;
  DecodedTensor(const DecodedTensor&) = delete;
  DecodedTensor& operator=(const DecodedTensor&) = delete;

  const SourceTensor& tensor() const { return tensor_; }
  const std::string& method() const { return method_; }
  uint64_t cols() const { return tensor_.shape.back(); }
  uint64_t rows() const { return tensor_.elements() / cols(); }

  // Writes elements [first, first + count), row-major. Thread-safe. Throws ConvertError.
  void Read(uint64_t first, uint64_t count, float* out) const;

  // Reads the stored tensors as far as it must to find out. Thread-safe. Throws ConvertError.
  virtual Held HeldBy(DType) const { return Held::kNo; }
  // Write rows [first, first + n). REQUIRES: HeldBy(the type) is not kNo. levels: [n, cols] for
  // int8, [n, AlignUp(cols, 32)] of 0..15 for int4, as QuantizeRowInt8 and QuantizeRowInt4 write
  // them. Thread-safe. Throw ConvertError.
  virtual void ReadInt8(uint64_t, uint32_t, int8_t*, float*) const {}
  virtual void ReadInt4(uint64_t, uint32_t, uint8_t*, uint16_t*) const {}
  // The same for a type of others: codes and entries as RowMatrix has them.
  virtual void ReadCodes(const CodeType&, uint64_t, uint32_t, uint8_t*, int16_t*) const {}

 private:
  // Writes rows [first, first + n): [n, cols].
  virtual void ReadRows(uint64_t first, uint32_t n, float* out) const = 0;

  const SourceTensor tensor_;
  const std::string method_;
};

}  // namespace arn::convert
