// Low-rank adapters (LoRA: Hu et al., 2021, arXiv:2106.09685): merged into the matrices of a
// checkpoint as these are read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
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

// Throws ConvertError unless a tensor of an adapter is a matrix of floats.
void CheckLoraMatrix(const Checkpoint::Entry& entry);

class Lora {
 public:
  // An adapter of PEFT. Reads adapter_config.json and adapter_model.safetensors of `folder`: rank,
  // alpha, rsLoRA, and ranks and alphas by module. scale: multiplies the whole adapter. Throws
  // ConvertError, naming the key or tensor, for what changes more than these matrices (DoRA,
  // biases, modules_to_save, embeddings, initialisations that change the base) and for unknown
  // keys.
  Lora(const std::filesystem::path& folder, double scale);
  // One that has been read from `source`.
  Lora(std::filesystem::path source, std::map<std::string, LowRank> matrices)
      : source_(std::move(source)), matrices_(std::move(matrices)) {}

  // Adds each matrix to the checkpoint's tensor of its module; this must outlive the reading.
  // Throws ConvertError for a module that the checkpoint does not have, or of another shape.
  void Merge(Checkpoint* checkpoint) const;

  const std::map<std::string, LowRank>& matrices() const { return matrices_; }  // by module

 private:
  std::filesystem::path source_;
  std::map<std::string, LowRank> matrices_;  // by module
};

}  // namespace arn::convert
