#include "converter/tensors/assistant.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "converter/base/error.h"
#include "converter/family/families.h"
#include "converter/family/per_layer_families.h"
#include "converter/hf/checkpoint.h"
#include "converter/hf/config_reader.h"
#include "converter/hf/json_file.h"
#include "converter/tensors/planner.h"
#include "nlohmann/json.hpp"

namespace arn::convert {
namespace {

constexpr const char* kModelTypes[] = {"gemma4_assistant", "gemma4_unified_assistant"};
constexpr const char* kOrderName = "masked_embedding.token_ordering";
// transformers: Gemma4AssistantConfig, Gemma4UnifiedAssistantConfig.
constexpr int64_t kDefaultDecoderHidden[] = {1536, 3840};
constexpr uint32_t kDefaultClusters = 2048, kDefaultClustersUsed = 32;
// Ids are stored as f32.
constexpr uint32_t kMostIds = 1u << 24;

constexpr TensorNames WithProjections() {
  TensorNames names = kPerLayerNames;
  names.mtp_fc = "pre_projection";
  return names;
}
constexpr TensorNames kAssistantNames = WithProjections();

// Returns text_config as that of a decoder with its own keys and values, which no layer here has.
nlohmann::json ReadTextConfig(const nlohmann::json& config, ConfigReader* reader) {
  const nlohmann::json* text = reader->Find("text_config");
  if (text == nullptr || !text->is_object()) reader->FailKey("text_config", "an object");
  const std::string label = reader->label() + ": text_config";
  ConfigReader own(*text, label);
  constexpr const char* kShared = "num_kv_shared_layers";
  const uint32_t n_layers = own.RequiredCount("num_hidden_layers");
  const int64_t n_shared = own.Int(kShared).value_or(0);
  if (n_shared != 0 && n_shared != n_layers) {
    own.FailKey(kShared, Format("0 or all of the %u layers", n_layers).c_str());
  }
  constexpr const char *kWidth = "hidden_size_per_layer_input",
                       *kRows = "vocab_size_per_layer_input";
  for (const char* key : {kWidth, kRows}) {
    if (own.Int(key).value_or(0) != 0) own.FailKey(key, "0");
  }
  constexpr const char* kExperts = "enable_moe_block";
  if (own.Bool(kExperts, false)) own.FailKey(kExperts, "false");
  nlohmann::json out = *text;
  out.erase(kRows);
  out[kWidth] = out[kShared] = 0;
  out.erase("architectures");
  if (config.contains("tie_word_embeddings")) {
    out["tie_word_embeddings"] = config["tie_word_embeddings"];
  }
  return out;
}

// True if two layers turn their queries and keys alike.
bool HaveSameRope(const DecoderSpec& a, const LayerKindSpec& of_a, const DecoderSpec& b,
                  const LayerKindSpec& of_b) {
  if (of_a.rope == kNoRope || of_b.rope == kNoRope) return of_a.rope == of_b.rope;
  const RopeSpec &x = a.ropes[of_a.rope], &y = b.ropes[of_b.rope];
  return x.rotary_dim == y.rotary_dim && x.amplitude == y.amplitude && x.inv_freq == y.inv_freq;
}

// Returns the decoder's last layer with its own keys and values of this type.
std::optional<uint32_t> FindLender(const DecoderSpec& decoder, bool has_window) {
  for (auto i = static_cast<uint32_t>(decoder.layer_kinds.size()); i-- > 0;) {
    const LayerKindSpec& kind = decoder.kinds[decoder.layer_kinds[i]];
    const bool is_own = decoder.kv_layers.empty() || decoder.kv_layers[i] == i;
    if (is_own && kind.has_attention() && (kind.window != 0) == has_window) return i;
  }
  return std::nullopt;
}

// Finds the layers whose keys and values the assistant's layers read, and makes the kinds use the
// decoder's RoPEs.
void BorrowKv(const DecoderSpec& decoder, ConfigReader* text, DecoderSpec* spec) {
  const DecoderSpec own = *spec;
  spec->kv_layers.clear();
  for (uint32_t i = 0; i < own.layer_kinds.size(); ++i) {
    const LayerKindSpec& kind = own.kinds[own.layer_kinds[i]];
    const bool has_window = kind.window != 0;
    const std::optional<uint32_t> found = FindLender(decoder, has_window);
    if (!found) {
      text->FailKey("layer_types", Format("types of the model's layers: layer %u has %s window", i,
                                          has_window ? "a" : "no")
                                       .c_str());
    }
    const uint32_t lender = *found;
    const LayerKindSpec& other = decoder.kinds[decoder.layer_kinds[lender]];
    const auto expect = [&](const char* key, uint32_t value, uint32_t wanted) {
      if (value == wanted) return;
      text->FailKey(
          key, Format("that of the model's layer %u, %u: layer %u has %u", lender, wanted, i, value)
                   .c_str());
    };
    expect("sliding_window", kind.window, other.window);
    expect(has_window ? "head_dim" : "global_head_dim", kind.head_dim, other.head_dim);
    expect(has_window || !kind.k_is_v ? "num_key_value_heads" : "num_global_key_value_heads",
           kind.n_kv_heads, other.n_kv_heads);
    if (!HaveSameRope(own, kind, decoder, other)) {
      text->FailKey("rope_parameters",
                    Format("that of the model's layer %u, for layer %u", lender, i).c_str());
    }
    spec->kinds[own.layer_kinds[i]].rope = other.rope;
    spec->kv_layers.push_back(lender);
  }
  spec->ropes = decoder.ropes;
}

// Returns the ids of a tensor that has each token once.
std::vector<uint32_t> ReadOrder(const Checkpoint& checkpoint, const std::string& folder,
                                uint32_t vocab) {
  const Checkpoint::Entry* entry = checkpoint.Find(kOrderName);
  if (entry == nullptr) Fail("%s: tensor %s is missing", folder.c_str(), kOrderName);
  const SourceTensor& tensor = *entry->tensor;
  const std::string path = entry->file->path().string();
  const bool is_long = tensor.dtype == "I64";
  if ((!is_long && tensor.dtype != "I32") || tensor.elements() != vocab) {
    Fail("%s: tensor %s: expected %u numbers of type I64 or I32, found %s of %s", path.c_str(),
         kOrderName, vocab, ShapeText(tensor.shape).c_str(), tensor.dtype.c_str());
  }
  std::vector<int64_t> stored(vocab);
  if (is_long) {
    entry->file->Read(tensor.offset, stored.data(), size_t{vocab} * sizeof(int64_t));
  } else {
    std::vector<int32_t> narrow(vocab);
    entry->file->Read(tensor.offset, narrow.data(), size_t{vocab} * sizeof(int32_t));
    std::copy(narrow.begin(), narrow.end(), stored.begin());
  }
  std::vector<bool> is_there(vocab, false);
  for (uint32_t i = 0; i < vocab; ++i) {
    const bool is_id = stored[i] >= 0 && stored[i] < vocab;
    if (is_id && !is_there[static_cast<size_t>(stored[i])]) {
      is_there[static_cast<size_t>(stored[i])] = true;
      continue;
    }
    Fail("%s: tensor %s: the value at [%u] is %lld, expected each of the %u tokens once",
         path.c_str(), kOrderName, i, static_cast<long long>(stored[i]), vocab);
  }
  return {stored.begin(), stored.end()};
}

void ReadClusters(const std::string& folder, uint32_t vocab, ConfigReader* config,
                  AssistantSpec* out) {
  const uint32_t n = config->Count("num_centroids").value_or(kDefaultClusters);
  const uint32_t used = config->Count("centroid_intermediate_top_k").value_or(kDefaultClustersUsed);
  if (!config->Bool("use_ordered_embeddings", false)) return;
  if (vocab % n != 0) {
    config->FailKey("num_centroids", Format("a divisor of the %u tokens", vocab).c_str());
  }
  if (used > n) {
    config->FailKey("centroid_intermediate_top_k", Format("at most %u", n).c_str());
  }
  if (vocab > kMostIds) {
    config->FailKey("use_ordered_embeddings", Format("false with %u tokens", vocab).c_str());
  }
  out->n_clusters = n;
  out->n_clusters_used = used;
  out->token_order = ReadOrder(*out->checkpoint, folder, vocab);
}

}  // namespace

std::shared_ptr<const DecoderSpec> ReadAssistant(const std::filesystem::path& folder,
                                                 const DecoderSpec& decoder,
                                                 const std::vector<std::string>& ignored_keys,
                                                 std::vector<std::string>* warnings) {
  const std::filesystem::path path = folder / "config.json";
  const nlohmann::json json = LoadJson(path);
  ConfigReader config(json, path.string());
  const std::string model_type = config.String("model_type").value_or("");
  const auto type = std::find(std::begin(kModelTypes), std::end(kModelTypes), model_type);
  if (type == std::end(kModelTypes)) {
    config.FailKey("model_type", "gemma4_assistant or gemma4_unified_assistant");
  }
  if (config.Has("quantization_config")) config.FailKey("quantization_config", "none");
  const int64_t of_decoder = config.Int("backbone_hidden_size")
                                 .value_or(kDefaultDecoderHidden[type - std::begin(kModelTypes)]);
  if (of_decoder != decoder.hidden) {
    config.FailKey("backbone_hidden_size",
                   Format("the model's hidden_size, %u", decoder.hidden).c_str());
  }
  const nlohmann::json text = ReadTextConfig(json, &config);
  const std::string label = path.string() + ": text_config";
  ConfigReader reader(text, label);
  auto spec = std::make_shared<DecoderSpec>(ReadDecoderSpec(text, label, warnings, ignored_keys));
  if (spec->vocab != decoder.vocab) {
    reader.FailKey("vocab_size", Format("the model's, %u", decoder.vocab).c_str());
  }
  BorrowKv(decoder, &reader, spec.get());
  spec->names = &kAssistantNames;
  spec->assistant.checkpoint = std::make_shared<const Checkpoint>(folder);
  spec->assistant.decoder_hidden = decoder.hidden;
  ReadClusters(folder.string(), spec->vocab, &config, &spec->assistant);
  return spec;
}

}  // namespace arn::convert
