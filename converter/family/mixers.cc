#include "converter/family/mixers.h"

#include <algorithm>
#include <cmath>

#include "converter/base/error.h"
#include "converter/family/linear_mixers.h"
#include "converter/hf/json_file.h"
#include "nlohmann/json.hpp"

namespace arn::convert {
namespace {

constexpr uint32_t kMostChannels = (1u << 20) / 3;  // the runtime's limit

// transformers/models/mamba/configuration_mamba.py
LayerKindSpec ReadScan(const ScanFamily& scan, ConfigReader* config, uint32_t hidden) {
  LayerKindSpec mixer;
  mixer.mixer = Mixer::kScan;
  const double expand = config->Number(scan.expand).value_or(2.0);
  if (!(expand > 0) || expand > 1024)
    config->FailKey(scan.expand, "a number above 0, at most 1024");
  const auto width = static_cast<uint32_t>(expand * static_cast<double>(hidden));
  mixer.mixer_width = scan.width == nullptr ? width : config->Count(scan.width).value_or(width);
  mixer.conv_taps = config->Count(scan.taps).value_or(4);
  mixer.scan_states = config->Count(scan.states).value_or(16);
  const nlohmann::json* rank = config->Find(scan.rank);
  const bool is_auto = rank == nullptr || *rank == "auto";
  mixer.scan_rank = is_auto ? (hidden + 15) / 16 : *config->Count(scan.rank);
  mixer.has_mixer_in_bias = mixer.has_mixer_out_bias = config->Bool(scan.bias, false);
  mixer.has_conv_bias = config->Bool(scan.conv_bias, true);
  if (scan.norm_epsilon == nullptr) return mixer;
  const double epsilon = config->Number(scan.norm_epsilon).value_or(scan.default_norm_epsilon);
  if (!(epsilon > 0 && epsilon <= 1)) config->FailKey(scan.norm_epsilon, "a number above 0");
  mixer.scan_norm_epsilon = static_cast<float>(epsilon);
  return mixer;
}

// Marks the layers with attention among those with a scan.
std::vector<bool> LayersByPeriod(ConfigReader* config, uint32_t n_layers) {
  const uint32_t period = config->Count("attn_layer_period").value_or(8);
  const int64_t offset = config->Int("attn_layer_offset").value_or(4);
  if (offset < 0 || offset >= period) config->FailKey("attn_layer_offset", "below the period");
  std::vector<bool> has_attention;
  for (uint32_t i = 0; i < n_layers; ++i) has_attention.push_back(i % period == offset);
  return has_attention;
}

// transformers/models/lfm2/configuration_lfm2.py
LayerKindSpec ReadConv(ConfigReader* config, uint32_t hidden) {
  LayerKindSpec mixer;
  mixer.mixer = Mixer::kConv;
  mixer.mixer_width = hidden;
  mixer.conv_taps = config->Count("conv_L_cache").value_or(3);
  mixer.has_mixer_in_bias = mixer.has_mixer_out_bias = mixer.has_conv_bias =
      config->Bool("conv_bias", false);
  return mixer;
}

// Reads layer_types, or full_attn_idxs: the layers with attention; all if both are absent.
std::vector<bool> LayersWithConv(ConfigReader* config, uint32_t n_layers) {
  const nlohmann::json* types = config->Find("layer_types");
  const nlohmann::json* attention = config->Find("full_attn_idxs");
  if (types != nullptr) {
    const std::string expected = Format("a list of %u entries, conv or full_attention", n_layers);
    if (!types->is_array() || types->size() != n_layers) {
      config->FailKey("layer_types", expected.c_str());
    }
    std::vector<bool> is_conv;
    for (const nlohmann::json& type : *types) {
      if (type != "conv" && type != "full_attention") {
        config->FailKey("layer_types", expected.c_str());
      }
      is_conv.push_back(type == "conv");
    }
    return is_conv;
  }
  std::vector<bool> is_conv(n_layers, attention != nullptr);
  if (attention == nullptr) return is_conv;
  for (const int64_t i : config->IntOrList("full_attn_idxs")) {
    if (i < 0 || i >= n_layers) {
      config->FailKey("full_attn_idxs", Format("numbers of the %u layers", n_layers).c_str());
    }
    is_conv[static_cast<size_t>(i)] = false;
  }
  return is_conv;
}

void CheckSizes(ConfigReader* config, const LayerKindSpec& mixer) {
  if (mixer.mixer_width == 0 || mixer.mixer_width > kMostChannels ||
      mixer.conv_taps > kMaxConvTaps || mixer.scan_states > kMaxScanStates ||
      mixer.scan_rank > kMostChannels) {
    Fail(
        "%s: convolutions of %u channels and %u inputs with %u states and time steps of rank %u "
        "are not supported: at most %u, %u, %u, %u",
        config->label().c_str(), mixer.mixer_width, mixer.conv_taps, mixer.scan_states,
        mixer.scan_rank, kMostChannels, kMaxConvTaps, kMaxScanStates, kMostChannels);
  }
  if (mixer.mixer == Mixer::kConv && mixer.conv_taps < 2)
    config->FailKey("conv_L_cache", "2 or more");
}

}  // namespace

std::vector<LayerKindSpec> LayerMixers(const Family& family, ConfigReader* config,
                                       uint32_t n_layers, uint32_t hidden) {
  std::vector<LayerKindSpec> mixers(n_layers);
  if (family.mixer == MixerRule::kAttention) return mixers;
  if (family.mixer == MixerRule::kLinearAttention) {
    const LayerKindSpec mixer = ReadLinearAttention(family, config, hidden);
    const std::vector<bool> is_linear = LayersWithLinearAttention(family, config, n_layers);
    for (uint32_t i = 0; i < n_layers; ++i) {
      if (is_linear[i]) mixers[i] = mixer;
    }
    if (family.linear->layers != LinearLayers::kBlocks) return mixers;
    const std::vector<bool> has_ffn = LayersWithFeedForward(config);
    for (uint32_t i = 0; i < n_layers; ++i) {
      if (has_ffn[i]) mixers[i].mixer = Mixer::kNone;
    }
    return mixers;
  }
  const bool is_scan = family.mixer == MixerRule::kScan;
  const LayerKindSpec mixer =
      is_scan ? ReadScan(*family.scan, config, hidden) : ReadConv(config, hidden);
  CheckSizes(config, mixer);
  if (is_scan && !family.scan->has_attention_period) {
    return std::vector<LayerKindSpec>(n_layers, mixer);
  }
  if (is_scan) {
    const std::vector<bool> has_attention = LayersByPeriod(config, n_layers);
    for (uint32_t i = 0; i < n_layers; ++i) {
      if (!has_attention[i]) mixers[i] = mixer;
    }
    return mixers;
  }
  const std::vector<bool> is_conv = LayersWithConv(config, n_layers);
  for (uint32_t i = 0; i < n_layers; ++i) {
    if (is_conv[i]) mixers[i] = mixer;
  }
  return mixers;
}

LayerKindSpec WithMixer(LayerKindSpec kind, const LayerKindSpec& mixer) {
  if (mixer.mixer == Mixer::kAttention) return kind;
  kind.mixer = mixer.mixer;
  kind.is_hybrid = mixer.is_hybrid;
  kind.mixer_width = mixer.mixer_width;
  kind.conv_taps = mixer.conv_taps;
  kind.scan_states = mixer.scan_states;
  kind.scan_rank = mixer.scan_rank;
  kind.scan_norm_epsilon = mixer.scan_norm_epsilon;
  kind.linear_heads = mixer.linear_heads;
  kind.linear_key_heads = mixer.linear_key_heads;
  kind.linear_key_dim = mixer.linear_key_dim;
  kind.linear_value_dim = mixer.linear_value_dim;
  kind.has_delta_rule = mixer.has_delta_rule;
  kind.time_step_low = mixer.time_step_low;
  kind.time_step_high = mixer.time_step_high;
  kind.mixer_norm_group = mixer.mixer_norm_group;
  kind.mixer_norm_epsilon = mixer.mixer_norm_epsilon;
  kind.doubles_betas = mixer.doubles_betas;
  kind.norms_before_gate = mixer.norms_before_gate;
  kind.has_mixer_in_bias = mixer.has_mixer_in_bias;
  kind.has_mixer_out_bias = mixer.has_mixer_out_bias;
  kind.has_conv_bias = mixer.has_conv_bias;
  if (kind.is_hybrid) return kind;
  kind.has_attention_out_bias = false;
  kind.n_heads = kind.n_kv_heads = kind.head_dim = kind.window = kind.chunk = 0;
  kind.attention_scale = kind.softcap = 0.0f;
  kind.rope = kNoRope;
  kind.has_qk_norm = kind.qk_norm_spans_heads = kind.has_qkv_bias = false;
  kind.has_attention_gate = false;
  return kind;
}

}  // namespace arn::convert
