// Low-rank adapters of PEFT (LoRA: Hu et al., 2021, arXiv:2106.09685): merged into the matrices of
// a checkpoint as these are read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "converter/hf/checkpoint.h"

namespace arn::convert {

// left [rows, rank] times right [rank, cols], both with the scale applied once: what is added to a
// matrix [rows, cols] as it is stored.
struct LowRank {
  uint64_t rows = 0, cols = 0;
  uint32_t rank = 0;
  std::vector<float> left, right;

  // Adds elements [first, first + count), row-major, to `out`.
  void AddTo(uint64_t first, uint64_t count, float* out) const;
};

class Lora {
 public:
  // Reads adapter_config.json and adapter_model.safetensors of `folder`: rank, alpha, rsLoRA, and
  // ranks and alphas by module. scale: multiplies the whole adapter. Throws ConvertError, naming
  // the key or tensor, for what changes more than these matrices (DoRA, biases, modules_to_save,
  // embeddings, initialisations that change the base) and for unknown keys.
  Lora(const std::filesystem::path& folder, double scale);

  // Adds each matrix to the checkpoint's tensor of its module; this must outlive the reading.
  // Throws ConvertError for a module that the checkpoint does not have, or of another shape.
  void Merge(Checkpoint* checkpoint) const;

  const std::map<std::string, LowRank>& matrices() const { return matrices_; }  // by module

 private:
  std::filesystem::path folder_;
  bool fan_in_fan_out_ = false;
  std::map<std::string, LowRank> matrices_;  // by module
};

}  // namespace arn::convert
