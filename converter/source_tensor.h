// A tensor of a checkpoint as it lies in a file, whatever the file's format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace arn::convert {

struct SourceTensor {
  std::string name;   // as the file says it
  std::string dtype;  // as the file says it: "F32", "BF16", "Q8_0", ...
  std::vector<uint64_t> shape;
  uint64_t offset = 0;  // in the file
  uint64_t bytes = 0;

  uint64_t elements() const;
};

// "[64, 32]"
std::string ShapeText(const std::vector<uint64_t>& shape);

// An open file of tensors.
class TensorFile {
 public:
  virtual ~TensorFile() = default;
  virtual const std::filesystem::path& path() const = 0;
  // "F32, F16 or BF16": the types of this format that can be converted, for messages.
  virtual const char* readable_types() const = 0;
  // Copies `bytes` bytes of the file from `offset` on; the range is one of a tensor. Safe from
  // several threads. Throws ConvertError.
  virtual void Read(uint64_t offset, void* out, size_t bytes) const = 0;
};

}  // namespace arn::convert
