#include "converter/base/source_tensor.h"

namespace arn::convert {

uint64_t SourceTensor::elements() const {
  uint64_t count = 1;
  for (const uint64_t d : shape) count *= d;  // overflow was checked when the header was read
  return count;
}

std::string ShapeText(const std::vector<uint64_t>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  }
  return text + "]";
}

}  // namespace arn::convert
