// The tensors of a checkpoint folder: model.safetensors, or the shards that
// model.safetensors.index.json lists.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "converter/hf/safetensors.h"

namespace arn::convert {

class Checkpoint {
 public:
  // Opens every file and checks its header. Throws ConvertError.
  explicit Checkpoint(const std::filesystem::path& folder);

  struct Entry {
    const SourceTensor* tensor = nullptr;
    const SafetensorsFile* file = nullptr;
  };
  // Null when there is none.
  const Entry* Find(const std::string& name) const;
  const std::map<std::string, Entry>& entries() const { return entries_; }

  // Elements [first, first + count) of a tensor stored as F32, F16 or BF16, as floats. Safe from
  // several threads.
  static void ReadFloats(const Entry& entry, uint64_t first, uint64_t count, float* out);
  // Whether ReadFloats can read the tensor.
  static bool IsFloat(const SourceTensor& tensor);

 private:
  void OpenSharded(const std::filesystem::path& folder, const std::filesystem::path& index_path);
  void Add(const std::filesystem::path& path);

  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  std::map<std::string, Entry> entries_;
};

}  // namespace arn::convert
