#include "converter/families.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "converter/config_keys.h"
#include "converter/error.h"
#include "converter/hf/config_reader.h"
#include "converter/hf/json_file.h"
#include "converter/rope.h"

namespace arn::convert {
namespace {

enum class Bias : uint8_t {
  kNever,
  kAlways,
  kByKey,  // attention_bias for attention, mlp_bias for the feed-forward part; false when absent
};

enum class WindowRule : uint8_t {
  kNone,        // every layer attends to everything
  kEveryLayer,  // sliding_window (4096 when absent, off when null) holds for every layer
  kFromLayer,   // use_sliding_window: layers from max_window_layers on, unless layer_types says
};

struct Family {
  const char* architecture;
  const char* model_type;  // tells the family when config.json has no architectures
  const TensorNames* names;
  Bias qkv_bias;
  Bias attention_out_bias;
  Bias mlp_bias;
  bool has_qk_norm;
  WindowRule window;
  uint32_t default_head_dim;  // 0: hidden_size / num_attention_heads
  uint32_t default_kv_heads;  // 0: num_attention_heads
  uint32_t default_max_context;
};

constexpr TensorNames kDecoderNames = {
    .embedding = "model.embed_tokens",
    .final_norm = "model.norm",
    .head = "lm_head",
    .attention_norm = "model.layers.{}.input_layernorm",
    .q = "model.layers.{}.self_attn.q_proj",
    .k = "model.layers.{}.self_attn.k_proj",
    .v = "model.layers.{}.self_attn.v_proj",
    .q_norm = "model.layers.{}.self_attn.q_norm",
    .k_norm = "model.layers.{}.self_attn.k_norm",
    .attention_out = "model.layers.{}.self_attn.o_proj",
    .ffn_norm = "model.layers.{}.post_attention_layernorm",
    .gate = "model.layers.{}.mlp.gate_proj",
    .up = "model.layers.{}.mlp.up_proj",
    .down = "model.layers.{}.mlp.down_proj",
};

// Sources: transformers/models/<model_type>/configuration_*.py for the defaults, modeling_*.py for
// the rest.
constexpr Family kFamilies[] = {
    {"LlamaForCausalLM", "llama", &kDecoderNames, Bias::kByKey, Bias::kByKey, Bias::kByKey,
     /*has_qk_norm=*/false, WindowRule::kNone, /*default_head_dim=*/0, /*default_kv_heads=*/0,
     /*default_max_context=*/2048},
    {"MistralForCausalLM", "mistral", &kDecoderNames, Bias::kNever, Bias::kNever, Bias::kNever,
     /*has_qk_norm=*/false, WindowRule::kEveryLayer, /*default_head_dim=*/0,
     /*default_kv_heads=*/8, /*default_max_context=*/131072},
    {"Qwen2ForCausalLM", "qwen2", &kDecoderNames, Bias::kAlways, Bias::kNever, Bias::kNever,
     /*has_qk_norm=*/false, WindowRule::kFromLayer, /*default_head_dim=*/0,
     /*default_kv_heads=*/32, /*default_max_context=*/32768},
    {"Qwen3ForCausalLM", "qwen3", &kDecoderNames, Bias::kByKey, Bias::kByKey, Bias::kNever,
     /*has_qk_norm=*/true, WindowRule::kFromLayer, /*default_head_dim=*/128,
     /*default_kv_heads=*/32, /*default_max_context=*/32768},
};

constexpr double kDefaultEpsilon = 1e-6;
constexpr uint32_t kDefaultWindow = 4096;
constexpr uint32_t kDefaultWindowFrom = 28;
constexpr uint32_t kMaxLayers = 4096;  // far above any model; bounds what a damaged config can cost

// The row of a config, null when there is none. *wanted: the name that was looked for.
const Family* FamilyOf(ConfigReader* config, std::string* wanted) {
  const nlohmann::json* architectures = config->Find("architectures");
  const std::string model_type = config->String("model_type").value_or("");
  *wanted = model_type.empty() ? "(none given)" : "model_type " + model_type;
  if (architectures != nullptr) {
    if (!architectures->is_array() || architectures->empty() || !(*architectures)[0].is_string()) {
      config->Wrong("architectures", "a list of names");
    }
    *wanted = (*architectures)[0].get<std::string>();
  }
  for (const Family& family : kFamilies) {
    if (architectures != nullptr ? *wanted == family.architecture
                                 : model_type == family.model_type) {
      return &family;
    }
  }
  return nullptr;
}

const Family& FindFamily(ConfigReader* config, const nlohmann::json& json) {
  std::string wanted;
  if (const Family* family = FamilyOf(config, &wanted)) return *family;
  std::vector<std::string> supported;
  for (const Family& family : kFamilies) supported.push_back(family.architecture);
  const std::vector<std::string> unknown = KeysThatNobodyKnows(json);
  Fail("%s: architecture %s is not supported (supported: %s)%s%s", config->label().c_str(),
       wanted.c_str(), JoinNames(supported).c_str(),
       unknown.empty() ? "" : "; its config has fields that no supported architecture knows: ",
       JoinNames(unknown, 20).c_str());
}

bool HasBias(Bias bias, ConfigReader* config, const char* key) {
  switch (bias) {
    case Bias::kNever: return false;
    case Bias::kAlways: return true;
    case Bias::kByKey: return config->Bool(key, false);
  }
  return false;
}

// sliding_window: absent means the default of the configuration class, null means off.
uint32_t SlidingWindow(ConfigReader* config, const nlohmann::json& json) {
  if (!json.contains("sliding_window")) return kDefaultWindow;
  return config->Count("sliding_window").value_or(0);
}

// Window of each layer, 0 for full attention.
std::vector<uint32_t> LayerWindows(const Family& family, ConfigReader* config,
                                   const nlohmann::json& json, uint32_t n_layers) {
  std::vector<uint32_t> windows(n_layers, 0);
  uint32_t window = 0;
  switch (family.window) {
    case WindowRule::kNone: break;
    case WindowRule::kEveryLayer:
      window = SlidingWindow(config, json);
      std::fill(windows.begin(), windows.end(), window);
      break;
    case WindowRule::kFromLayer: {
      const bool is_used = config->Bool("use_sliding_window", false);
      // Read either way: without use_sliding_window its value is written, and means nothing.
      window = SlidingWindow(config, json);
      if (!is_used) window = 0;
      const int64_t first = config->Int("max_window_layers").value_or(kDefaultWindowFrom);
      for (uint32_t i = 0; i < n_layers; ++i) windows[i] = i >= first ? window : 0;
      break;
    }
  }

  const nlohmann::json* types = config->Find("layer_types");
  if (types == nullptr) return windows;
  if (!types->is_array() || types->size() != n_layers) {
    config->Wrong("layer_types", Format("a list of %u entries", n_layers).c_str());
  }
  for (uint32_t i = 0; i < n_layers; ++i) {
    const nlohmann::json& type = (*types)[i];
    const bool slides = type == "sliding_attention";
    if (!slides && type != "full_attention") {
      Fail("%s: layer_types[%u]: expected full_attention or sliding_attention, found %s",
           config->label().c_str(), i, Shown(type).c_str());
    }
    if (slides && window == 0) {
      Fail("%s: layer_types[%u] is sliding_attention, but no sliding window is in use",
           config->label().c_str(), i);
    }
    const uint32_t wanted = slides ? window : 0;
    if (family.window != WindowRule::kFromLayer && wanted != windows[i]) {
      Fail("%s: layer_types[%u] is %s, which %s does not have", config->label().c_str(), i,
           Shown(type).c_str(), family.architecture);
    }
    windows[i] = wanted;
  }
  return windows;
}

uint32_t ReadLayerCount(ConfigReader* config) {
  const uint32_t n_layers = config->RequiredCount("num_hidden_layers");
  if (n_layers > kMaxLayers) config->Wrong("num_hidden_layers", "at most 4096");
  return n_layers;
}

// n_heads, n_kv_heads and head_dim; the rest stays as it is.
LayerKindSpec ReadHeads(const Family& family, ConfigReader* config, uint32_t hidden) {
  LayerKindSpec kind;
  kind.n_heads = config->RequiredCount("num_attention_heads");
  kind.n_kv_heads =
      config->Count("num_key_value_heads")
          .value_or(family.default_kv_heads != 0 ? family.default_kv_heads : kind.n_heads);
  if (kind.n_heads % kind.n_kv_heads != 0) {
    Fail("%s: num_attention_heads %u is not a multiple of num_key_value_heads %u",
         config->label().c_str(), kind.n_heads, kind.n_kv_heads);
  }
  std::optional<uint32_t> head_dim = config->Count("head_dim");
  if (!head_dim && family.default_head_dim != 0) head_dim = family.default_head_dim;
  if (!head_dim && hidden % kind.n_heads != 0) {
    Fail("%s: head_dim is absent, and hidden_size %u is not a multiple of num_attention_heads %u",
         config->label().c_str(), hidden, kind.n_heads);
  }
  kind.head_dim = head_dim.value_or(hidden / kind.n_heads);
  // Bounds that keep heads * head_dim far from overflow; real models stay far below.
  if (kind.n_heads > 65536 || kind.head_dim > 65536) {
    Fail("%s: %u heads of %u elements are too many", config->label().c_str(), kind.n_heads,
         kind.head_dim);
  }
  return kind;
}

LayerKindSpec ReadLayerKind(const Family& family, ConfigReader* config, uint32_t hidden) {
  LayerKindSpec kind = ReadHeads(family, config, hidden);
  kind.attention_scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(kind.head_dim)));
  kind.ffn_dim = config->RequiredCount("intermediate_size");
  const double epsilon = config->Number("rms_norm_eps").value_or(kDefaultEpsilon);
  if (epsilon < 0) config->Wrong("rms_norm_eps", "a number of at least 0");
  kind.norm_epsilon = static_cast<float>(epsilon);
  kind.has_qk_norm = family.has_qk_norm;
  kind.has_qkv_bias = HasBias(family.qkv_bias, config, "attention_bias");
  kind.has_attention_out_bias = HasBias(family.attention_out_bias, config, "attention_bias");
  kind.has_mlp_bias = HasBias(family.mlp_bias, config, "mlp_bias");
  return kind;
}

}  // namespace

DecoderSpec ReadDecoderSpec(const nlohmann::json& json, const std::string& label,
                            std::vector<std::string>* warnings) {
  ConfigReader config(json, label);
  const Family& family = FindFamily(&config, json);

  DecoderSpec spec;
  spec.architecture = family.architecture;
  spec.names = family.names;
  spec.hidden = config.RequiredCount("hidden_size");
  spec.vocab = config.RequiredCount("vocab_size");
  spec.max_context = config.Count("max_position_embeddings").value_or(family.default_max_context);
  spec.tied = config.Bool("tie_word_embeddings", false);
  const uint32_t n_layers = ReadLayerCount(&config);
  const std::string activation = config.String("hidden_act").value_or("silu");
  if (activation != "silu" && activation != "swish") config.Wrong("hidden_act", "silu");

  LayerKindSpec kind = ReadLayerKind(family, &config, spec.hidden);
  spec.final_norm_epsilon = kind.norm_epsilon;
  spec.ropes.push_back(ReadRope(&config, kind.head_dim, spec.max_context, warnings));
  kind.rope = 0;
  for (const uint32_t window : LayerWindows(family, &config, json, n_layers)) {
    kind.window = window;
    const auto at = std::find(spec.kinds.begin(), spec.kinds.end(), kind);
    spec.layer_kinds.push_back(static_cast<uint32_t>(at - spec.kinds.begin()));
    if (at == spec.kinds.end()) spec.kinds.push_back(kind);
  }

  CheckUnreadConfigKeys(&config, json, family.architecture, warnings);
  return spec;
}

std::optional<std::vector<LayerKindSpec>> ReadLayerHeads(const nlohmann::json& json,
                                                         const std::string& label) {
  ConfigReader config(json, label);
  std::string wanted;
  const Family* family = FamilyOf(&config, &wanted);
  if (family == nullptr) return std::nullopt;
  const uint32_t n_layers = ReadLayerCount(&config);
  LayerKindSpec kind = ReadHeads(*family, &config, config.RequiredCount("hidden_size"));
  std::vector<LayerKindSpec> layers;
  for (const uint32_t window : LayerWindows(*family, &config, json, n_layers)) {
    kind.window = window;
    layers.push_back(kind);
  }
  return layers;
}

}  // namespace arn::convert
