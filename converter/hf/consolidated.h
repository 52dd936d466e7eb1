// Llama's checkpoints as Meta publishes them: consolidated.NN.pth, each a part of every matrix, and
// params.json. Names, the order of rows of q and k, and the config are made as in transformers'
// models/llama/convert_llama_weights_to_hf.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "converter/hf/torch_file.h"
#include "nlohmann/json_fwd.hpp"

namespace arn::convert {

inline constexpr const char* kFirstConsolidated = "consolidated.00.pth";

// Returns the names of the parts in `folder`, from kFirstConsolidated on; empty if there is none.
std::set<std::string> ConsolidatedFiles(const std::filesystem::path& folder);

// The parts as one file of tensors with the names and shapes that transformers gives them. Offsets
// are those of the tensors put one after another.
class ConsolidatedFile : public TensorFile {
 public:
  // Reads params.json and all parts. Throws ConvertError with the file, and the tensor or key.
  explicit ConsolidatedFile(const std::filesystem::path& folder);

  const std::filesystem::path& path() const override { return parts_[0]->path(); }
  const char* readable_types() const override { return parts_[0]->readable_types(); }
  const std::vector<SourceTensor>& tensors() const { return tensors_; }  // by offset
  void Read(uint64_t offset, void* out, size_t bytes) const override;
  void Expect(uint64_t, uint64_t) const override {}

 private:
  // How a tensor lies in the parts.
  struct Joined {
    std::vector<const SourceTensor*> pieces;  // of each part, or of the first alone
    uint64_t piece_rows = 0, row_bytes = 0, piece_row_bytes = 0;  // rows of all columns; of a piece
    // Not 0: row h d + p d / 2 + i of a head of d rows is stored as row h d + 2 i + p.
    uint64_t head_rows = 0;
  };

  void Add(const std::string& name, const std::string& stored, bool by_columns, uint64_t heads);

  std::vector<std::unique_ptr<TorchFile>> parts_;
  std::vector<SourceTensor> tensors_;
  std::vector<Joined> joined_;  // of each tensor
};

// Returns a config.json made of params.json and the sizes of the tensors. The trained context,
// which neither has, is that of the oldest model which it may be, with a warning. Throws
// ConvertError, also for keys that say something else.
nlohmann::json ConsolidatedConfig(const std::filesystem::path& folder,
                                  std::vector<std::string>* warnings);

}  // namespace arn::convert
