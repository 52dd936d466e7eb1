#include "converter/family/linear_mixers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "converter/base/error.h"
#include "converter/hf/json_file.h"
#include "nlohmann/json.hpp"

namespace arn::convert {
namespace {

using Size = LinearAttentionFamily::Size;

constexpr double kLeastStep = 0.001;  // time_step_min of the configuration classes

uint32_t ReadSize(ConfigReader* config, const Size& size) {
  return config->Count(size.key).value_or(size.fallback);
}

// Reads a number, or what transformers writes for one that JSON does not have.
double NumberOrInfinity(ConfigReader* config, const char* key, const nlohmann::json& value) {
  if (value.is_number()) return value.get<double>();
  if (value.is_object() && value.size() == 1 && value.value("__float__", "") == "Infinity") {
    return std::numeric_limits<double>::infinity();
  }
  config->FailKey(key, "two numbers, the second above 0 and not below the first");
}

// time_step_limit: the least and the largest time step.
void ReadTimeStepLimit(ConfigReader* config, LayerKindSpec* mixer) {
  constexpr const char* kKey = "time_step_limit";
  constexpr const char* kExpected = "two numbers, the second above 0 and not below the first";
  if (config->IsNull(kKey)) config->FailKey(kKey, kExpected);
  const nlohmann::json* limit = config->Find(kKey);
  if (limit == nullptr) return;
  if (!limit->is_array() || limit->size() != 2) config->FailKey(kKey, kExpected);
  const double low = NumberOrInfinity(config, kKey, (*limit)[0]);
  const double high = NumberOrInfinity(config, kKey, (*limit)[1]);
  if (!(high > 0) || low > high || !std::isfinite(low)) config->FailKey(kKey, kExpected);
  mixer->time_step_low = static_cast<float>(std::max(low, 0.0));
  mixer->time_step_high = std::isfinite(high) ? static_cast<float>(high) : 0.0f;
}

// Returns the head width: the key's number, or the width divided by the heads.
uint32_t ReadValueDim(const LinearAttentionFamily& linear, ConfigReader* config, uint32_t heads,
                      uint64_t width) {
  const nlohmann::json* found = config->Find(linear.value_dim.key);
  if (linear.value_dim.fallback != 0) return ReadSize(config, linear.value_dim);
  const bool is_auto = found == nullptr || *found == "auto";
  return is_auto ? static_cast<uint32_t>(width / heads) : *config->Count(linear.value_dim.key);
}

void CheckSizes(ConfigReader* config, const LinearAttentionFamily& linear,
                const LayerKindSpec& mixer) {
  constexpr uint64_t kMostHeads = 4096, kMostFloats = 1u << 28, kMostWidth = 1u << 20;
  if (mixer.linear_heads > kMostHeads || mixer.linear_key_dim > kMaxHeadDim ||
      mixer.linear_value_dim > kMaxHeadDim || mixer.conv_taps > kMaxConvTaps ||
      mixer.linear_heads % mixer.linear_key_heads != 0) {
    Fail(
        "%s: %u heads of %u elements, %u (%s) with keys of %u, and convolutions of %u inputs are "
        "not supported: at most %llu heads, a multiple of the second, of %u, %u and %u",
        config->label().c_str(), mixer.linear_heads, mixer.linear_value_dim, mixer.linear_key_heads,
        linear.key_heads.key, mixer.linear_key_dim, mixer.conv_taps,
        static_cast<unsigned long long>(kMostHeads), kMaxHeadDim, kMaxHeadDim, kMaxConvTaps);
  }
  const uint64_t states =
      uint64_t{mixer.linear_heads} * mixer.linear_key_dim * mixer.linear_value_dim;
  const uint64_t taps = uint64_t{mixer.conv_taps} * mixer.conv_width();
  if (states + taps > kMostFloats || mixer.mixer_in_width() > kMostWidth) {
    Fail("%s: linear attention with %llu states and a width of %u is too large",
         config->label().c_str(), static_cast<unsigned long long>(states), mixer.mixer_in_width());
  }
}

// Reads a list of layer types; `linear` and `attention` are its words.
std::vector<bool> ReadTypes(ConfigReader* config, const char* key, uint32_t n_layers,
                            const char* linear, const char* attention) {
  const nlohmann::json* types = config->Find(key);
  const std::string expected =
      Format("a list of %u entries, %s or %s", n_layers, linear, attention);
  if (!types->is_array() || types->size() != n_layers) config->FailKey(key, expected.c_str());
  std::vector<bool> is_linear;
  for (const nlohmann::json& type : *types) {
    if (type != linear && type != attention) config->FailKey(key, expected.c_str());
    is_linear.push_back(type == linear);
  }
  return is_linear;
}

void ReadNorm(const LinearAttentionFamily& linear, ConfigReader* config, LayerKindSpec* mixer) {
  const uint32_t width = mixer->mixer_out_width(), group = width / mixer->linear_key_heads;
  switch (linear.norm) {
    case GatedNorm::kEachHead:
      mixer->mixer_norm_group = mixer->linear_value_dim;
      mixer->norms_before_gate = true;
      return;
    case GatedNorm::kAllHeads: mixer->mixer_norm_group = width; return;
    case GatedNorm::kGroups: mixer->mixer_norm_group = group; return;
    case GatedNorm::kByKeys: {
      constexpr const char* kFirst = "mamba_norm_before_gate";
      const bool is_first = config->Bool(kFirst, !config->IsNull(kFirst));
      if (!config->Bool("mamba_rms_norm", false)) return;
      mixer->mixer_norm_group = group;
      mixer->norms_before_gate = is_first;
      return;
    }
  }
}

// Marks the layers of hybrid_override_pattern: M, *, - and E.
std::vector<bool> ReadPattern(ConfigReader* config, char wanted) {
  const std::string pattern = *config->String("hybrid_override_pattern");
  std::vector<bool> is_wanted;
  for (const char c : pattern) {
    if (c != 'M' && c != '*' && c != '-' && c != 'E') {
      config->FailKey("hybrid_override_pattern", "M, *, - and E");
    }
    is_wanted.push_back(c == wanted);
  }
  return is_wanted;
}

// Marks the layers of one type in layers_block_type or hybrid_override_pattern.
std::vector<bool> LayersOfBlock(ConfigReader* config, const char* wanted, char letter) {
  // transformers ties nothing whatever the key says.
  if (config->Bool("tie_word_embeddings", false)) config->FailKey("tie_word_embeddings", "false");
  // Marks the keys of experts, which perhaps no layer has.
  for (const char* key : {"n_routed_experts", "n_shared_experts", "moe_intermediate_size",
                          "moe_shared_expert_intermediate_size", "moe_latent_size",
                          "moe_shared_expert_overlap", "num_experts_per_tok",
                          "routed_scaling_factor", "n_group", "topk_group", "norm_topk_prob"}) {
    config->MarkRead(key);
  }
  for (const char* key : {"layers_block_type", "layer_types"}) {
    const nlohmann::json* types = config->Find(key);
    if (types == nullptr) continue;
    config->MarkRead("hybrid_override_pattern");
    constexpr const char* kExpected = "a list of mamba, attention, mlp and moe";
    if (!types->is_array()) config->FailKey(key, kExpected);
    std::vector<bool> is_wanted;
    for (const nlohmann::json& type : *types) {
      if (type != "mamba" && type != "attention" && type != "mlp" && type != "moe") {
        config->FailKey(key, kExpected);
      }
      is_wanted.push_back(type == wanted);
    }
    return is_wanted;
  }
  if (!config->Has("hybrid_override_pattern")) {
    config->FailKey("layers_block_type", "a list of mamba, attention, mlp and moe");
  }
  return ReadPattern(config, letter);
}

}  // namespace

LayerKindSpec ReadLinearAttention(const Family& family, ConfigReader* config, uint32_t hidden) {
  const LinearAttentionFamily& linear = *family.linear;
  LayerKindSpec mixer;
  mixer.mixer = Mixer::kLinearAttention;
  mixer.has_delta_rule = linear.has_delta_rule;
  LinearAttentionFamily::Size value_heads = linear.heads, key_heads = linear.key_heads;
  if (linear.derives_sizes) {
    value_heads.fallback = key_heads.fallback = config->RequiredCount(family.keys.heads);
  }
  mixer.linear_heads = ReadSize(config, value_heads);
  mixer.linear_key_heads = ReadSize(config, key_heads);
  LinearAttentionFamily::Size key_dim = linear.key_dim;
  // Python: int(0.75 * hidden / heads).
  if (linear.derives_sizes) key_dim.fallback = 3 * hidden / (4 * mixer.linear_key_heads);
  mixer.linear_key_dim = ReadSize(config, key_dim);
  if (mixer.linear_key_dim == 0) config->FailKey(key_dim.key, "a number above 0");
  mixer.conv_taps = ReadSize(config, linear.taps);
  mixer.mixer_norm_epsilon = linear.norm_epsilon;
  mixer.doubles_betas =
      linear.doubles_betas_key != nullptr && config->Bool(linear.doubles_betas_key, true);
  double expand = 0;
  if (linear.expand_key != nullptr) expand = config->Number(linear.expand_key).value_or(2.0);
  if (expand < 0 || expand > 1024) config->FailKey(linear.expand_key, "a number of at most 1024");
  auto width = static_cast<uint64_t>(expand * hidden);
  const char* width_key = linear.expand_key;
  if (linear.width.key != nullptr && !config->IsNull(linear.width.key)) {
    width = ReadSize(config, linear.width);
    width_key = linear.width.key;
  }
  mixer.linear_value_dim =
      linear.derives_sizes ? config->Count(linear.value_dim.key).value_or(2 * mixer.linear_key_dim)
                           : ReadValueDim(linear, config, mixer.linear_heads, width);
  if (linear.expand_key != nullptr &&
      width != uint64_t{mixer.linear_heads} * mixer.linear_value_dim) {
    Fail("%s: %s %u times %s %u is not the width by %s: %llu", config->label().c_str(),
         linear.heads.key, mixer.linear_heads, linear.value_dim.key, mixer.linear_value_dim,
         width_key, static_cast<unsigned long long>(width));
  }
  CheckSizes(config, linear, mixer);
  // The classes' defaults are true; null counts as false, as in Python.
  mixer.has_conv_bias = linear.conv_bias_key != nullptr &&
                        config->Bool(linear.conv_bias_key, !config->IsNull(linear.conv_bias_key));
  mixer.has_mixer_in_bias =
      linear.in_bias_key != nullptr && config->Bool(linear.in_bias_key, false);
  mixer.has_mixer_out_bias = linear.out_bias_key != nullptr
                                 ? config->Bool(linear.out_bias_key, false)
                                 : mixer.has_mixer_in_bias;
  ReadNorm(linear, config, &mixer);
  // Published configs name the elements of a head to rotate; transformers 5 rotates all.
  if (const std::optional<uint32_t> rotated = config->Count("attn_rotary_emb")) {
    const uint32_t heads = config->RequiredCount(family.keys.heads);
    if (*rotated != config->Count("head_dim").value_or(hidden / heads)) {
      config->FailKey("attn_rotary_emb", "the head size");
    }
  }
  mixer.is_hybrid = linear.layers == LinearLayers::kBeside;
  if (linear.least_step_key != nullptr) {
    mixer.time_step_low =
        static_cast<float>(config->Number(linear.least_step_key).value_or(kLeastStep));
  } else if (!linear.has_delta_rule) {
    ReadTimeStepLimit(config, &mixer);
  }
  if (linear.activation_key != nullptr &&
      config->String(linear.activation_key).value_or("silu") != "silu") {
    config->FailKey(linear.activation_key, "silu");
  }
  if (linear.has_delta_rule) {
    // transformers' own convolution has silu whatever the key says.
    const std::string activation = config->String(family.keys.activation).value_or("silu");
    if (activation != "silu" && activation != "swish") {
      config->FailKey(family.keys.activation, "silu");
    }
    // Published configs have it; transformers always gates.
    if (!config->Bool("attn_output_gate", true)) config->FailKey("attn_output_gate", "true");
  }
  return mixer;
}

std::vector<bool> LayersWithLinearAttention(const Family& family, ConfigReader* config,
                                            uint32_t n_layers) {
  switch (family.linear->layers) {
    case LinearLayers::kAll:
    case LinearLayers::kBeside: break;
    case LinearLayers::kBlocks: return LayersOfBlock(config, "mamba", 'M');
    case LinearLayers::kIndices: {
      std::vector<bool> is_linear(n_layers, true);
      for (const int64_t i : config->IntOrList("attn_layer_indices")) {
        // Others mark no layer in transformers.
        if (i >= 0 && i < n_layers) is_linear[static_cast<size_t>(i)] = false;
      }
      return is_linear;
    }
    case LinearLayers::kInterval: {
      const uint32_t interval = config->Count("full_attention_interval").value_or(4);
      if (config->Has("layer_types")) {
        return ReadTypes(config, "layer_types", n_layers, "linear_attention", "full_attention");
      }
      std::vector<bool> is_linear(n_layers);
      for (uint32_t i = 0; i < n_layers; ++i) is_linear[i] = (i + 1) % interval != 0;
      return is_linear;
    }
    case LinearLayers::kEachFourth: {
      if (config->Has("layer_types")) {
        return ReadTypes(config, "layer_types", n_layers, "linear_attention", "full_attention");
      }
      std::vector<bool> is_linear(n_layers);
      for (uint32_t i = 0; i < n_layers; ++i) {
        is_linear[i] = i % 4 != 3 && (n_layers > 3 || i + 1 != n_layers);
      }
      return is_linear;
    }
    case LinearLayers::kMambaTypes:
      for (const char* key : {"layer_types", "layers_block_type"}) {
        if (config->Has(key)) return ReadTypes(config, key, n_layers, "mamba", "attention");
      }
      break;
  }
  return std::vector<bool>(n_layers, true);
}

std::vector<bool> BlocksWithExperts(ConfigReader* config) {
  return LayersOfBlock(config, "moe", 'E');
}

std::vector<bool> LayersWithFeedForward(ConfigReader* config) {
  std::vector<bool> has_ffn = LayersOfBlock(config, "mlp", '-');
  const std::vector<bool> has_experts = BlocksWithExperts(config);
  for (size_t i = 0; i < has_ffn.size(); ++i) has_ffn[i] = has_ffn[i] || has_experts[i];
  return has_ffn;
}

}  // namespace arn::convert
