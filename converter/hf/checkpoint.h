// Tensors of a checkpoint: of a folder (model.safetensors, or the shards that
// model.safetensors.index.json lists; without them pytorch_model.bin and its shards, or Llama's
// consolidated.NN.pth), or of a single file in another format.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "converter/base/decoded_tensor.h"
#include "converter/base/source_tensor.h"

namespace arn::convert {

struct LowRank;  // lora.h

// Returns the names of the files of `folder` that hold the tensors which a conversion reads; the
// index that lists them, if there is one, is put into `index` (may be null). Empty if there are
// none. Throws ConvertError for a damaged index.
std::set<std::string> WeightFiles(const std::filesystem::path& folder,
                                  std::filesystem::path* index);

class Checkpoint {
 public:
  // Opens all files and checks their headers. Throws ConvertError.
  explicit Checkpoint(const std::filesystem::path& folder);
  // Opens one file: of torch.save if its name ends with .bin, .pth or .pt, else safetensors.
  static Checkpoint OfFile(const std::filesystem::path& path);
  // Wraps one open file; `tensors` maps lookup names to its tensors.
  Checkpoint(std::unique_ptr<TensorFile> file, std::map<std::string, SourceTensor> tensors);

  struct Entry {
    const SourceTensor* tensor = nullptr;
    const TensorFile* file = nullptr;
    const LowRank* added = nullptr;          // to the tensor as it is read
    const DecodedTensor* decoded = nullptr;  // what it is computed from; null: stored as it is
  };
  // True if its values have been quantised: in blocks of GGUF, or by a method of transformers.
  static bool IsQuantised(const Entry& entry);
  // True for GGUF's types of -1, 0 and 1 times a scale.
  static bool IsTernary(const Entry& entry);
  // Returns whether a type of codes holds a tensor's blocks of GGUF as they are.
  static bool IsHeldBy(const Entry& entry, DType dtype);
  // Writes the codes and entries (RowMatrix) of elements [first, first + count), whole blocks, in
  // such a type. Thread-safe.
  static void ReadHeld(const Entry& entry, const CodeType& type, uint64_t first, uint64_t count,
                       uint8_t* codes, int16_t* entries);
  // Returns null for an unknown name.
  const Entry* Find(const std::string& name) const;
  const std::map<std::string, Entry>& entries() const { return entries_; }
  // Replaces the entries: the same tensors renamed, or a subset.
  void SetEntries(std::map<std::string, Entry> entries) { entries_ = std::move(entries); }
  // Puts a tensor in place of those that it is computed from, which are in `file` or others.
  void AddDecoded(std::unique_ptr<DecodedTensor> tensor, const TensorFile* file,
                  const std::vector<std::string>& parts);
  void Remove(const std::string& name) { entries_.erase(name); }
  // Makes a matrix of `rows` + `more` rows, if that is what `name` is, end with the first `rows`.
  void LeaveOutRows(const std::string& name, uint32_t rows, uint32_t more);

  // Reads elements [first, first + count) of a tensor that IsFloat, as floats; dequantises blocks.
  // Thread-safe.
  static void ReadFloats(const Entry& entry, uint64_t first, uint64_t count, float* out);
  // True if ReadFloats can read the tensor.
  static bool IsFloat(const SourceTensor& tensor);

 private:
  Checkpoint() = default;
  static void ReadStored(const Entry& entry, uint64_t first, uint64_t count, float* out);
  void CheckIndex(const std::filesystem::path& index_path) const;
  void Add(const std::filesystem::path& path);
  template <typename File>
  void AddAll(std::unique_ptr<File> file);

  std::vector<std::unique_ptr<TensorFile>> files_;
  std::map<std::string, SourceTensor> named_;
  std::map<std::string, SourceTensor> shortened_;
  std::vector<std::unique_ptr<DecodedTensor>> decoded_;
  std::map<std::string, Entry> entries_;
};

}  // namespace arn::convert
