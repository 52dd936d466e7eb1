// A .safetensors file: 8 bytes of header length, a JSON header, then the tensors' bytes without
// gaps (https://github.com/huggingface/safetensors). Not mapped; reads bytes on demand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "converter/base/source_file.h"
#include "converter/base/source_tensor.h"

namespace arn::convert {

class SafetensorsFile : public TensorFile {
 public:
  // Largest accepted header, as in the format's own library.
  static constexpr uint64_t kMaxHeaderBytes = 100'000'000;

  // Reads and checks the header: JSON, known fields, sizes consistent with shape and dtype, ranges
  // that cover the data without overlap, each at a multiple of its element size. Throws
  // ConvertError with file and tensor.
  explicit SafetensorsFile(const std::filesystem::path& path);

  const std::filesystem::path& path() const override { return file_.path(); }
  const char* readable_types() const override { return "F64, F32, F16 or BF16"; }
  const std::vector<SourceTensor>& tensors() const { return tensors_; }  // sorted by offset

  void Read(uint64_t offset, void* out, size_t bytes) const override {
    file_.Read(offset, out, bytes);
  }
  void Expect(uint64_t offset, uint64_t bytes) const override { file_.Expect(offset, bytes); }

 private:
  void ReadHeader();
  void CheckRanges(uint64_t data_bytes) const;

  SourceFile file_;
  std::vector<SourceTensor> tensors_;
};

}  // namespace arn::convert
