// The tensors of a checkpoint: those of a folder (model.safetensors, or the shards that
// model.safetensors.index.json lists), or of a file of another format.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "converter/source_tensor.h"

namespace arn::convert {

class Checkpoint {
 public:
  // Opens every file and checks its header. Throws ConvertError.
  explicit Checkpoint(const std::filesystem::path& folder);
  // Of one open file: its tensors by the names under which they are asked for.
  Checkpoint(std::unique_ptr<TensorFile> file, std::map<std::string, SourceTensor> tensors);

  struct Entry {
    const SourceTensor* tensor = nullptr;
    const TensorFile* file = nullptr;
  };
  // Null when there is none.
  const Entry* Find(const std::string& name) const;
  const std::map<std::string, Entry>& entries() const { return entries_; }

  // Elements [first, first + count) of a tensor that IsFloat, as floats: blocks of quantised ones
  // are dequantised. Safe from several threads.
  static void ReadFloats(const Entry& entry, uint64_t first, uint64_t count, float* out);
  // Whether ReadFloats can read the tensor.
  static bool IsFloat(const SourceTensor& tensor);

 private:
  void OpenSharded(const std::filesystem::path& folder, const std::filesystem::path& index_path);
  void Add(const std::filesystem::path& path);

  std::vector<std::unique_ptr<TensorFile>> files_;
  std::map<std::string, SourceTensor> named_;
  std::map<std::string, Entry> entries_;
};

}  // namespace arn::convert
