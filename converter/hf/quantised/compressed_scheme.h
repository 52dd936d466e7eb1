// The schemes of a compressed-tensors config: which modules are quantised, and how.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "converter/hf/config_reader.h"

namespace arn::convert {

enum class CompressedStrategy { kTensor, kChannel, kGroup, kBlock };

struct CompressedScheme {
  std::string label;                 // names it in errors
  std::vector<std::string> targets;  // module names, re:PATTERN, or classes
  std::string format;                // empty: the config's
  uint32_t bits = 8;
  bool is_float = false;
  bool is_symmetric = true;
  CompressedStrategy strategy = CompressedStrategy::kTensor;
  uint64_t group_size = 0;
  uint64_t block_rows = 0, block_cols = 0;
  bool has_indices = false;  // g_idx
};

class CompressedSchemes {
 public:
  // Reads config_groups and format. Throws ConvertError naming the key.
  explicit CompressedSchemes(ConfigReader* config);

  // Returns the scheme of a module: the one that names it, else that whose pattern matches it, else
  // that of its class (an embedding, or any other). With one scheme, always this. Throws
  // ConvertError if there is none.
  const CompressedScheme& Of(const std::string& module) const;
  bool rounds_activations() const { return rounds_activations_; }

 private:
  std::string label_;
  std::vector<CompressedScheme> schemes_;
  bool rounds_activations_ = false;
};

}  // namespace arn::convert
