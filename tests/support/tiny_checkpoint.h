// Small checkpoints in Hugging Face's layout, made from a seed, for tests that must not depend on
// files.
//
// The weights are defined so that any language can make the same ones exactly:
//   seed  = FNV-1a 64 of the tensor's name, XOR base_seed
//   u_e   = element e (row-major, from 0) of the splitmix64 stream of that seed, modulo 2^64:
//             state = seed + (e + 1) * 0x9E3779B97F4A7C15
//             z     = (state ^ state >> 30) * 0xBF58476D1CE4E5B9
//             z     = (z ^ z >> 27) * 0x94D049BB133111EB
//             u_e   = z ^ z >> 31
//   unit  = (float)((int64)(u_e >> 40) - 2^23) / 2^23, exact, in [-1, 1)
//   value = unit * amplitude in float32;
//           1 + unit * 0.1f in tensors whose name ends in "norm.weight", or has ".ln_" in it and
//           ends in ".weight"
// Values are rounded to nearest even when the checkpoint is F16 or BF16.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"

namespace arn::test {

// What a decoder of the shared tensor naming (model.layers.N.self_attn.q_proj.weight ...) looks
// like.
struct TinyCheckpoint {
  std::string architecture = "LlamaForCausalLM";
  std::string model_type = "llama";
  uint32_t vocab = 64;
  uint32_t hidden = 32;
  uint32_t ffn = 48;
  uint32_t layers = 2;
  uint32_t heads = 4;
  uint32_t kv_heads = 2;
  uint32_t head_dim = 8;
  uint32_t max_context = 128;
  double rms_norm_eps = 1e-5;
  bool tied = true;
  bool qkv_bias = false;  // the tensors; say so in `config` where the architecture asks a key
  bool o_bias = false;
  bool mlp_bias = false;
  bool qk_norm = false;
  // Merged into config.json (RFC 7386: null removes a key).
  nlohmann::json config = nlohmann::json::object();
  // generation_config.json is written unless this is null.
  nlohmann::json generation = {{"bos_token_id", 1}, {"eos_token_id", 2}, {"pad_token_id", 0}};

  std::string dtype = "F32";  // F32, F16 or BF16: how the tensors are stored
  uint32_t shards =
      1;  // more than 1: model-0000i-of-0000n.safetensors and model.safetensors.index.json
  uint64_t base_seed = 1;
  float amplitude = 0.08f;
};

// One tensor as it is stored.
struct TinyTensor {
  std::string dtype;  // as in the safetensors header
  std::vector<uint64_t> shape;
  std::vector<uint8_t> bytes;
};
using TinyTensors = std::map<std::string, TinyTensor>;  // in the order of names

// The float32 values of a tensor of `count` elements, by the formula above.
std::vector<float> TinyValues(const std::string& name, uint64_t count, uint64_t base_seed,
                              float amplitude);

// Stores floats as `dtype` (F32, F16 or BF16), little endian.
std::vector<uint8_t> EncodeFloats(const std::vector<float>& values, const std::string& dtype);

nlohmann::json TinyConfig(const TinyCheckpoint& checkpoint);
TinyTensors MakeTinyTensors(const TinyCheckpoint& checkpoint);

// A whole safetensors file: 8 bytes of header length, JSON header padded to 8 with spaces, data in
// the map's order.
std::vector<uint8_t> EncodeSafetensors(const TinyTensors& tensors);

// Writes config.json, generation_config.json and the tensors into `folder` (created if need be).
// `edit` may change the tensors first. Throws std::runtime_error when a file cannot be written.
void WriteTinyCheckpoint(const std::filesystem::path& folder, const TinyCheckpoint& checkpoint,
                         const std::function<void(TinyTensors&)>& edit = {});

void WriteFile(const std::filesystem::path& path, const void* data, size_t bytes);
void WriteFile(const std::filesystem::path& path, const std::string& text);
std::vector<uint8_t> ReadFile(const std::filesystem::path& path);

// A new empty folder, removed with its contents at the end.
class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace arn::test
