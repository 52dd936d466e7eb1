#include "converter/gguf/gguf_model.h"

#include <memory>

#include "converter/base/error.h"
#include "converter/family/families.h"
#include "converter/gguf/gguf_config.h"
#include "converter/gguf/gguf_file.h"
#include "converter/gguf/gguf_pooling.h"
#include "converter/gguf/gguf_tokenizer.h"
#include "nlohmann/json.hpp"

namespace arn::convert {
namespace {

namespace fs = std::filesystem;
using Tensors = std::map<std::string, SourceTensor>;

constexpr const char* kRopeFactors = "rope_freqs.weight";

// Removes a one-dimensional tensor from the tensors that the model must use and returns its values;
// empty if absent.
std::vector<float> TakeVector(const TensorFile& file, const char* name, Tensors* tensors) {
  const auto found = tensors->find(name);
  if (found == tensors->end()) return {};
  const SourceTensor tensor = found->second;
  if (tensor.shape.size() != 1 || tensor.dtype != "F32" || tensor.elements() > 65536) {
    Fail("%s: tensor %s: expected a vector of F32, found %s of %s", file.path().c_str(), name,
         ShapeText(tensor.shape).c_str(), tensor.dtype.c_str());
  }
  std::vector<float> values(static_cast<size_t>(tensor.elements()));
  file.Read(tensor.offset, values.data(), values.size() * sizeof(float));
  tensors->erase(found);
  return values;
}

// Returns a stacked tensor's name up to ".weight" or ".bias"; all of any other name, and of those
// that `names` refers to as a whole.
std::string StackName(const TensorNames& names, const std::string& name) {
  if (name.starts_with("altup_")) return name.substr(0, name.rfind('.'));
  for (const char* end : {"_exps.", ".attn_k_b.", ".attn_v_b."}) {
    const size_t at = name.find(end);
    if (at == std::string::npos || (end[0] == '_' && names.stacked_down != nullptr)) continue;
    return name.substr(0, at + std::strlen(end) - 1);
  }
  return name;
}

// Splits each tensor that stacks experts, heads, or matrices by stream: NAME.weight [n, rows, cols]
// becomes NAME.E.weight [rows, cols], and NAME.bias [n, rows] becomes NAME.E.bias [rows].
void NameParts(const TensorNames& names, Tensors* tensors) {
  Tensors named;
  for (const auto& [name, tensor] : *tensors) {
    const std::string base = StackName(names, name);
    const std::string part_name = name.substr(base.size());
    const size_t dimensions = part_name == ".weight" ? 3 : part_name == ".bias" ? 2 : 0;
    if (dimensions == 0 || tensor.shape.size() != dimensions) {
      named[name] = tensor;
      continue;
    }
    const uint64_t n = tensor.shape[0];
    if (n > 65535) {
      named[name] = tensor;
      continue;
    }
    for (uint64_t e = 0; e < n; ++e) {
      SourceTensor part = tensor;
      part.name = tensor.name + "[" + std::to_string(e) + "]";
      part.shape.erase(part.shape.begin());
      part.bytes = tensor.bytes / n;
      part.offset = tensor.offset + e * part.bytes;
      named[base + "." + std::to_string(e) + part_name] = std::move(part);
    }
  }
  *tensors = std::move(named);
}

// Reshapes convolutions from [channels, taps] to [channels, 1, taps], and the gate of a shared
// expert from [hidden] to [1, hidden], as in checkpoints.
void ShapeAsInCheckpoints(Tensors* tensors) {
  for (auto& [name, tensor] : *tensors) {
    const bool is_convolution = name.find(".ssm_conv1d.weight") != std::string::npos ||
                                name.find(".shortconv.conv.weight") != std::string::npos;
    if (is_convolution && tensor.shape.size() == 2)
      tensor.shape.insert(tensor.shape.begin() + 1, 1);
    const bool is_gate = name.find(".ffn_gate_inp_shexp.weight") != std::string::npos;
    if (is_gate && tensor.shape.size() == 1) tensor.shape.insert(tensor.shape.begin(), 1);
  }
}

// Mamba-2: removes the dimensions that llama.cpp's converter adds to numbers by head, [heads, 1],
// and to norms, [groups, width].
void FlattenHeads(Tensors* tensors) {
  for (auto& [name, tensor] : *tensors) {
    const bool is_by_head = name.ends_with(".ssm_a") || name.ends_with(".ssm_d");
    if (tensor.shape.size() != 2 || (is_by_head && tensor.shape[1] != 1)) continue;
    if (is_by_head || name.ends_with(".ssm_norm.weight")) tensor.shape = {tensor.elements()};
  }
}

// Adds the ".weight" that llama.cpp's converter leaves out of Falcon-H1's norms.
void CompleteNames(Tensors* tensors) {
  Tensors named;
  for (const auto& [name, tensor] : *tensors) {
    const std::string whole = name + ".weight";
    const bool lacks = name.ends_with(".ffn_norm") && tensors->count(whole) == 0;
    named[lacks ? whole : name] = tensor;
  }
  *tensors = std::move(named);
}

// Removes the rows behind `rows`, which llama.cpp's converter adds to a table.
void CutRows(uint64_t rows, SourceTensor* tensor) {
  if (tensor->shape.size() != 2 || tensor->shape[0] <= rows) return;
  tensor->bytes = tensor->bytes / tensor->shape[0] * rows;
  tensor->shape[0] = rows;
}

// A number of the metadata in place of a tensor.
class MetadataNumber : public DecodedTensor {
 public:
  MetadataNumber(const std::string& name, float value)
      : DecodedTensor(Vector(name), "metadata"), value_(value) {}

 private:
  static SourceTensor Vector(const std::string& name) {
    SourceTensor tensor;
    tensor.name = name;
    tensor.dtype = "F32";
    tensor.shape = {1};
    return tensor;
  }
  void ReadRows(uint64_t, uint32_t, float* out) const override { *out = value_; }

  const float value_;
};

// Adds the numbers of the layers' activation, which files store as lists.
void AddActParameters(const DecoderSpec& spec, const TensorFile* file, ConfigReader* metadata,
                      Checkpoint* checkpoint) {
  if (spec.names->act_parameters[0] == nullptr) return;
  for (const char* part : {"alpha_p", "alpha_n", "beta", "eps"}) {
    const std::string key = std::string("xielu.") + part;
    const nlohmann::json* numbers = metadata->Find(key);
    const size_t n_layers = spec.layer_kinds.size();
    if (numbers == nullptr || !numbers->is_array() || numbers->size() != n_layers) {
      metadata->FailKey(key, "a number for each layer");
    }
    for (size_t i = 0; i < n_layers; ++i) {
      if (!(*numbers)[i].is_number()) metadata->FailKey(key, "a number for each layer");
      checkpoint->AddDecoded(
          std::make_unique<MetadataNumber>("blk." + std::to_string(i) + "." + key,
                                           (*numbers)[i].get<float>()),
          file, {});
    }
  }
}

// Applies Llama 3's per-frequency factors, which files store instead of the scaling rule.
void ApplyRopeFactors(const std::string& label, const std::vector<float>& factors,
                      DecoderSpec* spec) {
  if (factors.empty()) return;
  for (RopeSpec& rope : spec->ropes) {
    if (factors.size() != rope.inv_freq.size()) {
      Fail("%s: tensor %s: expected %zu factors, found %zu", label.c_str(), kRopeFactors,
           rope.inv_freq.size(), factors.size());
    }
    for (size_t i = 0; i < factors.size(); ++i) {
      if (!(factors[i] > 0)) {
        Fail("%s: tensor %s: the value at [%zu] is %g, expected a positive number", label.c_str(),
             kRopeFactors, i, static_cast<double>(factors[i]));
      }
      rope.inv_freq[i] /= factors[i];
      // Sessions may not scale the base: it is not that of these frequencies.
      if (factors[i] != 1.0f) rope.theta = 0.0f;
    }
  }
}

// Returns the file's recommended sampling with the keys of generation_config.json.
nlohmann::json GenerationOf(const GgufArchitecture& row, ConfigReader* metadata) {
  nlohmann::json generation = nlohmann::json::object();
  generation["eos_token_id"] = EndTokens(metadata);
  const auto id = [&](const char* key, const char* to) {
    const std::optional<int64_t> value = metadata->Int(key);
    if (value && *value != UINT32_MAX) generation[to] = *value;
  };
  id("tokenizer.ggml.bos_token_id", "bos_token_id");
  id("tokenizer.ggml.padding_token_id", "pad_token_id");
  const std::string start = std::string(row.name) + ".decoder_start_token_id";
  if (row.encoder_names != nullptr) id(start.c_str(), "decoder_start_token_id");
  constexpr std::pair<const char*, const char*> kSampling[] = {
      {"general.sampling.temp", "temperature"},
      {"general.sampling.top_k", "top_k"},
      {"general.sampling.top_p", "top_p"},
      {"general.sampling.min_p", "min_p"},
      {"general.sampling.penalty_repeat", "repetition_penalty"},
      {"general.sampling.xtc_probability", "xtc_probability"},
      {"general.sampling.xtc_threshold", "xtc_threshold"},
  };
  for (const auto& [key, to] : kSampling) {
    if (const nlohmann::json* value = metadata->Find(key)) {
      generation[to] = *value;
      generation["do_sample"] = true;
    }
  }
  // llama.cpp: -1 is all tokens, 0 none.
  if (const std::optional<int64_t> n = metadata->Int("general.sampling.penalty_last_n")) {
    if (*n == 0) generation.erase("repetition_penalty");
    if (*n > 0) generation["penalty_window"] = *n;
  }
  const int64_t mirostat = metadata->Int("general.sampling.mirostat").value_or(0);
  if (mirostat == 2) {
    generation["do_sample"] = true;
    generation["mirostat_tau"] = metadata->Number("general.sampling.mirostat_tau").value_or(5.0);
    generation["mirostat_eta"] = metadata->Number("general.sampling.mirostat_eta").value_or(0.1);
  } else if (mirostat != 0) {
    generation["mirostat"] = mirostat;  // reported as not applied
  }
  return generation;
}

void RefuseParts(ConfigReader* metadata) {
  const int64_t parts = metadata->Int("split.count").value_or(1);
  if (parts > 1) {
    Fail(
        "%s: one of %lld parts of a model (split.count); join them first (llama-gguf-split "
        "--merge)",
        metadata->label().c_str(), static_cast<long long>(parts));
  }
}

}  // namespace

bool IsGguf(const fs::path& path) { return fs::is_regular_file(path); }

GgufWeights ReadGgufWeights(const fs::path& path, std::vector<std::string>* warnings,
                            std::optional<uint32_t> window, const RopeScaling* scaling) {
  auto file = std::make_unique<GgufFile>(path);
  ConfigReader metadata(file->metadata(), path.string());
  RefuseParts(&metadata);
  Tensors tensors;
  GgufFacts facts;
  for (const SourceTensor& tensor : file->tensors()) {
    tensors[tensor.name] = tensor;
    facts.tensors.insert(tensor.name);
    facts.shapes[tensor.name] = tensor.shape;
  }
  const auto embedding = tensors.find("token_embd.weight");
  if (embedding == tensors.end() || embedding->second.shape.size() != 2) {
    Fail("%s: tensor token_embd.weight of two dimensions is missing", path.c_str());
  }
  facts.vocab = embedding->second.shape[0];
  facts.short_factors = TakeVector(*file, "rope_factors_short.weight", &tensors);
  facts.long_factors = TakeVector(*file, "rope_factors_long.weight", &tensors);
  const std::vector<float> factors = TakeVector(*file, kRopeFactors, &tensors);
  facts.has_rope_factors = !factors.empty();
  facts.rope_factors = factors;
  facts.window = window;

  const GgufArchitecture& row = ReadGgufArchitecture(facts, &metadata);
  NameParts(*row.names, &tensors);
  ShapeAsInCheckpoints(&tensors);
  if (row.names->time_step_bias != nullptr) FlattenHeads(&tensors);
  const std::string unsaid = UnsaidOf(row, facts, &metadata);
  if (!unsaid.empty()) warnings->push_back(unsaid);
  const nlohmann::json config = MakeConfig(row, facts, &metadata);
  CompleteNames(&tensors);
  const auto table = tensors.find("per_layer_token_embd.weight");
  if (table != tensors.end()) {
    CutRows(config.value("vocab_size_per_layer_input", facts.vocab), &table->second);
  }
  if (scaling != nullptr && facts.has_rope_factors) {
    Fail("%s: --rope: the model has RoPE factors of its own", path.c_str());
  }
  DecoderSpec spec = ReadDecoderSpec(config, path.string(), warnings, {}, scaling);
  // Undoes the tensor changes of llama.cpp's converter.
  if (row.shown_with_one_type != nullptr && spec.n_token_types == 1) {
    const bool has_pieces = metadata.String("tokenizer.ggml.model").value_or("") == "t5";
    spec.architecture = has_pieces ? row.shown_with_pieces : row.shown_with_one_type;
  }
  spec.names = row.names;
  spec.encoder.names = row.encoder_names;
  spec.rates_are_logs = false;
  // It reorders the heads of layers without RoPE too.
  spec.pairs_all_heads = row.rotates_neighbours && !spec.rotates_neighbours;
  spec.rotates_neighbours = row.rotates_neighbours;
  spec.value_heads_in_turn = row.value_heads_in_turn;
  spec.qkv_order = QkvOrder::kBlocks;
  spec.is_transposed = false;
  spec.norm_offset = 0.0f;
  ReadGgufPooling(row, facts, &metadata, &spec, warnings);
  if (!row.has_rotated_part) ApplyRopeFactors(path.string(), factors, &spec);

  const nlohmann::json generation = GenerationOf(row, &metadata),
                       nothing = nlohmann::json::object();
  GenerationSources sources;
  sources.generation = &generation;
  sources.generation_label = path.string();
  sources.config = &nothing;
  sources.config_label = path.string();
  GenerationSpec generation_spec = ReadGeneration(sources, spec.vocab, warnings);
  const TensorFile* const opened = file.get();
  Checkpoint checkpoint(std::move(file), std::move(tensors));
  AddActParameters(spec, opened, &metadata, &checkpoint);
  return {row.name, std::move(spec), std::move(generation_spec), std::move(checkpoint)};
}

std::optional<TokenizerTables> ReadGgufTokenizer(const fs::path& path,
                                                 std::vector<std::string>* warnings) {
  const GgufFile file(path);
  ConfigReader metadata(file.metadata(), path.string());
  const nlohmann::json tokenizer = MakeTokenizerJson(&metadata, warnings);
  if (tokenizer.is_null()) return std::nullopt;
  TokenizerTables tables;
  std::string error;
  if (!ConvertTokenizerObject(tokenizer, &tables, &error)) {
    Fail("%s: tokenizer as %s", path.c_str(), error.c_str());
  }
  warnings->insert(warnings->end(), tables.warnings.begin(), tables.warnings.end());
  return tables;
}

ChatTemplates ReadGgufChatTemplates(const fs::path& path) {
  const GgufFile file(path);
  ConfigReader metadata(file.metadata(), path.string());
  nlohmann::json templates = nlohmann::json::array();
  const auto add = [&](const std::string& key, const std::string& name) {
    const std::optional<std::string> text = metadata.String(key);
    if (text) templates.push_back({{"name", name}, {"template", *text}});
  };
  constexpr const char* kKey = "tokenizer.chat_template";
  add(kKey, "default");
  // Named templates.
  if (const nlohmann::json* names = metadata.Find("tokenizer.chat_templates"); names != nullptr) {
    if (!names->is_array()) metadata.FailKey("tokenizer.chat_templates", "a list of names");
    for (const nlohmann::json& name : *names) {
      if (!name.is_string()) metadata.FailKey("tokenizer.chat_templates", "a list of names");
      add(std::string(kKey) + "." + name.get<std::string>(), name.get<std::string>());
    }
  }
  if (templates.empty()) return {};
  nlohmann::json config = {{"chat_template", std::move(templates)}};
  const nlohmann::json* tokens = metadata.Find("tokenizer.ggml.tokens");
  constexpr std::pair<const char*, const char*> kTokens[] = {
      {"bos_token", "tokenizer.ggml.bos_token_id"},
      {"eos_token", "tokenizer.ggml.eos_token_id"},
      {"unk_token", "tokenizer.ggml.unknown_token_id"},
      {"pad_token", "tokenizer.ggml.padding_token_id"},
  };
  for (const auto& [name, key] : kTokens) {
    const int64_t id = metadata.Int(key).value_or(-1);
    if (tokens == nullptr || !tokens->is_array() || id < 0) continue;
    if (static_cast<uint64_t>(id) < tokens->size())
      config[name] = (*tokens)[static_cast<size_t>(id)];
  }
  return ReadChatTemplates(config, path.string());
}

}  // namespace arn::convert
