// One .safetensors file: 8 bytes of header length, a JSON header, then the tensors' bytes without
// gaps (https://github.com/huggingface/safetensors). Nothing is mapped; bytes are read where they
// are asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace arn::convert {

struct SourceTensor {
  std::string name;
  std::string dtype;  // as the header says: "F32", "BF16", ...
  std::vector<uint64_t> shape;
  uint64_t offset = 0;  // in the file
  uint64_t bytes = 0;

  uint64_t elements() const;
};

// "[64, 32]"
std::string ShapeText(const std::vector<uint64_t>& shape);

class SafetensorsFile {
 public:
  // The largest header that is accepted, as in the format's own library.
  static constexpr uint64_t kMaxHeaderBytes = 100'000'000;

  // Reads and checks the header: JSON, known fields, sizes that follow from shape and dtype, ranges
  // inside the file that cover it without overlap, each at a multiple of its element's size. Throws
  // ConvertError naming file and tensor.
  explicit SafetensorsFile(const std::filesystem::path& path);
  ~SafetensorsFile();
  SafetensorsFile(const SafetensorsFile&) = delete;
  SafetensorsFile& operator=(const SafetensorsFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  const std::vector<SourceTensor>& tensors() const { return tensors_; }  // in the order of offsets

  // Reads `bytes` bytes of the file. Safe from several threads.
  void Read(uint64_t offset, void* out, size_t bytes) const;

 private:
  void ReadHeader();
  void CheckRanges(uint64_t data_bytes) const;

  std::filesystem::path path_;
  int fd_ = -1;
  uint64_t file_bytes_ = 0;
  std::vector<SourceTensor> tensors_;
};

}  // namespace arn::convert
