// A file that torch.save wrote: a zip archive with a pickle and the bytes of each storage, or the
// form before torch 1.6, pickles followed by the storages. Not mapped; reads bytes on demand, and
// runs nothing (converter/hf/pickle.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "converter/base/source_file.h"
#include "converter/base/source_tensor.h"
#include "converter/hf/pickle.h"

namespace arn::convert {

class TorchFile : public TensorFile {
 public:
  // Largest accepted pickle.
  static constexpr uint64_t kMaxPickleBytes = 64u << 20;

  // Reads and checks the dictionary of tensors: each lies within its storage, and each storage
  // within the file. Throws ConvertError with file and tensor.
  explicit TorchFile(const std::filesystem::path& path);

  const std::filesystem::path& path() const override { return file_.path(); }
  const char* readable_types() const override { return "F64, F32, F16 or BF16"; }
  // By name. Tensors may share bytes. One whose elements do not follow each other has a type that
  // says so, and no bytes.
  const std::vector<SourceTensor>& tensors() const { return tensors_; }

  void Read(uint64_t offset, void* out, size_t bytes) const override {
    file_.Read(offset, out, bytes);
  }
  void Expect(uint64_t offset, uint64_t bytes) const override { file_.Expect(offset, bytes); }

 private:
  // Where the bytes of a storage are, by its key.
  struct Place {
    uint64_t offset = 0, bytes = 0;
  };
  using Places = std::map<std::string, Place, std::less<>>;

  void ReadArchive();
  void ReadOldForm();
  void AddTensors(const Pickle& pickle, const Places& places);
  SourceTensor Located(const std::string& name, const PickledTensor& tensor,
                       const PickledStorage& storage, const Places& places) const;

  SourceFile file_;
  std::vector<SourceTensor> tensors_;
};

}  // namespace arn::convert
