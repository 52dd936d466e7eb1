// Keys and values of a sequence in a safetensors file: "ids", I32 [n], and "layers.I.keys" and
// "layers.I.values", F32 [n_kv_heads, n, head_dim], of every layer that has its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace arn::tool {

struct KvFileLayer {
  uint32_t n_kv_heads = 0;  // 0: uses the keys and values of an earlier layer
  uint32_t head_dim = 0;
  std::vector<float> keys, values;  // [n_kv_heads, n, head_dim]
};

struct KvFile {
  std::vector<int32_t> ids;
  std::vector<KvFileLayer> layers;
};

// Throws Error.
void WriteKvFile(const std::string& path, const KvFile& file);
// `layers`: the shapes that the model needs. A leading dimension of 1, the batch that transformers
// has, is accepted. Throws Error that names the tensor.
KvFile ReadKvFile(const std::string& path, std::vector<KvFileLayer> layers);

}  // namespace arn::tool
