#include "tests/support/tiny_checkpoint.h"

#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <stdexcept>

#include "nlohmann/json.hpp"
#include "platform/base/arith.h"

namespace arn::test {
namespace {

namespace fs = std::filesystem;

uint64_t Fnv1a64(const std::string& text) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001B3u;
  return hash;
}

uint64_t SplitMix64(uint64_t* state) {
  *state += 0x9E3779B97F4A7C15u;
  uint64_t z = *state;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

bool EndsWith(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// Returns the bytes of an element, from the type's name: "BF16", "F8_E4M3".
uint64_t ElementBytes(const TinyTensor& tensor) {
  for (const char* bits : {"64", "32", "16"}) {
    if (tensor.dtype.find(bits) != std::string::npos) return std::stoul(bits) / 8;
  }
  return 1;
}

uint64_t ElementCount(const std::vector<uint64_t>& shape) {
  uint64_t count = 1;
  for (const uint64_t d : shape) count *= d;
  return count;
}

}  // namespace

std::vector<float> TinyValues(const std::string& name, uint64_t count, uint64_t base_seed,
                              float amplitude) {
  const bool is_norm = EndsWith(name, "norm.weight") || EndsWith(name, "Norm.weight") ||
                       EndsWith(name, "layer_scalar") ||
                       (name.find(".ln_") != std::string::npos && EndsWith(name, ".weight"));
  if (EndsWith(name, "modality_router.weight")) amplitude *= 32.0f;
  const bool is_high = EndsWith(name, "_max"), is_bound = is_high || EndsWith(name, "_min");
  const bool is_input = EndsWith(name, "input_max") || EndsWith(name, "input_min");
  const float sign = is_high ? 1.0f : -1.0f;
  uint64_t state = Fnv1a64(name) ^ base_seed;
  std::vector<float> values(count);
  for (float& value : values) {
    const int64_t centred = static_cast<int64_t>(SplitMix64(&state) >> 40) - (int64_t{1} << 23);
    const float unit = static_cast<float>(centred) / 8388608.0f;
    if (is_bound) {
      value = sign * (is_input ? 1.25f : 0.3f + unit * 0.1f);
      if (EndsWith(name, "v_proj.output_max")) value = HUGE_VALF;
      continue;
    }
    value = is_norm ? 1.0f + unit * 0.1f : unit * amplitude;
  }
  return values;
}

std::vector<uint8_t> EncodeFloats(const std::vector<float>& values, const std::string& dtype) {
  std::vector<uint8_t> bytes;
  if (dtype == "F32") {
    bytes.resize(values.size() * 4);
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
  }
  if (dtype != "F16" && dtype != "BF16") throw std::runtime_error("no such dtype: " + dtype);
  bytes.resize(values.size() * 2);
  for (size_t i = 0; i < values.size(); ++i) {
    const uint16_t half = dtype == "F16" ? F16FromF32(values[i]) : Bf16FromF32(values[i]);
    std::memcpy(bytes.data() + 2 * i, &half, 2);
  }
  return bytes;
}

nlohmann::json TinyConfig(const TinyCheckpoint& c) {
  nlohmann::json config = {
      {"architectures", {c.architecture}},
      {"model_type", c.model_type},
      {"vocab_size", c.vocab},
      {"hidden_size", c.hidden},
      {"intermediate_size", c.ffn},
      {"num_hidden_layers", c.layers},
      {"num_attention_heads", c.heads},
      {"num_key_value_heads", c.kv_heads},
      {"head_dim", c.head_dim},
      {"max_position_embeddings", c.max_context},
      {"rms_norm_eps", c.rms_norm_eps},
      {"hidden_act", "silu"},
      {"tie_word_embeddings", c.tied},
      {"bos_token_id", 1},
      {"eos_token_id", 2},
      {"dtype", "float32"},
      {"rope_parameters", {{"rope_type", "default"}, {"rope_theta", 10000.0}}},
  };
  config.merge_patch(c.config);
  return config;
}

TinyTensors MakeTinyTensors(const TinyCheckpoint& c) {
  TinyTensors tensors;
  const auto add = [&](const std::string& name, std::vector<uint64_t> shape) {
    const uint64_t count = ElementCount(shape);
    tensors[name] = {c.dtype, std::move(shape),
                     EncodeFloats(TinyValues(name, count, c.base_seed, c.amplitude), c.dtype)};
  };
  const auto add_linear = [&](const std::string& name, uint64_t rows, uint64_t cols, bool bias) {
    add(name + ".weight", {rows, cols});
    if (bias) add(name + ".bias", {rows});
  };
  const uint64_t q_rows = uint64_t{c.heads} * c.head_dim;
  const uint64_t kv_rows = uint64_t{c.kv_heads} * c.head_dim;
  add("model.embed_tokens.weight", {c.vocab, c.hidden});
  for (uint32_t i = 0; i < c.layers; ++i) {
    const std::string layer = "model.layers." + std::to_string(i) + ".";
    add(layer + "input_layernorm.weight", {c.hidden});
    add_linear(layer + "self_attn.q_proj", q_rows, c.hidden, c.qkv_bias);
    add_linear(layer + "self_attn.k_proj", kv_rows, c.hidden, c.qkv_bias);
    add_linear(layer + "self_attn.v_proj", kv_rows, c.hidden, c.qkv_bias);
    add_linear(layer + "self_attn.o_proj", c.hidden, q_rows, c.o_bias);
    if (c.qk_norm) {
      add(layer + "self_attn.q_norm.weight", {c.head_dim});
      add(layer + "self_attn.k_norm.weight", {c.head_dim});
    }
    add(layer + "post_attention_layernorm.weight", {c.hidden});
    add_linear(layer + "mlp.gate_proj", c.ffn, c.hidden, c.mlp_bias);
    add_linear(layer + "mlp.up_proj", c.ffn, c.hidden, c.mlp_bias);
    add_linear(layer + "mlp.down_proj", c.hidden, c.ffn, c.mlp_bias);
  }
  add("model.norm.weight", {c.hidden});
  if (!c.tied) add("lm_head.weight", {c.vocab, c.hidden});
  return tensors;
}

std::vector<uint8_t> EncodeSafetensors(const TinyTensors& tensors) {
  std::vector<const TinyTensors::value_type*> order;
  for (const auto& tensor : tensors) order.push_back(&tensor);
  // As the format's own library, so that all are aligned.
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return ElementBytes(a->second) > ElementBytes(b->second);
  });
  nlohmann::json header = {{"__metadata__", {{"format", "pt"}}}};
  uint64_t offset = 0;
  for (const auto* entry : order) {
    const TinyTensor& tensor = entry->second;
    header[entry->first] = {{"dtype", tensor.dtype},
                            {"shape", tensor.shape},
                            {"data_offsets", {offset, offset + tensor.bytes.size()}}};
    offset += tensor.bytes.size();
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::vector<uint8_t> file(8 + text.size());
  const uint64_t header_bytes = text.size();
  std::memcpy(file.data(), &header_bytes, 8);
  std::memcpy(file.data() + 8, text.data(), text.size());
  for (const auto* entry : order) {
    file.insert(file.end(), entry->second.bytes.begin(), entry->second.bytes.end());
  }
  return file;
}

void WriteTinyCheckpoint(const fs::path& folder, const TinyCheckpoint& checkpoint,
                         const std::function<void(TinyTensors&)>& edit) {
  fs::create_directories(folder);
  WriteFile(folder / "config.json", TinyConfig(checkpoint).dump(1));
  if (!checkpoint.generation.is_null()) {
    WriteFile(folder / "generation_config.json", checkpoint.generation.dump(1));
  }
  TinyTensors tensors = MakeTinyTensors(checkpoint);
  if (edit) edit(tensors);
  if (checkpoint.shards <= 1) {
    const std::vector<uint8_t> file = EncodeSafetensors(tensors);
    WriteFile(folder / "model.safetensors", file.data(), file.size());
    return;
  }
  // Round robin, so that matrices that belong together are in different files.
  std::vector<TinyTensors> shards(checkpoint.shards);
  nlohmann::json weight_map = nlohmann::json::object();
  uint64_t total = 0;
  size_t next = 0;
  for (const auto& [name, tensor] : tensors) {
    const size_t shard = next++ % shards.size();
    char file_name[64];
    std::snprintf(file_name, sizeof file_name, "model-%05zu-of-%05zu.safetensors", shard + 1,
                  shards.size());
    weight_map[name] = file_name;
    total += tensor.bytes.size();
    shards[shard][name] = tensor;
  }
  for (size_t i = 0; i < shards.size(); ++i) {
    char file_name[64];
    std::snprintf(file_name, sizeof file_name, "model-%05zu-of-%05zu.safetensors", i + 1,
                  shards.size());
    const std::vector<uint8_t> file = EncodeSafetensors(shards[i]);
    WriteFile(folder / file_name, file.data(), file.size());
  }
  const nlohmann::json index = {{"metadata", {{"total_size", total}}}, {"weight_map", weight_map}};
  WriteFile(folder / "model.safetensors.index.json", index.dump(1));
}

void WriteFile(const fs::path& path, const void* data, size_t bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
  file.close();
  if (!file) throw std::runtime_error("cannot write " + path.string());
}

void WriteFile(const fs::path& path, const std::string& text) {
  WriteFile(path, text.data(), text.size());
}

std::vector<uint8_t> ReadFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<uint8_t> bytes;
  char buffer[1 << 16];
  while (file.read(buffer, sizeof buffer), file.gcount() > 0) {
    bytes.insert(bytes.end(), buffer, buffer + file.gcount());
  }
  if (!file.eof()) throw std::runtime_error("cannot read " + path.string());
  return bytes;
}

TempFolder::TempFolder() {
  std::string name = (fs::temp_directory_path() / "arenite-test-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make " + name);
  path_ = name;
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace arn::test
