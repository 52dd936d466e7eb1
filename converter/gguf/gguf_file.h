// A GGUF file. Not mapped but while its header is parsed; reads bytes on demand.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "converter/base/source_file.h"
#include "converter/gguf/gguf_parse.h"

namespace arn::convert {

class GgufFile : public TensorFile {
 public:
  // Checks everything but the tensors' values. Throws ConvertError.
  explicit GgufFile(const std::filesystem::path& path);

  const std::filesystem::path& path() const override { return file_.path(); }
  const char* readable_types() const override { return readable_types_.c_str(); }
  void Read(uint64_t offset, void* out, size_t bytes) const override {
    file_.Read(offset, out, bytes);
  }
  void Expect(uint64_t offset, uint64_t bytes) const override { file_.Expect(offset, bytes); }

  const nlohmann::json& metadata() const { return contents_.metadata; }
  const std::vector<SourceTensor>& tensors() const { return contents_.tensors; }

 private:
  SourceFile file_;
  GgufContents contents_;
  std::string readable_types_;
};

}  // namespace arn::convert
