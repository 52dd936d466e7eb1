// A tensor of a checkpoint as stored in its file, for any file format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace arn::convert {

struct SourceTensor {
  std::string name;   // as in the file
  std::string dtype;  // as in the file: "F32", "BF16", "Q8_0", ...
  std::vector<uint64_t> shape;
  uint64_t offset = 0;  // bytes from the start of the file
  uint64_t bytes = 0;

  uint64_t elements() const;
};

// Returns a text such as "[64, 32]".
std::string ShapeText(const std::vector<uint64_t>& shape);

// An open file of tensors.
class TensorFile {
 public:
  virtual ~TensorFile() = default;
  virtual const std::filesystem::path& path() const = 0;
  // Returns the convertible types of this format for messages: "F32, F16 or BF16".
  virtual const char* readable_types() const = 0;
  // Copies `bytes` bytes from `offset` of the file. REQUIRES: the range lies within a tensor.
  // Thread-safe. Throws ConvertError.
  virtual void Read(uint64_t offset, void* out, size_t bytes) const = 0;
  // Says that bytes will be read soon, so that the system can fetch them. Thread-safe.
  virtual void Expect(uint64_t offset, uint64_t bytes) const = 0;
};

}  // namespace arn::convert
