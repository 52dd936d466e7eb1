// A memory-mapped GGUF file.
#pragma once

#include <filesystem>

#include "converter/gguf/gguf_parse.h"
#include "platform/os/mapped_file.h"

namespace arn::convert {

class GgufFile : public TensorFile {
 public:
  // Maps the file and checks everything but the tensors' values. Throws ConvertError.
  explicit GgufFile(const std::filesystem::path& path);
  ~GgufFile() override;
  GgufFile(const GgufFile&) = delete;
  GgufFile& operator=(const GgufFile&) = delete;

  const std::filesystem::path& path() const override { return path_; }
  const char* readable_types() const override;
  void Read(uint64_t offset, void* out, size_t bytes) const override;

  const nlohmann::json& metadata() const { return contents_.metadata; }
  const std::vector<SourceTensor>& tensors() const { return contents_.tensors; }

 private:
  std::filesystem::path path_;
  MappedFile file_;
  GgufContents contents_;
  std::string readable_types_;
};

}  // namespace arn::convert
