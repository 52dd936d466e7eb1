// Writes small checkpoints in the Hugging Face layout, generated from a seed.
//
// The weights are defined so that any language can reproduce them exactly:
//   seed  = FNV-1a 64 of the tensor's name, XOR base_seed
//   u_e   = element e (row-major, from 0) of the splitmix64 stream of that seed, modulo 2^64:
//             state = seed + (e + 1) * 0x9E3779B97F4A7C15
//             z     = (state ^ state >> 30) * 0xBF58476D1CE4E5B9
//             z     = (z ^ z >> 27) * 0x94D049BB133111EB
//             u_e   = z ^ z >> 31
//   unit  = (float)((int64)(u_e >> 40) - 2^23) / 2^23, exact, in [-1, 1)
//   value = unit * amplitude in float32;
//           1 + unit * 0.1f for tensors whose name ends in "norm.weight", "Norm.weight" or
//           "layer_scalar", or contains ".ln_" and ends in ".weight";
//           infinity for "v_proj.output_max", +-1.25 for other names that end in "input_max" or
//           "input_min", and +-(0.3f + unit * 0.1f) for those in "_max" or "_min";
//           unit * amplitude * 32 for "modality_router.weight", whose input is divided by its width
// F16 and BF16 checkpoints round the values to nearest even.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"

namespace arn::test {

// A decoder with the usual tensor names (model.layers.N.self_attn.q_proj.weight ...).
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
  bool qkv_bias = false;  // adds the tensors; set the key in `config` if the architecture reads one
  bool o_bias = false;
  bool mlp_bias = false;
  bool qk_norm = false;
  // Merged into config.json (RFC 7386: null removes a key).
  nlohmann::json config = nlohmann::json::object();
  // Writes generation_config.json unless this is null.
  nlohmann::json generation = {{"bos_token_id", 1}, {"eos_token_id", 2}, {"pad_token_id", 0}};

  std::string dtype = "F32";  // storage type of the tensors: F32, F16 or BF16
  uint32_t shards =
      1;  // more than 1: model-0000i-of-0000n.safetensors and model.safetensors.index.json
  uint64_t base_seed = 1;
  float amplitude = 0.08f;
};

// A tensor as stored in the file.
struct TinyTensor {
  std::string dtype;  // as in the safetensors header
  std::vector<uint64_t> shape;
  std::vector<uint8_t> bytes;
};
using TinyTensors = std::map<std::string, TinyTensor>;  // sorted by name

// Returns the float32 values of a tensor of `count` elements, by the formula above.
std::vector<float> TinyValues(const std::string& name, uint64_t count, uint64_t base_seed,
                              float amplitude);

// Encodes floats as `dtype` (F32, F16 or BF16), little endian.
std::vector<uint8_t> EncodeFloats(const std::vector<float>& values, const std::string& dtype);

nlohmann::json TinyConfig(const TinyCheckpoint& checkpoint);
TinyTensors MakeTinyTensors(const TinyCheckpoint& checkpoint);

// Returns a whole safetensors file: 8 bytes of header length, JSON header padded with spaces to a
// multiple of 8, data in map order, larger elements first.
std::vector<uint8_t> EncodeSafetensors(const TinyTensors& tensors);

// Writes config.json, generation_config.json and the tensors to `folder`, which it creates if
// missing. `edit` may change the tensors first. Throws std::runtime_error if a file cannot be
// written.
void WriteTinyCheckpoint(const std::filesystem::path& folder, const TinyCheckpoint& checkpoint,
                         const std::function<void(TinyTensors&)>& edit = {});

void WriteFile(const std::filesystem::path& path, const void* data, size_t bytes);
void WriteFile(const std::filesystem::path& path, const std::string& text);
std::vector<uint8_t> ReadFile(const std::filesystem::path& path);

// A new empty folder, removed with its contents by the destructor.
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
