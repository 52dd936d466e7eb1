#include "converter/gguf/gguf_config.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "converter/base/error.h"
#include "converter/family/family.h"
#include "converter/gguf/gguf_expert_config.h"
#include "converter/gguf/gguf_hybrid_config.h"
#include "converter/gguf/gguf_keys.h"
#include "converter/gguf/gguf_rope_config.h"
#include "converter/hf/json_file.h"
#include "nlohmann/json.hpp"

namespace arn::convert {
namespace {

// Keys after "ARCHITECTURE." that do not change the computation.
constexpr const char* kHarmlessGgufKeys[] = {
    "vocab_size",
    "tensor_data_layout",
    "rope.scaling.finetuned",
    "attention.layer_norm_epsilon",  // the family decides which of the two is read
    "attention.layer_norm_rms_epsilon",
    "pooling_type",  // ReadGgufPooling() reads these
    "dense_2_feat_in",
    "dense_2_feat_out",
    "dense_3_feat_in",
    "dense_3_feat_out",
    // Facts of heads that score texts: the family has those of heads that are read.
    "classifier.activation",
    "classifier.pooling_type",
    "classifier.output_labels",
};

// Reads one file's keys for its architecture.
class ConfigMaker {
 public:
  ConfigMaker(const GgufArchitecture& row, const Family& family, const GgufFacts& facts,
              ConfigReader* metadata)
      : row_(row), family_(family), facts_(facts), metadata_(metadata), keys_(row.name, metadata) {}

  nlohmann::json Make() {
    if (row_.is_hybrid) {
      config_ = MakeHybridConfig(row_, family_, facts_, metadata_);
      RefuseUnread();
      return std::move(config_);
    }
    config_["architectures"] = {row_.architecture};
    AddSizes();
    AddUnusedMixers();
    AddEncoder();
    AddMixers();
    AddBiases();
    AddFactors();
    AddWindow();
    AddLatent();
    AddRopeConfig(row_, family_, facts_, head_dim_, metadata_, &config_);
    AddExpertConfig(row_, family_, facts_, n_layers_, metadata_, &config_);
    RefuseUnread();
    return std::move(config_);
  }

 private:
  bool HasTensor(const char* name) const { return facts_.tensors.count(name) != 0; }

  void Copy(const char* name, const char* to) {
    if (const std::optional<double> value = keys_.Number(name)) config_[to] = *value;
  }

  void AddSizes() {
    const ConfigKeys& keys = family_.keys;
    hidden_ = keys_.Required("embedding_length");
    n_layers_ = keys_.Blocks();
    AddNextLayers();
    config_[keys.hidden] = hidden_;
    config_[keys.layers] = n_layers_;
    // Models without position embeddings have no maximum context, whatever the key says.
    const uint32_t context = keys_.Required("context_length");
    if (family_.mixer != MixerRule::kScan && family_.encoder == nullptr) {
      config_[keys.context] = context;
    }
    if (family_.ffn != FfnRule::kNone) AddFfn();
    if (family_.mixer != MixerRule::kScan) AddHeads();
    config_["vocab_size"] = facts_.vocab;
    config_["tie_word_embeddings"] = !HasTensor("output.weight");
    AddEpsilon();
    AddDirection();
  }

  // Decoders see what is before a token, encoders all.
  void AddDirection() {
    constexpr const char* kCausal = "attention.causal";
    const bool is_encoder = family_.is_bidirectional || family_.bidirectional_key != nullptr;
    if (keys_.Bool(kCausal, !is_encoder) == is_encoder) {
      keys_.Fail(kCausal, is_encoder ? "false" : "true");
    }
    if (const char* key = family_.bidirectional_key) config_[key] = true;
    if (family_.default_token_types == 0) return;
    const auto types = facts_.shapes.find("token_types.weight");
    config_["type_vocab_size"] = types == facts_.shapes.end() ? 1 : types->second[0];
  }

  // Layers behind the last, of a multi-token prediction head, count as blocks.
  void AddNextLayers() {
    const uint32_t n = keys_.Count("nextn_predict_layers").value_or(0);
    if (n >= n_layers_) keys_.Fail("nextn_predict_layers", "fewer than block_count");
    if (n != 0) config_["num_nextn_predict_layers"] = n;
    n_layers_ -= n;
  }

  void AddFfn() {
    const uint32_t width = keys_.Required("feed_forward_length");
    if (family_.keys.ffn != nullptr) {
      config_[family_.keys.ffn] = width;
    } else if (width != family_.default_ffn_factor * hidden_) {
      keys_.Fail("feed_forward_length",
                 std::to_string(family_.default_ffn_factor * hidden_).c_str());
    }
  }

  // Files of some families with LayerNorm store its epsilon under the key of RMSNorm.
  void AddEpsilon() {
    const bool is_layer = family_.layer.norm == NormKind::kLayer;
    const char* epsilon =
        is_layer ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon";
    std::optional<double> value = keys_.Number(epsilon);
    if (const char* key = family_.rms_epsilon_key) {
      const double rms = keys_.Number("attention.layer_norm_rms_epsilon").value_or(0);
      if (rms > 0) config_[key] = rms;
    }
    if (!value && is_layer) value = keys_.Number("attention.layer_norm_rms_epsilon");
    if (!value) keys_.Fail(epsilon, "a number");
    if (family_.keys.epsilon != nullptr) {
      config_[family_.keys.epsilon] = *value;
    } else if (static_cast<float>(*value) != static_cast<float>(family_.default_epsilon)) {
      keys_.Fail(epsilon, Format("%g", family_.default_epsilon).c_str());
    }
  }

  void AddKvHeads() {
    const uint32_t kv_heads = KvHeads();
    switch (family_.kv_heads) {
      case KvHeadRule::kGiven: config_["num_key_value_heads"] = kv_heads; return;
      case KvHeadRule::kMultiQuery:
        if (kv_heads != 1) keys_.Fail("attention.head_count_kv", "1");
        return;
      case KvHeadRule::kMultiQueryOrGrouped:
        config_["new_decoder_architecture"] = HasTensor("blk.0.attn_norm_2.weight");
        config_["multi_query"] = kv_heads == 1;
        config_["num_kv_heads"] = kv_heads;
        return;
      case KvHeadRule::kAsHeads:
      case KvHeadRule::kMustBeHeads:
        if (kv_heads == n_heads_) return;
        keys_.Fail("attention.head_count_kv", "attention.head_count");
    }
  }

  void AddHeads() {
    constexpr const char* kHeads = "attention.head_count";
    if (const char* key = family_.layer_heads_key) {
      const std::vector<uint32_t> heads = keys_.ByLayer(kHeads, n_layers_);
      n_heads_ = heads[0];
      if (n_heads_ == 0) keys_.Fail(kHeads, "numbers above 0");
      config_[key] = heads;
    } else {
      n_heads_ = keys_.Required(kHeads);
    }
    config_[family_.keys.heads] = n_heads_;
    if (family_.latent != nullptr) {
      config_["num_key_value_heads"] = n_heads_;
      return;
    }
    AddKvHeads();
    head_dim_ = keys_.Count("attention.key_length").value_or(hidden_ / n_heads_);
    const uint32_t value_dim = keys_.Count("attention.value_length").value_or(head_dim_);
    if (value_dim != head_dim_) {
      keys_.Fail("attention.value_length",
                 ("attention.key_length, which is " + std::to_string(head_dim_)).c_str());
    }
    if (family_.keys.head_dim != nullptr) {
      config_[family_.keys.head_dim] = head_dim_;
    } else if (uint64_t{head_dim_} * n_heads_ != hidden_) {
      keys_.Fail("attention.key_length", "embedding_length / attention.head_count");
    }
  }

  // Files describe latent attention as that of one head: the latent, then the rotated part. Those
  // with keys and values in one matrix describe the heads that it makes.
  void AddLatent() {
    if (family_.latent == nullptr) return;
    const bool is_whole = row_.names->latent_up != nullptr;
    const char* key_length = is_whole ? "attention.key_length" : "attention.key_length_mla";
    const uint32_t rank = keys_.Required("attention.kv_lora_rank");
    const uint32_t rotated = keys_.Required("rope.dimension_count");
    const uint32_t key = keys_.Required(key_length);
    const auto require = [&](const char* name, uint32_t wanted) {
      if (keys_.Required(name) != wanted) keys_.Fail(name, std::to_string(wanted).c_str());
    };
    require("attention.head_count_kv", is_whole ? n_heads_ : 1);
    if (!is_whole) {
      require("attention.key_length", rank + rotated);
      require("attention.value_length", rank);
    }
    if (key <= rotated) keys_.Fail(key_length, "more than rope.dimension_count");
    config_["kv_lora_rank"] = rank;
    const std::optional<uint32_t> query = keys_.Count("attention.q_lora_rank");
    config_["q_lora_rank"] = query ? nlohmann::json(*query) : nlohmann::json();
    config_["qk_rope_head_dim"] = head_dim_ = rotated;
    config_["qk_nope_head_dim"] = key - rotated;
    config_["v_head_dim"] = is_whole
                                ? keys_.Count("attention.value_length").value_or(hidden_ / n_heads_)
                                : keys_.Required("attention.value_length_mla");
  }

  // A 0 in the list of heads per layer means a layer without attention.
  uint32_t KvHeads() {
    constexpr const char* kKey = "attention.head_count_kv";
    const nlohmann::json* value = metadata_->Find(keys_.Key(kKey));
    const bool is_list = value != nullptr && value->is_array();
    if (family_.mixer != MixerRule::kConvByLayer || !is_list) {
      return keys_.Count(kKey).value_or(n_heads_);
    }
    nlohmann::json types = nlohmann::json::array();
    int64_t heads = 0;
    for (const nlohmann::json& layer : *value) {
      const int64_t n = layer.is_number_integer() ? layer.get<int64_t>() : -1;
      if (n < 0 || n > INT32_MAX || (n != 0 && heads != 0 && n != heads)) {
        keys_.Fail(kKey, "0 or the same number for each layer");
      }
      if (n != 0) heads = n;
      types.push_back(n == 0 ? "conv" : "full_attention");
    }
    if (types.size() != n_layers_) keys_.Fail(kKey, "a number for each layer");
    config_["layer_types"] = std::move(types);
    return heads == 0 ? n_heads_ : static_cast<uint32_t>(heads);
  }

  // Adds an encoder of the same sizes, possibly with another layer count.
  void AddEncoder() {
    if (family_.encoder == nullptr) return;
    config_[family_.encoder->keys.layers] = n_layers_;
    config_[family_.keys.layers] = keys_.Count("decoder_block_count").value_or(n_layers_);
    if (family_.has_relative_position_buckets) {
      config_["relative_attention_num_buckets"] =
          keys_.Required("attention.relative_buckets_count");
    }
    if (family_.has_feed_forward_proj) {
      const bool is_gated = HasTensor("enc.blk.0.ffn_gate.weight");
      config_["feed_forward_proj"] = is_gated ? "gated-gelu" : "relu";
    }
  }

  // Granite 4 without Mamba layers: the file has their sizes all the same, and calls the
  // feed-forward block a shared expert.
  void AddUnusedMixers() {
    if (family_.scale != ScaleRule::kMultiplier || !keys_.Has("ssm.conv_kernel")) return;
    for (const char* name : {"ssm.state_size", "ssm.group_count", "ssm.inner_size",
                             "ssm.time_step_rank", "expert_used_count"}) {
      keys_.MarkRead(name);
    }
    config_[family_.keys.ffn] = keys_.Required("expert_shared_feed_forward_length");
  }

  void AddMixers() {
    if (family_.mixer == MixerRule::kConvByLayer) {
      config_["conv_L_cache"] = keys_.Required("shortconv.l_cache");
      config_["block_auto_adjust_ff_dim"] = false;
      config_["conv_bias"] =
          std::any_of(facts_.tensors.begin(), facts_.tensors.end(), [](const std::string& name) {
            return name.find(".shortconv.conv.bias") != std::string::npos;
          });
    }
    if (family_.mixer != MixerRule::kScan) return;
    config_["conv_kernel"] = keys_.Required("ssm.conv_kernel");
    config_["intermediate_size"] = keys_.Required("ssm.inner_size");
    config_["state_size"] = keys_.Required("ssm.state_size");
    config_["time_step_rank"] = keys_.Required("ssm.time_step_rank");
    config_["use_bias"] = HasTensor("blk.0.ssm_in.bias");
    config_["use_conv_bias"] = HasTensor("blk.0.ssm_conv1d.bias");
  }

  // Finds out from the tensors which matrices have a bias.
  void AddBiases() {
    const bool attention = HasTensor("blk.0.attn_q.bias") || HasTensor("blk.0.attn_qkv.bias") ||
                           HasTensor("blk.0.attn_kv_a_mqa.bias") ||
                           HasTensor("blk.0.attn_output.bias");
    if (row_.refuses_qk_biases && HasTensor("blk.0.attn_q.bias")) {
      Fail("%s: tensor blk.0.attn_q.bias: not supported for %s, whose q rows are reordered alone",
           metadata_->label().c_str(), row_.name);
    }
    if (family_.qkv_bias == Bias::kByKey) config_[family_.bias_key] = attention;
    if (const char* key = family_.attention_out_bias_key) {
      config_[family_.bias_key] = HasTensor("blk.0.attn_q.bias");
      config_[key] = HasTensor("blk.0.attn_output.bias");
    }
    if (const char* key = family_.head_bias_key) config_[key] = HasTensor("output.bias");
    if (family_.qk_norm == QkNorm::kEachHeadIfUsed) {
      config_["use_qk_norm"] = HasTensor("blk.0.attn_q_norm.weight");
    }
    if (family_.mlp_bias == Bias::kByKey) {
      config_[family_.mlp_bias_key] = HasTensor("blk.0.ffn_down.bias");
    }
    if (family_.parallel_key != nullptr) {
      config_[family_.parallel_key] = keys_.Bool("use_parallel_residual", true);
    }
  }

  void AddFactors() {
    if (const char* key = family_.keys.activation) {
      const auto name = metadata_->String(keys_.Key("hidden_activation"));
      if (name) config_[key] = *name;
    }
    if (family_.caps_attention) Copy("attn_logit_softcapping", "attn_logit_softcapping");
    if (family_.caps_logits) Copy("final_logit_softcapping", "final_logit_softcapping");
    if (family_.has_multipliers) {
      Copy("embedding_scale", "embedding_multiplier");
      Copy("residual_scale", "residual_multiplier");
      Copy("logit_scale", "logits_scaling");
    }
    if (family_.default_logit_scale != 0) Copy("logit_scale", "logit_scale");
    if (family_.has_depth_factors) {
      // No key says them: takes those of MiniCPM3 4B.
      config_["scale_emb"] = 12;
      config_["scale_depth"] = 1.4;
      config_["dim_model_base"] = 256;
    }
    if (const char* key = family_.clip_key) Copy("attention.clamp_kqv", key);
    if (const char* key = family_.scales_embedding_key) config_[key] = true;
    constexpr const char* kAlibi = "attention.max_alibi_bias";
    if (family_.alibi == Alibi::kNextPower && keys_.Number(kAlibi) != 8.0) {
      keys_.Fail(kAlibi, "8");
    }
    if (family_.scale == ScaleRule::kMultiplier) {
      config_["attention_multiplier"] =
          keys_.Number("attention.scale").value_or(1.0 / std::sqrt(static_cast<double>(head_dim_)));
    }
    if (family_.scale == ScaleRule::kQueryPreScalar) {
      const bool is_largest = n_layers_ == row_.layers_of_largest;
      config_["query_pre_attn_scalar"] = is_largest ? hidden_ / n_heads_ : head_dim_;
    }
  }

  void AddWindow() {
    const bool is_by_layer =
        family_.window == WindowRule::kPattern || family_.window == WindowRule::kNamedLayers;
    if (family_.window != WindowRule::kEveryLayer && !is_by_layer) {
      // Only some models of these families have a window; no known file stores one.
      if (family_.window == WindowRule::kFromLayer) config_["use_sliding_window"] = false;
      if (family_.window == WindowRule::kLaterLayers) config_["sliding_window"] = nullptr;
      return;
    }
    const std::string key = keys_.Key("attention.sliding_window");
    std::optional<int64_t> window = metadata_->Int(key);
    // A file with a window of its own does not get another (ReadGgufArchitecture).
    if (facts_.window && family_.window == WindowRule::kEveryLayer) window = *facts_.window;
    if (window && (*window < 0 || *window > INT32_MAX)) {
      metadata_->FailKey(key, "a number of tokens");
    }
    const bool is_off = !window || *window == 0;
    config_["sliding_window"] = is_off ? nlohmann::json() : nlohmann::json(*window);
    if (!is_by_layer) return;
    const std::vector<bool> windowed = WindowedLayers(is_off);
    nlohmann::json types = nlohmann::json::array();
    for (const bool is_local : windowed) {
      types.push_back(is_local ? "sliding_attention" : "full_attention");
    }
    config_["layer_types"] = types;
    if (family_.prefix_pattern_key != nullptr) config_[family_.prefix_pattern_key] = 1;
  }

  // Returns which layers have a window: none if it is off, else as the file says, or in the pattern
  // of llama.cpp.
  std::vector<bool> WindowedLayers(bool is_off) {
    constexpr const char* kKey = "attention.sliding_window_pattern";
    const nlohmann::json* pattern = metadata_->Find(keys_.Key(kKey));
    if (is_off) return std::vector<bool>(n_layers_, false);
    if (pattern != nullptr && pattern->is_array()) return keys_.Flags(kKey, n_layers_);
    uint32_t every = family_.default_pattern, phase = family_.pattern_phase;
    if (pattern != nullptr) {
      every = metadata_->RequiredCount(keys_.Key(kKey));
    } else if (row_.full_every != 0) {
      every = row_.full_every;
      phase = 0;
    }
    if (every == 0) keys_.Fail(kKey, "true or false for each layer");
    std::vector<bool> windowed;
    for (uint32_t i = 0; i < n_layers_; ++i) windowed.push_back((i + phase) % every != 0);
    return windowed;
  }

  void RefuseUnread() {
    if (row_.encoder_names != nullptr) {
      // decoder_start_token_id is read with the generation defaults.
      keys_.MarkRead("decoder_start_token_id");
    }
    for (const char* name : kHarmlessGgufKeys) keys_.MarkRead(name);
    const std::string prefix = keys_.Key("");
    for (const std::string& key : metadata_->Unread()) {
      if (key.compare(0, prefix.size(), prefix) != 0) continue;
      const nlohmann::json& value = *metadata_->Find(key);  // GGUF has no null
      const bool says_nothing =
          value == false || value == 0 || value == "" || (value.is_array() && value.empty());
      if (says_nothing) continue;
      Fail("%s: %s is %s, which is not supported", metadata_->label().c_str(), key.c_str(),
           Shown(value).c_str());
    }
  }

  const GgufArchitecture& row_;
  const Family& family_;
  const GgufFacts& facts_;
  ConfigReader* metadata_;
  GgufKeys keys_;
  uint32_t hidden_ = 0, n_layers_ = 0, n_heads_ = 0, head_dim_ = 0;
  nlohmann::json config_ = nlohmann::json::object();
};

const Family& FamilyOf(const GgufArchitecture& row) {
  for (const Family& family : Families()) {
    if (std::string_view(row.architecture) == family.architecture) return family;
  }
  Fail("internal error: no family %s", row.architecture);
}

// Takes a copy of the reader: keys that only choose the row do not count as read.
GgufTraits TraitsOf(const std::string& name, const GgufFacts& facts, ConfigReader metadata) {
  const auto has_tensor = [&](const char* part) {
    return std::any_of(facts.tensors.begin(), facts.tensors.end(), [&](const std::string& tensor) {
      return tensor.find(part) != std::string::npos;
    });
  };
  GgufTraits traits;
  traits.has_experts = metadata.Int(name + ".expert_count").value_or(0) > 0;
  traits.has_window = facts.window.value_or(0) > 0;
  traits.stores_window = metadata.Has(name + ".attention.sliding_window");
  traits.corrects_router = has_tensor(".exp_probs_b.bias");
  traits.has_shared_expert = has_tensor("_shexp.weight");
  traits.fuses_qkv = has_tensor(".attn_qkv.weight");
  traits.has_token_types = has_tensor("token_types.weight");
  traits.has_temperature = metadata.Has(name + ".attention.temperature_scale");
  traits.layers = metadata.Int(name + ".block_count").value_or(0) -
                  metadata.Int(name + ".nextn_predict_layers").value_or(0);
  return traits;
}

}  // namespace

const GgufArchitecture& ReadGgufArchitecture(const GgufFacts& facts, ConfigReader* metadata) {
  const std::string name = metadata->String("general.architecture").value_or("(none given)");
  const bool has_experts = metadata->Int(name + ".expert_count").value_or(0) > 0;
  const bool has_window = facts.window.value_or(0) > 0;
  const GgufArchitecture* row = FindGgufArchitecture(name, TraitsOf(name, facts, *metadata));
  if (row != nullptr && facts.window) {
    const bool may_have = FamilyOf(*row).window == WindowRule::kEveryLayer;
    const std::string key = name + ".attention.sliding_window";
    if (metadata->Has(key)) {
      Fail("%s: --window %u: the file has its own: %s is %s", metadata->label().c_str(),
           *facts.window, key.c_str(), Shown(*metadata->Find(key)).c_str());
    }
    if (has_window && !may_have) {
      Fail("%s: --window %u: files of %s have no window, or say which layers have one",
           metadata->label().c_str(), *facts.window, name.c_str());
    }
  }
  if (row != nullptr && has_experts == (row->names->router != nullptr)) return *row;
  if (row != nullptr) {
    metadata->FailKey(name + ".expert_count",
                      has_experts ? "none (experts are not supported for this architecture)"
                                  : "a number of experts");
  }
  std::set<std::string> supported;
  for (const GgufArchitecture& known : GgufArchitectures()) supported.insert(known.name);
  Fail("%s: general.architecture %s is not supported (supported: %s)", metadata->label().c_str(),
       name.c_str(), JoinNames(supported, supported.size()).c_str());
}

std::string UnsaidOf(const GgufArchitecture& row, const GgufFacts& facts, ConfigReader* metadata) {
  if (row.unsaid.assumption == nullptr || facts.window) return "";
  const std::string name = row.name;
  const int64_t layers = metadata->Int(name + ".block_count").value_or(0);
  const int64_t hidden = metadata->Int(name + ".embedding_length").value_or(0);
  for (const GgufSize& size : row.unsaid.published) {
    const bool has_vocab = size.vocab == 0 || size.vocab == facts.vocab;
    if (has_vocab && layers == size.layers && hidden == size.hidden) return "";
  }
  // Needs no assumption if the file gives a window, or has rope factors, which windowed families
  // lack.
  const bool is_of_window = FamilyOf(row).window == WindowRule::kEveryLayer;
  if (is_of_window && metadata->Has(name + ".attention.sliding_window")) return "";
  if (FamilyOf(row).window == WindowRule::kNone && facts.has_rope_factors) return "";
  return Format("%s: %s files do not store all settings: converted %s", metadata->label().c_str(),
                row.name, row.unsaid.assumption);
}

nlohmann::json MakeConfig(const GgufArchitecture& row, const GgufFacts& facts,
                          ConfigReader* metadata) {
  return ConfigMaker(row, FamilyOf(row), facts, metadata).Make();
}

}  // namespace arn::convert
