// Control vectors (Zou et al., 2023, arXiv:2310.01405), as llama.cpp stores them: of each layer one
// row that is added to its output.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <vector>

namespace arn::convert {

struct ControlVector {
  std::filesystem::path source;
  std::map<uint32_t, std::vector<float>> directions;  // by layer, from 0 on
};

// Layers [first, last].
struct LayerRange {
  uint32_t first = 0, last = UINT32_MAX;
};

// Reads direction.N, of layer N, from a GGUF file or from safetensors, and keeps those of `layers`.
// Throws ConvertError, naming the tensor or key, for other tensors, for those that
// are no row of finite floats, and if none is left.
ControlVector ReadControlVector(const std::filesystem::path& path, const LayerRange& layers);

}  // namespace arn::convert
