#include "converter/family/families.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "converter/base/error.h"
#include "converter/family/alibi.h"
#include "converter/family/config_keys.h"
#include "converter/family/experts.h"
#include "converter/family/factors.h"
#include "converter/family/family.h"
#include "converter/family/latent.h"
#include "converter/family/layer_windows.h"
#include "converter/family/linear_mixers.h"
#include "converter/family/mixers.h"
#include "converter/family/rope.h"
#include "converter/family/score_head.h"
#include "converter/family/shared_kv.h"
#include "converter/family/sparse_context.h"
#include "converter/family/streams.h"
#include "converter/hf/config_reader.h"
#include "converter/hf/json_file.h"
#include "nlohmann/json.hpp"

namespace arn::convert {
namespace {

// Reads a config of this family, flattened.
DecoderSpec ReadSpec(const Family& family, const nlohmann::json& json, const std::string& label,
                     std::vector<std::string>* warnings,
                     const std::vector<std::string>& ignored_keys, const RopeScaling* scaling);

constexpr uint32_t kMaxLayers = 4096;  // far above any model; bounds the cost of a damaged config

// Returns the table row of a config, or null. *wanted: the name looked up.
const Family* FamilyOf(ConfigReader* config, std::string* wanted) {
  const nlohmann::json* architectures = config->Find("architectures");
  const std::string model_type = config->String("model_type").value_or("");
  *wanted = model_type.empty() ? "(none given)" : "model_type " + model_type;
  if (architectures != nullptr) {
    if (!architectures->is_array() || architectures->empty() || !(*architectures)[0].is_string()) {
      config->FailKey("architectures", "a list of names");
    }
    *wanted = (*architectures)[0].get<std::string>();
  }
  for (const Family& family : Families()) {
    const bool has_older = family.older_architecture != nullptr;
    if (architectures == nullptr ? model_type == family.model_type
                                 : *wanted == family.architecture ||
                                       (has_older && *wanted == family.older_architecture)) {
      return &family;
    }
  }
  return nullptr;
}

const Family& FindFamily(ConfigReader* config, const nlohmann::json& json) {
  std::string wanted;
  if (const Family* family = FamilyOf(config, &wanted)) return *family;
  std::vector<std::string> supported;
  for (const Family& family : Families()) supported.push_back(family.architecture);
  const std::vector<std::string> unknown = KeysThatNobodyKnows(json);
  Fail("%s: architecture %s is not supported (supported: %s; --list-families lists all)%s%s",
       config->label().c_str(), wanted.c_str(), JoinNames(supported).c_str(),
       unknown.empty() ? "" : "; its config has fields of no supported architecture: ",
       JoinNames(unknown, 20).c_str());
}

bool HasBias(Bias bias, ConfigReader* config, const char* key, bool fallback) {
  switch (bias) {
    case Bias::kNever: return false;
    case Bias::kAlways: return true;
    case Bias::kByKey: return config->Bool(key, fallback);
  }
  return false;
}

uint32_t ReadLayerCount(const Family& family, ConfigReader* config) {
  if (family.linear != nullptr && family.linear->layers == LinearLayers::kBlocks) {
    config->MarkRead(family.keys.layers);  // the list of blocks takes precedence
    const size_t n_blocks = LayersWithFeedForward(config).size();
    if (n_blocks == 0 || n_blocks > kMaxLayers) {
      config->FailKey("layers_block_type", "1 to 4096 layers");
    }
    return static_cast<uint32_t>(n_blocks);
  }
  const char* fallback = family.keys.layers_fallback;
  const std::optional<uint32_t> own =
      fallback == nullptr ? std::nullopt : config->Count(family.keys.layers);
  const uint32_t n_layers =
      own ? *own : config->RequiredCount(fallback == nullptr ? family.keys.layers : fallback);
  if (n_layers > kMaxLayers) config->FailKey(family.keys.layers, "at most 4096");
  return n_layers;
}

// Reads how many layers that predict further tokens lie behind the model's.
uint32_t ReadExtraLayers(ConfigReader* config) {
  constexpr const char* kKey = "num_nextn_predict_layers";
  const int64_t n = config->Int(kKey).value_or(0);
  if (n < 0 || n > kMaxLayers) config->FailKey(kKey, "a number of layers");
  return static_cast<uint32_t>(n);
}

// Returns what the family says of its layers whatever the config.
LayerKindSpec KindOf(const Family& family) {
  LayerKindSpec kind;
  static_cast<LayerKind&>(kind) = family.layer;
  kind.has_k_bias = family.has_k_bias;
  kind.has_v_norm = family.has_v_norm;
  return kind;
}

// A flag that is off if it is null, whatever its default.
bool IsOn(ConfigReader* config, const char* key, bool fallback) {
  return !config->IsNull(key) && config->Bool(key, fallback);
}

uint32_t ReadKvHeads(const Family& family, ConfigReader* config, uint32_t n_heads) {
  switch (family.kv_heads) {
    case KvHeadRule::kAsHeads: return n_heads;
    case KvHeadRule::kMustBeHeads:
      if (config->Count(family.keys.kv_heads).value_or(n_heads) != n_heads) {
        config->FailKey(family.keys.kv_heads, Format("%u, as many as heads", n_heads).c_str());
      }
      return n_heads;
    case KvHeadRule::kGiven: {
      // An explicit null means as many as heads, not the class's default.
      const bool has_default =
          family.default_kv_heads != 0 && !config->IsNull(family.keys.kv_heads);
      return config->Count(family.keys.kv_heads)
          .value_or(has_default ? family.default_kv_heads : n_heads);
    }
    case KvHeadRule::kMultiQueryOrGrouped: {
      const uint32_t given = config->Count("num_kv_heads").value_or(n_heads);
      const bool is_grouped = config->Bool("new_decoder_architecture", false);
      const bool is_multi_query = IsOn(config, "multi_query", true);
      return is_grouped ? given : is_multi_query ? 1 : n_heads;
    }
    case KvHeadRule::kMultiQuery:
      config->MarkRead("num_key_value_heads");  // follows from multi_query
      return IsOn(config, "multi_query", true) ? 1 : n_heads;
  }
  return n_heads;
}

// Sets is_parallel and shares_norm.
void ReadParallel(const Family& family, ConfigReader* config, LayerKindSpec* kind) {
  if (const char* key = family.parallel_key) {
    kind->is_parallel = IsOn(config, key, family.default_parallel);
  }
  kind->shares_norm = kind->is_parallel && family.parallel_norms != ParallelNorms::kTwo;
  if (family.parallel_norms != ParallelNorms::kOneUnlessGrouped) return;
  constexpr const char* kNorms = "num_ln_in_parallel_attn";
  const bool is_grouped = config->Bool("new_decoder_architecture", false);
  if (is_grouped && !kind->is_parallel) config->FailKey(family.parallel_key, "true");
  const uint32_t n_norms = config->Count(kNorms).value_or(is_grouped ? 2 : 1);
  if (n_norms > 2 || (n_norms == 2 && kind->is_parallel && !is_grouped)) {
    config->FailKey(kNorms, is_grouped ? "1 or 2" : "1 (without new_decoder_architecture)");
  }
  kind->shares_norm = kind->is_parallel && n_norms == 1;
}

// Reads n_heads, n_kv_heads and head_dim; the other fields are the family's.
LayerKindSpec ReadHeads(const Family& family, ConfigReader* config, uint32_t hidden) {
  LayerKindSpec kind = KindOf(family);
  kind.n_heads = config->RequiredCount(family.keys.heads);
  kind.n_kv_heads = ReadKvHeads(family, config, kind.n_heads);
  if (kind.n_heads % kind.n_kv_heads != 0) {
    Fail("%s: %s %u is not a multiple of %s %u", config->label().c_str(), family.keys.heads,
         kind.n_heads, family.keys.kv_heads, kind.n_kv_heads);
  }
  std::optional<uint32_t> head_dim;
  const char* dim_key = family.keys.head_dim;
  if (dim_key != nullptr) head_dim = config->Count(dim_key);
  const bool is_null = dim_key != nullptr && config->IsNull(dim_key);
  if (!head_dim && !is_null && family.default_head_dim != 0) head_dim = family.default_head_dim;
  if (family.latent != nullptr) head_dim = 1;  // ReadLatent() has it
  if (!head_dim && hidden % kind.n_heads != 0) {
    Fail("%s: head_dim is absent, and %s %u is not a multiple of %s %u", config->label().c_str(),
         family.keys.hidden, hidden, family.keys.heads, kind.n_heads);
  }
  kind.head_dim = head_dim.value_or(hidden / kind.n_heads);
  // Keeps heads * head_dim far from overflow; real models stay far below.
  if (kind.n_heads > 65536 || kind.head_dim > 65536) {
    Fail("%s: %u heads of %u elements are too many", config->label().c_str(), kind.n_heads,
         kind.head_dim);
  }
  return kind;
}

// feed_forward_proj: an activation, prefixed with "gated-" if there is a gate (transformers'
// T5Config).
bool IsGatedProj(const Family& family, ConfigReader* config) {
  return config->String("feed_forward_proj").value_or(family.activation).rfind("gated-", 0) == 0;
}

std::string FeedForwardActivation(const Family& family, ConfigReader* config) {
  std::string name = config->String("feed_forward_proj").value_or(family.activation);
  if (name == "gated-gelu") return "gelu_new";
  if (IsGatedProj(family, config)) name = name.substr(std::string("gated-").size());
  return name;
}

Activation ReadActivation(const Family& family, ConfigReader* config) {
  std::string name = family.activation;
  if (const char* key = family.keys.activation) name = config->String(key).value_or(name);
  if (family.has_feed_forward_proj) name = FeedForwardActivation(family, config);
  const std::optional<Activation> found = ActivationOf(name);
  const bool lacks_parameters =
      found == Activation::kXielu && family.names->act_parameters[0] == nullptr;
  if (found && !lacks_parameters) return *found;
  config->FailKey(
      family.has_feed_forward_proj ? "feed_forward_proj" : family.keys.activation,
      "silu, gelu, gelu_new, gelu_pytorch_tanh, quick_gelu, relu, relu2, tanh, sigmoid or "
      "mish");
}

float AttentionScale(const Family& family, ConfigReader* config, uint32_t head_dim) {
  double scale = 1.0 / std::sqrt(static_cast<double>(head_dim));
  if (family.scale == ScaleRule::kQueryPreScalar) {
    const double scalar =
        config->Number("query_pre_attn_scalar").value_or(family.default_query_scalar);
    if (scalar <= 0) config->FailKey("query_pre_attn_scalar", "a positive number");
    scale = 1.0 / std::sqrt(scalar);
  }
  if (family.scale == ScaleRule::kSoftmaxScale) {
    scale = config->Number("attn_config.softmax_scale").value_or(scale);
  }
  if (family.scale == ScaleRule::kOne) scale = 1.0;
  if (family.scale == ScaleRule::kMultiplier) {
    scale = config->Number("attention_multiplier").value_or(1.0);
  }
  if (family.scale == ScaleRule::kMultiplierOrHeadDim) {
    scale = config->Number("attention_multiplier").value_or(scale);
  }
  return static_cast<float>(scale);
}

// As transformers' Lfm2MLP: two thirds of the given width, times a factor, rounded up to whole
// blocks.
uint32_t ReadBlockFfnDim(const Family& family, ConfigReader* config) {
  const std::optional<uint32_t> block = config->Count("block_ff_dim");
  const uint64_t given = block ? *block : config->RequiredCount(family.keys.ffn);
  const std::optional<double> factor = config->Number("block_ffn_dim_multiplier");
  const uint64_t unit = config->Count("block_multiple_of").value_or(256);
  if (block) config->MarkRead(family.keys.ffn);
  if (!config->Bool("block_auto_adjust_ff_dim", true)) return static_cast<uint32_t>(given);
  const double scaled = factor.value_or(1.0) * static_cast<double>(2 * given / 3);
  if (!(scaled >= 1 && scaled < 1e9)) {
    config->FailKey("block_ffn_dim_multiplier", "a positive number that gives a width above 0");
  }
  return static_cast<uint32_t>((static_cast<uint64_t>(scaled) + unit - 1) / unit * unit);
}

uint32_t ReadFfnDim(const Family& family, ConfigReader* config, uint32_t hidden) {
  // FfnWidths() has those of layers.
  if (family.ffn == FfnRule::kNone || family.ffn == FfnRule::kByLayer) return 0;
  if (family.ffn == FfnRule::kBlocks) return ReadBlockFfnDim(family, config);
  if (family.keys.ffn == nullptr) return family.default_ffn_factor * hidden;
  if (const char* fallback = family.keys.ffn_fallback) {
    const std::optional<uint32_t> own = config->Count(family.keys.ffn);
    return own ? *own : config->RequiredCount(fallback);
  }
  if (family.default_ffn_factor == 0) return config->RequiredCount(family.keys.ffn);
  return config->Count(family.keys.ffn).value_or(family.default_ffn_factor * hidden);
}

LayerKindSpec ReadLayerKind(const Family& family, ConfigReader* config, const nlohmann::json& json,
                            uint32_t hidden) {
  LayerKindSpec kind = family.has_attention() ? ReadHeads(family, config, hidden) : KindOf(family);
  kind.attention_scale = AttentionScale(family, config, kind.head_dim);
  if (family.caps_attention) {
    kind.softcap =
        ReadSoftcap(json, config, "attn_logit_softcapping", family.default_attention_softcap);
  }
  kind.ffn_dim = ReadFfnDim(family, config, hidden);
  double epsilon = family.default_epsilon;
  if (const char* key = family.keys.epsilon) epsilon = config->Number(key).value_or(epsilon);
  if (epsilon < 0) config->FailKey(family.keys.epsilon, "a number of at least 0");
  if (const char* key = family.rms_epsilon_key) {
    const std::optional<double> own = config->Number(key);
    if (own && *own < 0) config->FailKey(key, "a number of at least 0, or null");
    if (own) kind.norm = NormKind::kRms;
    epsilon = own.value_or(epsilon);
  }
  kind.norm_epsilon = static_cast<float>(epsilon);
  kind.activation = ReadActivation(family, config);
  if (kind.activation_limit != 0) {
    if (kind.activation != Activation::kSilu) config->FailKey(family.keys.activation, "silu");
    kind.activation = Activation::kClampedSwiglu;
  }
  if (const char* key = family.clip_key) {
    const std::optional<double> clip = config->Number(key);
    if (clip && !(*clip > 0)) config->FailKey(key, "a positive number or null");
    kind.qkv_clip = static_cast<float>(clip.value_or(0));
  }
  if (family.has_feed_forward_proj) kind.is_gated = IsGatedProj(family, config);
  kind.has_relative_position_bias =
      family.has_relative_position_buckets || family.alibi != Alibi::kNone;
  ReadParallel(family, config, &kind);
  kind.has_qk_norm = family.qk_norm == QkNorm::kEachHeadIfUsed ? config->Bool("use_qk_norm", false)
                                                               : family.qk_norm != QkNorm::kNone;
  kind.qk_norm_spans_heads = family.qk_norm == QkNorm::kAllHeads;
  kind.has_qkv_bias = HasBias(family.qkv_bias, config, family.bias_key, family.default_bias);
  const char* out_bias_key = family.attention_out_bias_key;
  kind.has_attention_out_bias =
      HasBias(family.attention_out_bias, config, out_bias_key ? out_bias_key : family.bias_key,
              out_bias_key == nullptr && family.default_bias);
  kind.has_mlp_bias = HasBias(family.mlp_bias, config, family.mlp_bias_key,
                              family.default_mlp_bias.value_or(family.default_bias));
  return kind;
}

// Sets the QK norm of layers with RoPE and the query temperature of layers without.
void AdaptToRope(const Family& family, ConfigReader* config, const DecoderSpec& spec,
                 LayerKindSpec* kind) {
  const bool rotates = kind->rope != kNoRope;
  if (rotates && spec.ropes[kind->rope].query_temperature != 0.0f) {
    kind->query_temperature = spec.ropes[kind->rope].query_temperature;
    kind->query_temperature_step = spec.ropes[kind->rope].query_temperature_step;
    kind->query_temperature_shift = 0;
  }
  if (family.qk_norm == QkNorm::kPlainOfRotated) {
    kind->has_qk_norm = config->Bool("use_qk_norm", true) && rotates;
  }
  if (!family.has_query_temperature) return;
  const bool is_tuned = config->Bool("attn_temperature_tuning", true);
  const double temperature = config->Number("attn_scale").value_or(0.1);
  const uint32_t step = config->Count("floor_scale").value_or(8192);
  if (!is_tuned || rotates) return;
  kind->query_temperature = static_cast<float>(temperature);
  kind->query_temperature_step = step;
}

// Reads the relative position buckets, shared by decoder and encoder.
RelativePositionBuckets ReadRelativePositionBuckets(const Family& family, ConfigReader* config) {
  RelativePositionBuckets buckets;
  if (!family.has_relative_position_buckets) return buckets;
  constexpr const char* kBuckets = "relative_attention_num_buckets";
  constexpr const char* kDistance = "relative_attention_max_distance";
  buckets.n_buckets = config->Count(kBuckets).value_or(32);
  buckets.max_distance = config->Count(kDistance).value_or(128);
  // The encoder uses half of the buckets per direction; half of those hold one distance each.
  if (buckets.n_buckets % 4 != 0 || buckets.n_buckets > 65536) {
    config->FailKey(kBuckets, "a multiple of 4");
  }
  if (buckets.max_distance <= buckets.n_buckets / 2 || buckets.max_distance > 65536) {
    config->FailKey(kDistance, "more than half of relative_attention_num_buckets");
  }
  return buckets;
}

// Reads an encoder whose keys are those of a family of its own.
EncoderSpec ReadOwnEncoder(const EncoderFamily& family, ConfigReader* config, DecoderSpec* spec,
                           std::vector<std::string>* warnings,
                           const std::vector<std::string>& ignored_keys) {
  const nlohmann::json* object = config->Find(family.config_key);
  if (object == nullptr || !object->is_object()) config->FailKey(family.config_key, "an object");
  const DecoderSpec own =
      ReadSpec(*family.family, *object, config->label() + ": " + family.config_key, warnings,
               ignored_keys, /*scaling=*/nullptr);
  if (own.vocab != spec->vocab) {
    Fail("%s: %s: vocab_size is %u, the decoder's %u", config->label().c_str(), family.config_key,
         own.vocab, spec->vocab);
  }
  EncoderSpec encoder;
  encoder.names = own.names;
  encoder.kinds = own.kinds;
  encoder.layer_kinds = own.layer_kinds;
  for (LayerKindSpec& kind : encoder.kinds) {
    if (kind.window != 0) ++kind.window;  // counts the token itself
    if (kind.rope == kNoRope) continue;
    const RopeSpec& rope = own.ropes[kind.rope];
    const auto at = std::find(spec->ropes.begin(), spec->ropes.end(), rope);
    kind.rope = static_cast<uint32_t>(at - spec->ropes.begin());
    if (at == spec->ropes.end()) spec->ropes.push_back(rope);
  }
  encoder.max_rows = own.max_context;
  encoder.hidden = own.hidden;
  encoder.embedding_factor = own.embedding_factor;
  encoder.final_norm_epsilon = own.final_norm_epsilon;
  return encoder;
}

// Reads the encoder's spec.
EncoderSpec ReadEncoder(const Family& family, ConfigReader* config, const nlohmann::json& json,
                        const LayerKindSpec& decoder_kind, const DecoderSpec& spec) {
  EncoderSpec encoder;
  Family own = family;
  own.names = family.encoder->names;
  own.keys = family.encoder->keys;
  if (family.encoder->activation != nullptr) own.activation = family.encoder->activation;
  if (family.encoder->is_plain) own.layer.is_gated = false;
  LayerKindSpec kind = ReadLayerKind(own, config, json, spec.hidden);
  kind.rope = kNoRope;
  const bool shares_positions = family.has_relative_position_buckets || family.encoder->rotates;
  if (kind.n_heads != decoder_kind.n_heads && shares_positions) {
    config->FailKey(own.keys.heads, "the decoder's");
  }
  encoder.names = own.names;
  encoder.hidden = spec.hidden;
  encoder.embedding_factor = spec.embedding_factor;
  encoder.final_norm_epsilon = kind.norm_epsilon;
  encoder.kinds = {kind};
  encoder.layer_kinds.assign(ReadLayerCount(own, config), 0);
  encoder.max_rows = family.encoder->default_rows;
  if (family.encoder->rows_key != nullptr) {
    encoder.max_rows = config->Count(family.encoder->rows_key).value_or(encoder.max_rows);
  }
  if (family.encoder->convolutions.empty()) return encoder;
  encoder.takes_samples = family.encoder->feature_key == nullptr;
  encoder.feature_width =
      encoder.takes_samples ? 1 : config->RequiredCount(family.encoder->feature_key);
  for (const Convolution& row : family.encoder->convolutions) {
    // Samples of audio are not rounded: a quiet one between loud ones counts.
    const bool is_exact = encoder.takes_samples && encoder.convolutions.empty();
    encoder.convolutions.push_back({row.name, row.width * spec.hidden, row.taps, row.stride,
                                    row.padding, row.has_bias, is_exact, row.activation, row.norm,
                                    row.norm_epsilon});
  }
  return encoder;
}

// Replaces other names of keys, and moves the keys of a nested object to the outside, as
// "NESTED.KEY".
nlohmann::json Flattened(const nlohmann::json& json, const Family& family) {
  nlohmann::json flat = json;
  const char* inner = family.inner_key;
  if (inner != nullptr && json.contains(inner) && json[inner].is_object()) {
    flat = json[inner];
    const char* encoder = family.encoder == nullptr ? inner : family.encoder->config_key;
    for (const char* key : {"architectures", "model_type", "tie_word_embeddings",
                            "quantization_config", "compression_config", encoder}) {
      flat.erase(key);
      if (json.contains(key)) flat[key] = json[key];
    }
  }
  for (const KeyAlias& row : family.aliases) {
    if (row.alias == nullptr || !flat.contains(row.alias)) continue;
    flat[row.key] = json[row.alias];
    flat.erase(row.alias);
  }
  const char* nested = family.nested_key;
  if (nested == nullptr || !flat.contains(nested) || !flat[nested].is_object()) return flat;
  for (const auto& [key, value] : json[nested].items()) {
    flat[std::string(nested) + "." + key] = value;
  }
  flat.erase(nested);
  return flat;
}

// Returns the index of each layer's rope, kNoRope for none; fills spec->ropes.
std::vector<uint32_t> ReadRopes(const Family& family, ConfigReader* config,
                                const std::vector<uint32_t>& windows, const LayerKindSpec& kind,
                                const GlobalHeads& heads, const RopeScaling* scaling,
                                DecoderSpec* spec, std::vector<std::string>* warnings) {
  const auto n_layers = static_cast<uint32_t>(windows.size());
  std::vector<uint32_t> ropes(n_layers, kNoRope);
  const std::vector<bool> rotates = LayersWithRope(family, config, windows);
  RopeQuery query;
  query.max_context = spec->max_context;
  query.theta = family.default_theta;
  query.has_partial_rotary = family.has_partial_rotary;
  query.partial_rotary = family.default_partial_rotary;
  query.ignores_partial_rotary = family.ignores_partial_rotary;
  query.has_rotary_keys = family.has_rotary_keys;
  query.local_theta = family.default_local_theta;
  query.is_by_type = family.rope == RopeRule::kByType;
  query.is_by_window = query.is_by_type || family.rope == RopeRule::kByWindow;
  query.default_parameters = family.default_rope;
  query.has_alpha = family.has_rope_alpha;
  query.has_query_temperature = family.has_rope_temperature;
  query.has_longrope_only = family.has_longrope_only;
  query.has_mscales = family.has_rope_mscales;
  query.has_mrope = family.has_mrope;
  query.ignores_outer_original = family.ignores_outer_original;
  query.default_original = family.default_original_context;
  query.scaling = scaling;
  if (family.default_rotary_dim != 0) {
    constexpr const char* kDim = "rotary_dim";
    if (config->IsNull(kDim)) config->FailKey(kDim, "a number");
    query.rotary_dim = config->Count(kDim).value_or(family.default_rotary_dim);
    if (query.rotary_dim > kind.head_dim || query.rotary_dim % 2 != 0) {
      config->FailKey(kDim, Format("an even number up to the head size %u", kind.head_dim).c_str());
    }
  }
  const nlohmann::json no_object = nlohmann::json::object();
  ConfigReader no_keys(no_object, config->label());
  ConfigReader* rope_keys = family.default_rotary_dim != 0 ? &no_keys : config;
  for (uint32_t i = 0; i < n_layers; ++i) {
    if (!rotates[i]) continue;
    query.has_window = query.is_by_window && windows[i] != 0;
    query.head_dim = windows[i] == 0 ? heads.head_dim : kind.head_dim;
    if (kind.is_latent()) query.head_dim -= kind.latent_dim;
    if (kind.is_latent() && family.latent->has_whole_heads) {
      query.part_of = query.head_dim + kind.latent_key_dim;
    }
    const RopeSpec rope = ReadRope(rope_keys, query, warnings);
    const auto at = std::find(spec->ropes.begin(), spec->ropes.end(), rope);
    ropes[i] = static_cast<uint32_t>(at - spec->ropes.begin());
    if (at == spec->ropes.end()) spec->ropes.push_back(rope);
  }
  if (scaling == nullptr) return ropes;
  if (spec->ropes.empty()) Fail("%s: --rope: the model has no RoPE", config->label().c_str());
  const double context = std::floor(spec->max_context * scaling->factor);
  if (context > kAnyContext) {
    Fail("%s: --rope: a context of %.0f tokens, at most %u are supported", config->label().c_str(),
         context, kAnyContext);
  }
  spec->max_context = static_cast<uint32_t>(context);
  return ropes;
}

}  // namespace

DecoderSpec ReadDecoderSpec(const nlohmann::json& given, const std::string& label,
                            std::vector<std::string>* warnings,
                            const std::vector<std::string>& ignored_keys,
                            const RopeScaling* scaling) {
  ConfigReader names(given, label);
  const Family& family = FindFamily(&names, given);
  return ReadSpec(family, Flattened(given, family), label, warnings, ignored_keys, scaling);
}

namespace {

DecoderSpec ReadSpec(const Family& family, const nlohmann::json& json, const std::string& label,
                     std::vector<std::string>* warnings,
                     const std::vector<std::string>& ignored_keys, const RopeScaling* scaling) {
  ConfigReader config(json, label);
  config.MarkRead("architectures");
  config.MarkRead("model_type");

  DecoderSpec spec;
  spec.architecture = family.architecture;
  spec.names = family.names;
  spec.qkv_order = family.qkv_order;
  spec.is_transposed = family.is_transposed;
  spec.rotates_neighbours = family.rotates_neighbours;
  spec.rotates_backwards = family.rotates_backwards;
  spec.gate_up_alternate = family.gate_up_alternate;
  spec.up_is_first = family.up_is_first;
  spec.norm_offset = family.norm_offset;
  spec.has_norm_weights = family.has_norm_weights;
  spec.has_norm_biases = family.has_norm_biases;
  spec.has_head_bias = family.has_head_bias;
  spec.position_offset = family.position_offset;
  spec.hidden = config.RequiredCount(family.keys.hidden);
  spec.vocab = config.RequiredCount("vocab_size");
  spec.max_context = config.Count(family.keys.context).value_or(family.default_max_context);
  spec.tied = config.Bool("tie_word_embeddings", family.default_tied);
  if (family.tied_key != nullptr) spec.tied = config.Bool(family.tied_key, spec.tied);
  if (const char* key = family.head_bias_key) {
    spec.has_head_bias = config.Bool(key, family.default_head_bias);
  }
  if (family.names->head_dense != nullptr) ReadHeadDense(family, &config, &spec);
  if (family.is_always_tied) spec.tied = true;
  ReadFactors(family, &config, json, &spec);
  spec.relative_position_buckets = ReadRelativePositionBuckets(family, &config);
  ReadPooled(family, &config, &spec);
  CheckRequiredConfigKeys(&config, family, spec.hidden);
  // "vision": of images, not of text.
  if (family.has_global_heads &&
      config.String("use_bidirectional_attention").value_or("vision") != "vision") {
    config.FailKey("use_bidirectional_attention", "null or \"vision\"");
  }

  const uint32_t n_layers = ReadLayerCount(family, &config);
  spec.n_extra_layers = ReadExtraLayers(&config);
  LayerKindSpec kind = ReadLayerKind(family, &config, json, spec.hidden);
  if (family.latent != nullptr) {
    ReadLatent(family, &config, json, &kind, &spec.rotates_neighbours);
  }
  kind.has_cross_attention = family.encoder != nullptr;
  if (family.encoder != nullptr) {
    config.MarkRead("is_encoder_decoder");
    config.MarkRead("n_positions");  // no effect with relative positions
    spec.encoder = family.encoder->family == nullptr
                       ? ReadEncoder(family, &config, json, kind, spec)
                       : ReadOwnEncoder(*family.encoder, &config, &spec, warnings, ignored_keys);
  }
  spec.alibi_slopes = AlibiSlopes(family.alibi, kind.n_heads);
  spec.final_norm_kind = kind.norm;
  spec.final_norm_epsilon = kind.norm_epsilon;
  const std::vector<uint32_t> windows = LayerWindows(family, &config, json, n_layers);
  const std::vector<uint32_t> chunks = LayerChunks(family, &config, json, n_layers);
  const GlobalHeads global_heads = ReadGlobalHeads(family, &config, kind);
  const std::vector<uint32_t> ropes =
      ReadRopes(family, &config, windows, kind, global_heads, scaling, &spec, warnings);
  if (family.encoder != nullptr && family.encoder->rotates) spec.encoder.kinds[0].rope = ropes[0];
  spec.kv_layers = KvLayers(family, &config, windows);
  ReadPerLayer(family, &config, &spec);
  spec.streams = ReadStreams(family, &config);
  ReadLaurel(family, &config, &kind);
  const std::vector<GateThreshold> thresholds = GateThresholds(family, &config, n_layers);
  const std::vector<uint32_t> ffn_widths = FfnWidths(family, &config, n_layers);
  const std::vector<uint32_t> layer_heads = LayerHeads(family, &config, kind, n_layers);
  const uint32_t shared_ffn_factor = SharedFfnFactor(family, &config);
  const bool lacks_experts = LacksExperts(family, &config);
  std::vector<bool> has_experts = LayersWithExperts(family, &config, n_layers);
  if (lacks_experts) has_experts.assign(n_layers, false);
  const std::vector<LayerKindSpec> mixers = LayerMixers(family, &config, n_layers, spec.hidden);
  const LayerKindSpec dense = kind;
  // Reads the keys of experts only if a layer has experts, where that is not the rule.
  const bool may_be_unused =
      family.experts == ExpertRule::kBlocks || family.experts == ExpertRule::kIfEnabled;
  const bool is_used = !may_be_unused ||
                       std::find(has_experts.begin(), has_experts.end(), true) != has_experts.end();
  const bool has_sparse = family.experts != ExpertRule::kNone && !lacks_experts && is_used;
  const LayerKindSpec sparse = has_sparse ? WithExperts(family, &config, kind) : LayerKindSpec();
  for (uint32_t i = 0; i < n_layers; ++i) {
    kind = has_experts[i] ? sparse : dense;
    kind.n_heads = layer_heads[i];
    if (family.has_last_out_bias) kind.has_attention_out_bias = i + 1 == n_layers;
    kind.window = spec.is_bidirectional && windows[i] != 0 ? windows[i] / 2 + 1 : windows[i];
    kind.chunk = chunks[i];
    kind.rope = ropes[i];
    if (windows[i] == 0) kind = WithHeads(kind, global_heads);
    if (!ffn_widths.empty()) kind.ffn_dim = ffn_widths[i];
    kind.has_gate_threshold = thresholds[i].exists;
    kind.gate_threshold = thresholds[i].deviations;
    if (!spec.kv_layers.empty() && spec.kv_layers[i] != i) {
      (has_experts[i] ? kind.shared_ffn_dim : kind.ffn_dim) *= shared_ffn_factor;
    }
    AdaptToRope(family, &config, spec, &kind);
    kind = WithMixer(kind, mixers[i]);
    // Layers that are one block have nothing beside their mixer.
    const bool is_block =
        family.linear != nullptr && family.linear->layers == LinearLayers::kBlocks;
    if (is_block && kind.mixer != Mixer::kNone) kind.ffn_dim = 0;
    // The key of linear attention's own activation must be silu.
    if (kind.has_state() && is_block) kind.activation = Activation::kSilu;
    const auto at = std::find(spec.kinds.begin(), spec.kinds.end(), kind);
    spec.layer_kinds.push_back(static_cast<uint32_t>(at - spec.kinds.begin()));
    if (at == spec.kinds.end()) spec.kinds.push_back(kind);
  }

  LimitContext(family, &config, &spec, warnings);  // RoPE is computed for the whole context
  CheckUnreadConfigKeys(&config, json, family, ignored_keys, warnings);
  return spec;
}

}  // namespace

std::optional<std::vector<LayerKindSpec>> ReadLayerHeads(const nlohmann::json& given,
                                                         const std::string& label) {
  ConfigReader names(given, label);
  std::string wanted;
  const Family* family = FamilyOf(&names, &wanted);
  if (family == nullptr) return std::nullopt;
  const nlohmann::json json = Flattened(given, *family);
  ConfigReader config(json, label);
  const uint32_t n_layers = ReadLayerCount(*family, &config);
  const uint32_t hidden = config.RequiredCount(family->keys.hidden);
  const std::vector<LayerKindSpec> mixers = LayerMixers(*family, &config, n_layers, hidden);
  LayerKindSpec kind =
      family->has_attention() ? ReadHeads(*family, &config, hidden) : KindOf(*family);
  bool rotates_neighbours = false;
  if (family->latent != nullptr) ReadLatent(*family, &config, json, &kind, &rotates_neighbours);
  const std::vector<uint32_t> windows = LayerWindows(*family, &config, json, n_layers);
  std::vector<LayerKindSpec> layers;
  const std::vector<uint32_t> chunks = LayerChunks(*family, &config, json, n_layers);
  const GlobalHeads global_heads = ReadGlobalHeads(*family, &config, kind);
  const std::vector<uint32_t> kv_layers = KvLayers(*family, &config, windows);
  for (uint32_t i = 0; i < n_layers; ++i) {
    if (!kv_layers.empty() && kv_layers[i] != i) continue;
    LayerKindSpec own = windows[i] == 0 ? WithHeads(kind, global_heads) : kind;
    own.window = windows[i];
    own.chunk = chunks[i];
    layers.push_back(WithMixer(own, mixers[i]));
  }
  return layers;
}

}  // namespace arn::convert
