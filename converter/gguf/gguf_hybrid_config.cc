#include "converter/gguf/gguf_hybrid_config.h"

#include <algorithm>
#include <cmath>

#include "converter/base/error.h"
#include "converter/gguf/gguf_keys.h"
#include "nlohmann/json.hpp"

namespace arn::convert {
namespace {

class HybridConfigMaker {
 public:
  HybridConfigMaker(const GgufArchitecture& row, const Family& family, const GgufFacts& facts,
                    ConfigReader* metadata)
      : row_(row), family_(family), facts_(facts), keys_(row.name, metadata) {}

  nlohmann::json Make() {
    config_["architectures"] = {row_.architecture};
    AddSizes();
    if (family_.has_attention()) AddHeads();
    if (family_.mixer == MixerRule::kConvByLayer) AddShortConvolutions();
    if (family_.linear != nullptr) AddLinearAttention();
    if (family_.scan != nullptr) AddScan();
    AddBiases();
    AddFactors();
    if (family_.has_shared_kv) AddPerLayerEmbeddings();
    if (family_.has_streams) AddStreams();
    if (family_.window == WindowRule::kPattern) AddWindows();
    AddRope();
    AddExperts();
    return std::move(config_);
  }

 private:
  bool HasTensor(const std::string& name) const { return facts_.tensors.count(name) != 0; }
  bool HasInLayer(uint32_t layer, const char* name) const {
    return HasTensor("blk." + std::to_string(layer) + "." + name);
  }
  bool HasInSomeLayer(const char* name) const {
    for (uint32_t i = 0; i < n_layers_; ++i) {
      if (HasInLayer(i, name)) return true;
    }
    return false;
  }

  void AddSizes() {
    const ConfigKeys& keys = family_.keys;
    hidden_ = keys_.Required("embedding_length");
    // The count includes the layers that predict further tokens.
    const uint32_t n_extra = keys_.Count("nextn_predict_layers").value_or(0);
    n_layers_ = keys_.Blocks();
    if (n_extra >= n_layers_) keys_.Fail("nextn_predict_layers", "less than block_count");
    n_layers_ -= n_extra;
    config_[keys.hidden] = hidden_;
    config_[keys.layers] = n_layers_;
    if (n_extra != 0) config_["num_nextn_predict_layers"] = n_extra;
    const uint32_t context = keys_.Required("context_length");
    // Models without attention have no maximum, whatever the key says.
    if (family_.has_attention()) config_[keys.context] = context;
    AddFeedForward();
    config_["vocab_size"] = facts_.vocab;
    config_["tie_word_embeddings"] = !HasTensor("output.weight");
    const char* const kRms = "attention.layer_norm_rms_epsilon";
    std::optional<double> epsilon = keys_.Number(kRms);
    if (!epsilon) epsilon = keys_.Number("attention.layer_norm_epsilon");
    if (!epsilon) keys_.Fail(kRms, "a number");
    config_[keys.epsilon] = *epsilon;
    if (!keys_.Bool("attention.causal", true)) keys_.Fail("attention.causal", "true");
  }

  void AddFeedForward() {
    if (family_.ffn == FfnRule::kNone || family_.keys.ffn == nullptr) {
      return keys_.MarkRead("feed_forward_length");
    }
    const std::vector<uint32_t> widths = keys_.ByLayer("feed_forward_length", n_layers_);
    if (family_.ffn == FfnRule::kByLayer) {
      config_[family_.keys.ffn] = widths;
      return;
    }
    if (family_.has_double_wide_key) return AddDoubleWidths(widths);
    for (const uint32_t width : widths) {
      if (width != 0 && ffn_ != 0 && width != ffn_) {
        keys_.Fail("feed_forward_length", "0 or the same number for each layer");
      }
      if (width != 0) ffn_ = width;
    }
    config_[family_.keys.ffn] = ffn_;
  }

  // Layers that use the keys and values of others may have blocks of twice the width.
  void AddDoubleWidths(const std::vector<uint32_t>& widths) {
    const uint32_t shared = keys_.Count("attention.shared_kv_layers").value_or(0);
    const bool is_double = shared != 0 && widths.back() != widths[0];
    for (uint32_t i = 0; i < n_layers_; ++i) {
      const bool is_wide = is_double && i + shared >= n_layers_;
      if (widths[i] != (is_wide ? 2 : 1) * widths[0]) {
        keys_.Fail("feed_forward_length",
                   "one number, or twice that in the layers that share keys");
      }
    }
    ffn_ = widths[0];
    config_[family_.keys.ffn] = ffn_;
    config_["use_double_wide_mlp"] = is_double;
  }

  // Layers without a window have heads of their own.
  void AddGlobalHeads() {
    config_[family_.keys.heads] = keys_.Required("attention.head_count");
    const std::vector<bool> is_local = LocalLayers();
    const std::vector<uint32_t> kv_heads = keys_.ByLayer("attention.head_count_kv", n_layers_);
    uint32_t heads[2] = {};
    bool k_is_v = false;
    for (uint32_t i = 0; i < n_layers_; ++i) {
      uint32_t& own = heads[is_local[i] ? 0 : 1];
      if (kv_heads[i] == 0 || (own != 0 && own != kv_heads[i])) {
        keys_.Fail("attention.head_count_kv",
                   "the same number for all layers with a window, and "
                   "for all without");
      }
      own = kv_heads[i];
      k_is_v |= !is_local[i] && HasInLayer(i, "attn_k.weight") && !HasInLayer(i, "attn_v.weight");
    }
    config_["num_key_value_heads"] = heads[0] != 0 ? heads[0] : heads[1];
    config_["attention_k_eq_v"] = k_is_v;
    if (heads[1] != 0) config_["num_global_key_value_heads"] = heads[1];
    head_dim_ = keys_.Required("attention.key_length_swa");
    const uint32_t global = keys_.Required("attention.key_length");
    config_[family_.keys.head_dim] = head_dim_;
    config_["global_head_dim"] = global;
    const std::pair<const char*, uint32_t> equal[] = {{"attention.value_length_swa", head_dim_},
                                                      {"attention.value_length", global},
                                                      {"rope.dimension_count_swa", head_dim_},
                                                      {"rope.dimension_count", global}};
    for (const auto& [key, dim] : equal) {
      if (keys_.Count(key).value_or(dim) != dim) keys_.Fail(key, std::to_string(dim).c_str());
    }
  }

  std::vector<bool> LocalLayers() {
    constexpr const char* kPattern = "attention.sliding_window_pattern";
    std::vector<bool> is_local = keys_.Flags(kPattern, n_layers_);
    if (is_local.empty()) keys_.Fail(kPattern, "true or false for each layer");
    return is_local;
  }
  void AddWindows() {
    config_["sliding_window"] = keys_.Required("attention.sliding_window");
    AddTypes("layer_types", "sliding_attention", "full_attention", LocalLayers());
  }

  void AddPerLayerEmbeddings() {
    config_["num_kv_shared_layers"] = keys_.Count("attention.shared_kv_layers").value_or(0);
    config_["hidden_size_per_layer_input"] =
        keys_.Count("embedding_length_per_layer_input").value_or(0);
    // llama.cpp's converter adds rows of zeros to the table of the published models.
    constexpr uint64_t kPublishedVocab = 262400, kPublishedRows = 262144;
    const bool is_longer = family_.pads_per_layer && facts_.vocab == kPublishedVocab;
    config_["vocab_size_per_layer_input"] = is_longer ? kPublishedRows : facts_.vocab;
  }

  void AddStreams() {
    config_["altup_num_inputs"] = keys_.Required("altup.num_inputs");
    config_["altup_active_idx"] = keys_.Count("altup.active_idx").value_or(0);
    config_["altup_correct_scale"] = HasInSomeLayer("altup_correct_scale.weight");
    const auto low = facts_.shapes.find("blk.0.laurel_l.weight");
    if (low == facts_.shapes.end()) {
      Fail("%s: tensor blk.0.laurel_l.weight is missing", keys_.label().c_str());
    }
    config_["laurel_rank"] = low->second[0];
    // The file has quantiles of the normal distribution.
    std::vector<double> sparsity;
    for (const double quantile : keys_.Numbers("activation_sparsity_scale", n_layers_)) {
      const double part = 0.5 * std::erfc(-quantile / std::sqrt(2.0));
      // Published numbers have few digits; the file's are rounded to f32.
      const double rounded = std::round(part * 1e4) / 1e4;
      sparsity.push_back(std::abs(part - rounded) < 1e-6 ? rounded : part);
    }
    config_["activation_sparsity_pattern"] = sparsity;
  }

  void AddHeads() {
    if (family_.has_global_heads) return AddGlobalHeads();
    const uint32_t n_heads = keys_.Required("attention.head_count");
    config_[family_.keys.heads] = n_heads;
    // A 0 means a layer without attention.
    kv_heads_ = keys_.ByLayer("attention.head_count_kv", n_layers_);
    uint32_t heads = 0;
    for (const uint32_t n : kv_heads_) {
      if (n != 0 && heads != 0 && n != heads) {
        keys_.Fail("attention.head_count_kv", "0 or the same number for each layer");
      }
      if (n != 0) heads = n;
    }
    config_["num_key_value_heads"] = heads == 0 ? n_heads : heads;
    head_dim_ = keys_.Count("attention.key_length").value_or(hidden_ / n_heads);
    if (keys_.Count("attention.value_length").value_or(head_dim_) != head_dim_) {
      keys_.Fail("attention.value_length",
                 Format("attention.key_length, which is %u", head_dim_).c_str());
    }
    config_[family_.keys.head_dim] = head_dim_;
  }

  void AddTypes(const char* key, const char* state, const char* attention,
                const std::vector<bool>& has_state) {
    nlohmann::json types = nlohmann::json::array();
    for (const bool has : has_state) types.push_back(has ? state : attention);
    config_[key] = std::move(types);
  }
  std::vector<bool> LayersWithoutKv() const {
    std::vector<bool> without;
    for (const uint32_t n : kv_heads_) without.push_back(n == 0);
    return without;
  }

  void AddShortConvolutions() {
    config_["conv_L_cache"] = keys_.Required("shortconv.l_cache");
    config_["conv_bias"] = HasInSomeLayer("shortconv.conv.bias");
    AddTypes("layer_types", "conv", "full_attention", LayersWithoutKv());
  }

  void AddLinearAttention() {
    const LinearAttentionFamily& linear = *family_.linear;
    const uint32_t heads = keys_.Required("ssm.time_step_rank");
    const uint32_t width = keys_.Required("ssm.inner_size");
    if (width % heads != 0) {
      keys_.Fail("ssm.inner_size", "a multiple of ssm.time_step_rank, the number of heads");
    }
    config_[linear.taps.key] = keys_.Required("ssm.conv_kernel");
    config_[linear.key_dim.key] = keys_.Required("ssm.state_size");
    config_[linear.key_heads.key] = keys_.Required("ssm.group_count");
    config_[linear.heads.key] = heads;
    config_[linear.value_dim.key] = width / heads;
    if (linear.width.key != nullptr) {
      config_[linear.width.key] = width;
    } else if (linear.expand_key != nullptr) {
      // transformers multiplies and truncates: adding 0.5 keeps the exact width.
      config_[linear.expand_key] = (width + 0.5) / hidden_;
    }
    if (linear.conv_bias_key != nullptr) {
      config_[linear.conv_bias_key] = HasInSomeLayer("ssm_conv1d.bias");
    }
    if (linear.in_bias_key != nullptr) config_[linear.in_bias_key] = HasInSomeLayer("ssm_in.bias");
    if (linear.out_bias_key != nullptr) {
      config_[linear.out_bias_key] = HasInSomeLayer("ssm_out.bias");
    }
    AddLinearLayers(linear);
  }

  void AddLinearLayers(const LinearAttentionFamily& linear) {
    if (linear.layers == LinearLayers::kInterval) {
      std::vector<bool> is_linear = keys_.Flags("attention.recurrent_layers", n_layers_);
      const uint32_t interval = keys_.Count("full_attention_interval").value_or(4);
      for (auto i = static_cast<uint32_t>(is_linear.size()); i < n_layers_; ++i) {
        is_linear.push_back((i + 1) % interval != 0);
      }
      AddTypes("layer_types", "linear_attention", "full_attention", is_linear);
    } else if (linear.layers == LinearLayers::kMambaTypes) {
      AddTypes("layer_types", "mamba", "attention", LayersWithoutKv());
    } else if (linear.layers == LinearLayers::kBlocks) {
      AddBlockTypes();
    }
    if (linear.norm == GatedNorm::kByKeys) {
      config_["mamba_rms_norm"] = HasInSomeLayer("ssm_norm.weight");
      config_["mamba_norm_before_gate"] = false;
    }
  }

  // Finds out from the tensors which block a layer is.
  void AddBlockTypes() {
    nlohmann::json types = nlohmann::json::array();
    for (uint32_t i = 0; i < n_layers_; ++i) {
      types.push_back(HasInLayer(i, "ssm_in.weight")         ? "mamba"
                      : HasInLayer(i, "attn_q.weight")       ? "attention"
                      : HasInLayer(i, "ffn_gate_inp.weight") ? "moe"
                                                             : "mlp");
    }
    config_["layers_block_type"] = std::move(types);
  }

  void AddScan() {
    const ScanFamily& scan = *family_.scan;
    config_[scan.taps] = keys_.Required("ssm.conv_kernel");
    config_[scan.states] = keys_.Required("ssm.state_size");
    config_[scan.rank] = keys_.Required("ssm.time_step_rank");
    const uint32_t width = keys_.Required("ssm.inner_size");
    if (width % hidden_ != 0) keys_.Fail("ssm.inner_size", "a multiple of embedding_length");
    config_[scan.expand] = width / hidden_;
    config_[scan.bias] = HasInSomeLayer("ssm_in.bias");
    config_[scan.conv_bias] = HasInSomeLayer("ssm_conv1d.bias");
    std::vector<bool> has_attention = LayersWithoutKv();
    has_attention.flip();
    AddPeriod("attn_layer_period", "attn_layer_offset", "attention.head_count_kv", has_attention);
  }

  // Adds the period and the offset of layers that come at equal distances.
  void AddPeriod(const char* period_key, const char* offset_key, const char* source,
                 const std::vector<bool>& is_one) {
    const auto first = std::find(is_one.begin(), is_one.end(), true);
    const auto second = first == is_one.end() ? first : std::find(first + 1, is_one.end(), true);
    const auto offset = static_cast<uint32_t>(first - is_one.begin());
    const uint32_t period =
        second == is_one.end() ? n_layers_ : static_cast<uint32_t>(second - first);
    for (uint32_t i = 0; i < n_layers_; ++i) {
      if (is_one[i] != (i % period == offset)) keys_.Fail(source, "layers at equal distances");
    }
    config_[period_key] = period;
    config_[offset_key] = offset;
  }

  // Finds out from the tensors which matrices have a bias.
  void AddBiases() {
    if (family_.qkv_bias == Bias::kByKey) {
      config_[family_.bias_key] =
          HasInSomeLayer("attn_q.bias") || HasInSomeLayer("attn_output.bias");
    }
    if (family_.mlp_bias == Bias::kByKey) {
      config_[family_.mlp_bias_key] = HasInSomeLayer("ffn_down.bias");
    }
  }

  void Copy(const char* name, const char* to) {
    if (const std::optional<double> value = keys_.Number(name)) config_[to] = *value;
  }

  void AddFactors() {
    // The file has them in its matrices, also those of the embedding and of the head.
    if (family_.has_block_multipliers && !HasTensor("output.weight")) {
      Fail("%s: tensor output.weight is missing: embedding and head have factors of their own",
           keys_.label().c_str());
    }
    if (family_.has_multipliers) {
      Copy("embedding_scale", "embedding_multiplier");
      Copy("residual_scale", "residual_multiplier");
      Copy("logit_scale", "logits_scaling");
    }
    if (family_.caps_logits) Copy("final_logit_softcapping", "final_logit_softcapping");
    if (family_.scale == ScaleRule::kMultiplier) {
      config_["attention_multiplier"] =
          keys_.Number("attention.scale").value_or(1.0 / std::sqrt(static_cast<double>(head_dim_)));
    }
  }

  void AddRope() {
    if (family_.ropes_by_key) {
      const bool rotates = keys_.Bool("rope.scaling.finetuned", true);
      config_["position_embedding_type"] = rotates ? "rope" : "nope";
    }
    if (family_.rope == RopeRule::kNone) {
      keys_.MarkRead("rope.dimension_count");
      return keys_.MarkRead("rope.freq_base");
    }
    const double theta = keys_.Number("rope.freq_base").value_or(10000.0);
    const double local_theta = keys_.Number("rope.freq_base_swa").value_or(10000.0);
    if (row_.has_rotated_part) {
      config_["rope_parameters"] = {
          {"full_attention",
           {{"rope_type", "proportional"},
            {"rope_theta", theta},
            {"partial_rotary_factor", RotatedPart(config_["global_head_dim"])}}},
          {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", local_theta}}}};
      return;
    }
    if (family_.rope == RopeRule::kByWindow) config_["rope_local_base_freq"] = local_theta;
    const uint32_t rotated = keys_.Count("rope.dimension_count").value_or(head_dim_);
    if (family_.has_partial_rotary && rotated <= head_dim_) {
      // transformers multiplies and truncates: adding 0.5 keeps the exact number.
      config_["partial_rotary_factor"] = rotated == head_dim_ ? 1.0 : (rotated + 0.5) / head_dim_;
    } else if (rotated != head_dim_) {
      keys_.Fail("rope.dimension_count", std::to_string(head_dim_).c_str());
    }
    // The rows and columns of an image, which texts do not have.
    if (family_.has_mrope) keys_.MarkRead("rope.dimension_sections");
    config_["rope_theta"] = theta;
  }

  // Returns the part of a head that rotates: pairs with a factor of 1, before those that a huge
  // factor keeps in place.
  double RotatedPart(uint32_t head_dim) const {
    const std::vector<float>& factors = facts_.rope_factors;
    const auto end =
        std::find_if(factors.begin(), factors.end(), [](float f) { return f != 1.0f; });
    const bool is_part = std::all_of(end, factors.end(), [](float f) { return f >= 1e30f; });
    if (factors.size() != head_dim / 2 || !is_part) {
      Fail("%s: tensor rope_freqs.weight: expected %u factors, ones and then 1e30",
           keys_.label().c_str(), head_dim / 2);
    }
    // transformers multiplies and truncates: adding 0.5 keeps the exact number.
    return (2.0 * static_cast<double>(end - factors.begin()) + 0.5) / head_dim;
  }

  void AddExperts() {
    const uint32_t n_experts = keys_.Count("expert_count").value_or(0);
    const uint32_t shared = keys_.Count("expert_shared_feed_forward_length").value_or(0);
    if (family_.shared_expert == SharedExpert::kWidth && shared != 0) {
      config_[family_.shared_expert_key] = shared;
    }
    if (family_.experts == ExpertRule::kNone) return;
    if (family_.experts == ExpertRule::kIfEnabled) config_["enable_moe_block"] = n_experts != 0;
    config_[family_.experts_key] = n_experts;
    if (n_experts == 0) return keys_.MarkRead("expert_used_count");
    config_[family_.experts_used_key] = keys_.Required("expert_used_count");
    config_[family_.expert_ffn_key] = keys_.Count("expert_feed_forward_length").value_or(ffn_);
    keys_.MarkRead("expert_shared_count");  // the width says all
    AddExpertLayers();
    AddRouting();
  }

  void AddExpertLayers() {
    std::vector<bool> has_experts;
    std::vector<uint32_t> dense;
    for (uint32_t i = 0; i < n_layers_; ++i) {
      has_experts.push_back(HasInLayer(i, "ffn_gate_inp.weight"));
      if (!has_experts.back()) dense.push_back(i);
    }
    if (family_.experts == ExpertRule::kSparseStep) {
      config_["decoder_sparse_step"] = 1;
      config_["mlp_only_layers"] = dense;
    }
    if (family_.experts == ExpertRule::kPeriod && dense.size() != n_layers_) {
      AddPeriod("expert_layer_period", "expert_layer_offset", "expert_count", has_experts);
    }
    if (family_.dense_layers_key != nullptr) {
      config_[family_.dense_layers_key] = keys_.Count("leading_dense_block_count").value_or(0);
    }
  }

  void AddRouting() {
    const char* const norm_key = family_.norm_topk_prob_key;
    const bool never_norms = norm_key != nullptr && *norm_key == '\0';
    const bool norms = keys_.Bool("expert_weights_norm", !never_norms);
    if (never_norms) {
      if (norms) keys_.Fail("expert_weights_norm", "false");
    } else if (norm_key != nullptr) {
      config_[norm_key] = norms;
    } else if (!norms) {
      keys_.Fail("expert_weights_norm", "true");
    }
    const bool is_softmax = family_.layer.route_score == RouteScore::kSoftmax;
    const uint32_t usual = is_softmax ? 1 : 2;
    if (keys_.Count("expert_gating_func").value_or(usual) != usual) {
      keys_.Fail("expert_gating_func", is_softmax ? "1 (softmax)" : "2 (sigmoid)");
    }
    const double scale = keys_.Number("expert_weights_scale").value_or(0);
    if (family_.has_routed_factor) {
      config_[family_.routed_factor_key] = scale == 0 ? 1.0 : scale;
    } else if (scale != 0 && scale != 1) {
      keys_.Fail("expert_weights_scale", "1");
    }
    if (family_.correction_key != nullptr) {
      config_[family_.correction_key] = HasInSomeLayer("exp_probs_b.bias");
    }
    if (family_.has_router_groups) {
      config_["n_group"] = keys_.Count("expert_group_count").value_or(1);
      config_["topk_group"] = keys_.Count("expert_group_used_count").value_or(1);
    }
  }

  const GgufArchitecture& row_;
  const Family& family_;
  const GgufFacts& facts_;
  GgufKeys keys_;
  uint32_t hidden_ = 0, n_layers_ = 0, head_dim_ = 0;
  uint32_t ffn_ = 0;  // width of the feed-forward blocks, or of experts without a key of their own
  std::vector<uint32_t> kv_heads_;  // by layer
  nlohmann::json config_ = nlohmann::json::object();
};

}  // namespace

nlohmann::json MakeHybridConfig(const GgufArchitecture& row, const Family& family,
                                const GgufFacts& facts, ConfigReader* metadata) {
  return HybridConfigMaker(row, family, facts, metadata).Make();
}

}  // namespace arn::convert
