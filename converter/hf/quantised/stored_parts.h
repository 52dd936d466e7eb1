// Shared by the readers of quantised checkpoints: the keys of quantization_config, the stored
// tensors by module, and checks of both.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "converter/hf/checkpoint.h"
#include "converter/hf/config_reader.h"
#include "converter/hf/quantised/grid_tensor.h"
#include "nlohmann/json.hpp"

namespace arn::convert {

class StoredParts {
 public:
  // keys: the object quantization_config, label: names it in errors. All must outlive this.
  StoredParts(const nlohmann::json& keys, const std::string& label, Checkpoint* checkpoint,
              std::vector<std::string>* warnings);

  ConfigReader& config() { return config_; }
  const nlohmann::json& keys() const { return keys_; }
  // Throws ConvertError for a key that was neither read nor is one of `harmless`, unless
  // it is null.
  void RefuseOtherKeys(std::initializer_list<const char*> harmless);
  void Note(const std::string& sentence) {
    warnings_->push_back(config_.label() + ": " + sentence);
  }

  // Returns the names of all tensors that end with `end`, without it.
  std::vector<std::string> NamesBefore(const std::string& end) const;
  // Returns null if there is none.
  const Checkpoint::Entry* Find(const std::string& name) const { return checkpoint_->Find(name); }
  // Returns tensor `name`, which `beside` needs. Throws ConvertError.
  const Checkpoint::Entry& Need(const std::string& name, const std::string& beside) const;
  // Removes all tensors that end with `end`.
  void LeaveOut(const std::string& end);

  // Puts a matrix, or a stack of them, in place of `parts`, of which the first names the file.
  void Add(const std::string& name, std::vector<uint64_t> shape, QuantisedGrid grid,
           const std::vector<std::string>& parts);
  void Add(std::unique_ptr<DecodedTensor> tensor, const std::vector<std::string>& parts);
  const std::string& method() const { return method_; }

 private:
  const nlohmann::json& keys_;
  ConfigReader config_;
  std::string method_;
  Checkpoint* checkpoint_;
  std::vector<std::string>* warnings_;
};

// Throw ConvertError with file, tensor, what was expected and found.
[[noreturn]] void FailPart(const Checkpoint::Entry& entry, const std::string& problem);
void CheckType(const Checkpoint::Entry& entry, std::initializer_list<const char*> types);
void CheckShape(const Checkpoint::Entry& entry, const std::vector<uint64_t>& shape);
// A matrix, none of whose sides is 0, of fewer than 2^32 rows and columns each.
void CheckMatrix(const Checkpoint::Entry& entry);
// A type that ReadScales reads.
void CheckScales(const Checkpoint::Entry& entry);

// Reads a small tensor of whole numbers: I32 or I64. Throws ConvertError if it has more than
// `most`.
std::vector<int64_t> ReadWhole(const Checkpoint::Entry& entry, uint64_t most);
// Reads a tensor of one number, of shape [] or [1].
float ReadOneNumber(const Checkpoint::Entry& entry);
// Reads g_idx, [cols]: the group of each column, each below `groups`; empty if one is -1.
std::vector<uint32_t> ReadGroupIndices(const Checkpoint::Entry& entry, uint64_t cols,
                                       uint64_t groups);

}  // namespace arn::convert
