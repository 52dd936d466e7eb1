// Writes golden cases of decoders with the metadata that llama.cpp's converter writes for most
// families.
#pragma once

#include "tests/unit/converter/gguf/gguf_family_fixture.h"

namespace arn::convert {

class GgufDecoderTest : public GgufFamilyTest {
 protected:
  // Loads a golden case whose file has the keys that llama.cpp's converter writes for most
  // families, and those of `others`.
  GgufWriter LoadAs(const std::string& golden, const std::string& arch, const json& others = {}) {
    Load(golden);
    arch_ = arch;
    GgufWriter writer;
    writer.String("general.architecture", arch);
    constexpr std::pair<const char*, const char*> kCounts[] = {
        {"num_hidden_layers", "block_count"},
        {"n_layer", "block_count"},
        {"max_position_embeddings", "context_length"},
        {"n_positions", "context_length"},
        {"hidden_size", "embedding_length"},
        {"n_embd", "embedding_length"},
        {"intermediate_size", "feed_forward_length"},
        {"num_attention_heads", "attention.head_count"},
        {"n_head", "attention.head_count"},
        {"num_key_value_heads", "attention.head_count_kv"},
        {"head_dim", "attention.key_length"},
        {"head_dim", "attention.value_length"},
        {"sliding_window", "attention.sliding_window"},
        {"num_experts", "expert_count"},
        {"n_routed_experts", "expert_count"},
        {"num_local_experts", "expert_count"},
        {"num_experts_per_tok", "expert_used_count"},
        {"moe_intermediate_size", "expert_feed_forward_length"},
        {"n_shared_experts", "expert_shared_count"},
        {"num_shared_experts", "expert_shared_count"},
        {"first_k_dense_replace", "leading_dense_block_count"},
        {"n_group", "expert_group_count"},
        {"topk_group", "expert_group_used_count"},
        {"num_nextn_predict_layers", "nextn_predict_layers"},
    };
    json counts = others.is_null() ? json::object() : others;
    for (const auto& [key, to] : kCounts) {
      if (!config_.contains(key) || counts.contains(to)) continue;
      if (config_[key].is_number()) counts[to] = config_[key];
    }
    for (const auto& [key, value] : counts.items()) {
      if (value.is_array()) {
        writer.Ints(arch + "." + key, value.get<std::vector<int32_t>>());
      } else {
        writer.Uint(arch + "." + key, value);
      }
    }
    for (const char* key : {"rms_norm_eps", "norm_eps"}) {
      if (config_.contains(key)) {
        writer.Float(arch + ".attention.layer_norm_rms_epsilon", config_[key]);
      }
    }
    for (const char* key : {"layer_norm_eps", "layer_norm_epsilon"}) {
      if (config_.contains(key)) {
        writer.Float(arch + ".attention.layer_norm_epsilon", config_[key]);
      }
    }
    const json rope = config_.value("rope_parameters", json::object());
    const bool has_alpha = rope.contains("alpha");  // changes the stored base
    if (rope.contains("rope_theta") && !has_alpha)
      writer.Float(arch + ".rope.freq_base", rope["rope_theta"]);
    if (config_.contains("routed_scaling_factor")) {
      writer.Float(arch + ".expert_weights_scale", config_["routed_scaling_factor"]);
    }
    if (config_.contains("logit_scale")) {
      writer.Float(arch + ".logit_scale", config_["logit_scale"]);
    }
    if (config_.contains("norm_topk_prob") && config_["norm_topk_prob"] == true) {
      writer.Bool(arch + ".expert_weights_norm", true);
    }
    writer.Uint("tokenizer.ggml.bos_token_id", 1);
    writer.Uint("tokenizer.ggml.eos_token_id", 2);
    writer.Uint("tokenizer.ggml.padding_token_id", 0);
    return writer;
  }
  void ReplaceRope(const json& parameters) { config_["rope_parameters"] = parameters; }

  void AddAll(const Renames& own, GgufWriter* writer) {
    Renames renames = own;
    renames.insert(renames.end(), kUsual.begin(), kUsual.end());
    AddRest(renames, writer);
  }
  // Reorders q and k rows, as for rotating neighbours.
  void PairRows(uint32_t head_dim) {
    for (auto& [name, tensor] : tensors_) {
      const bool rotates =
          name.find("q_proj") != std::string::npos || name.find("k_proj") != std::string::npos;
      if (rotates) tensor = PairsTogether(tensor, head_dim);
    }
  }
  uint32_t BlockCount() const {
    return config_["num_hidden_layers"].get<uint32_t>() +
           config_.value("num_nextn_predict_layers", 0u);
  }
  // Writes each layer's experts, stored one by one under `from`, as stacks. `parts`: the names of
  // gate, up and down.
  void StackExperts(GgufWriter* writer, const char* from = "mlp.experts",
                    const std::vector<const char*>& parts = {"gate_proj", "up_proj", "down_proj"}) {
    for (uint32_t i = 0; i < BlockCount(); ++i) {
      const std::string layer = std::to_string(i);
      for (size_t k = 0; k < 3; ++k) {
        const auto name = [&](int e) {
          return "model.layers." + layer + "." + from + "." + std::to_string(e) + "." + parts[k] +
                 ".weight";
        };
        TinyTensor stack;
        int n = 0;
        for (; tensors_.count(name(n)) != 0; ++n) {
          TinyTensor expert;
          Take(name(n), &expert);
          stack.shape = {uint64_t(n) + 1, expert.shape[0], expert.shape[1]};
          stack.bytes.insert(stack.bytes.end(), expert.bytes.begin(), expert.bytes.end());
        }
        constexpr const char* kNames[] = {"gate", "up", "down"};
        if (n != 0) Put("blk." + layer + ".ffn_" + kNames[k] + "_exps.weight", stack, writer);
      }
    }
  }
  // Writes the halves of the rows, of the last but one dimension, as two tensors.
  void SplitRows(const std::string& from, const std::string& first, const std::string& second,
                 GgufWriter* writer) {
    TinyTensor both;
    Take(from, &both);
    TinyTensor halves[2];
    const size_t dims = both.shape.size(), n = dims == 3 ? both.shape[0] : 1;
    const size_t half = both.bytes.size() / n / 2;
    for (size_t k = 0; k < 2 * n; ++k) {
      const auto at = both.bytes.begin() + static_cast<ptrdiff_t>(k * half);
      halves[k % 2].bytes.insert(halves[k % 2].bytes.end(), at, at + static_cast<ptrdiff_t>(half));
    }
    both.shape[dims - 2] /= 2;
    for (TinyTensor& part : halves) part.shape = both.shape;
    Put(first, halves[0], writer);
    Put(second, halves[1], writer);
  }
  // Reorders the rows of fused projections from those of each kv head to [q; k; v].
  void BlockRows(const std::string& part, uint32_t kv_heads, uint32_t q_per_kv, uint32_t head_dim) {
    for (auto& named : tensors_) {
      if (named.first.find(part) == std::string::npos) continue;
      TinyTensor& tensor = named.second;
      const size_t row = tensor.bytes.size() / tensor.shape[0];
      std::vector<uint8_t> bytes;
      const auto append = [&](size_t first_head, size_t heads) {
        const auto at = tensor.bytes.begin() + static_cast<ptrdiff_t>(first_head * head_dim * row);
        bytes.insert(bytes.end(), at, at + static_cast<ptrdiff_t>(heads * head_dim * row));
      };
      const size_t group = q_per_kv + 2;
      for (size_t g = 0; g < kv_heads; ++g) append(g * group, q_per_kv);
      for (size_t g = 0; g < kv_heads; ++g) append(g * group + q_per_kv, 1);
      for (size_t g = 0; g < kv_heads; ++g) append(g * group + q_per_kv + 1, 1);
      tensor.bytes = bytes;
    }
  }
  // Splits the matrix of latent attention into the keys of each head, transposed, and its values.
  void SplitLatent(GgufWriter* writer) {
    const size_t heads = config_["num_attention_heads"], rank = config_["kv_lora_rank"];
    const size_t key = config_["qk_nope_head_dim"], value = config_["v_head_dim"];
    for (uint32_t i = 0; i < BlockCount(); ++i) {
      const std::string layer = std::to_string(i);
      TinyTensor both;
      Take("model.layers." + layer + ".self_attn.kv_b_proj.weight", &both);
      const std::vector<float> stored = Floats(both);
      std::vector<float> keys, values;
      for (size_t h = 0; h < heads; ++h) {
        const float* rows = stored.data() + h * (key + value) * rank;
        for (size_t r = 0; r < rank; ++r) {
          for (size_t k = 0; k < key; ++k) keys.push_back(rows[k * rank + r]);
        }
        values.insert(values.end(), rows + key * rank, rows + (key + value) * rank);
      }
      Put("blk." + layer + ".attn_k_b.weight",
          {"F32", {heads, rank, key}, test::EncodeFloats(keys, "F32")}, writer);
      Put("blk." + layer + ".attn_v_b.weight",
          {"F32", {heads, value, rank}, test::EncodeFloats(values, "F32")}, writer);
    }
  }
  // Writes the keys of latent attention, of which those of heads are of one head.
  GgufWriter LoadLatent(const std::string& golden, const json& others = json::object()) {
    Load(golden);
    const uint32_t rank = config_["kv_lora_rank"], rotated = config_["qk_rope_head_dim"];
    json keys = {
        {"attention.head_count_kv", 1},
        {"attention.kv_lora_rank", rank},
        {"attention.key_length", rank + rotated},
        {"attention.value_length", rank},
        {"attention.key_length_mla", config_["qk_nope_head_dim"].get<uint32_t>() + rotated},
        {"attention.value_length_mla", config_["v_head_dim"]},
        {"rope.dimension_count", rotated},
        {"block_count", BlockCount()}};
    if (config_["q_lora_rank"].is_number()) keys["attention.q_lora_rank"] = config_["q_lora_rank"];
    keys.update(others);
    return LoadAs(golden, "deepseek2", keys);
  }
  // The file has mscale_all_dim alone, and so mscale must equal it.
  void AddLatentScaling(GgufWriter* writer) {
    config_["rope_parameters"]["mscale"] = config_["rope_parameters"]["mscale_all_dim"] = 0.707;
    writer->String("deepseek2.rope.scaling.type", "yarn");
    writer->Float("deepseek2.rope.scaling.factor", 4.0f);
    writer->Uint("deepseek2.rope.scaling.original_context_length", 64);
    writer->Float("deepseek2.rope.scaling.yarn_log_multiplier", 0.0707f);
  }

  std::string arch_;
};

inline const Renames kLatent = {{"self_attn.q_a_proj", "attn_q_a"},
                                {"self_attn.q_a_layernorm", "attn_q_a_norm"},
                                {"self_attn.q_b_proj", "attn_q_b"},
                                {"self_attn.kv_a_proj_with_mqa", "attn_kv_a_mqa"},
                                {"self_attn.kv_a_layernorm", "attn_kv_a_norm"}};
inline const Renames kMixture = {{"mlp.gate.e_score_correction_bias", "exp_probs_b.bias"},
                                 {"mlp.shared_experts.gate_proj", "ffn_gate_shexp"},
                                 {"mlp.shared_experts.up_proj", "ffn_up_shexp"},
                                 {"mlp.shared_experts.down_proj", "ffn_down_shexp"},
                                 {"mlp.gate.", "ffn_gate_inp."},
                                 {"self_attn.q_norm", "attn_q_norm"},
                                 {"self_attn.k_norm", "attn_k_norm"}};
inline const Renames kNext = {{"shared_head.norm", "nextn.shared_head_norm"},
                              {"enorm", "nextn.enorm"},
                              {"hnorm", "nextn.hnorm"},
                              {"eh_proj", "nextn.eh_proj"}};
inline const Renames kPostNorms = {{"self_attn.q_norm", "attn_q_norm"},
                                   {"self_attn.k_norm", "attn_k_norm"},
                                   {"post_attention_layernorm", "post_attention_norm"},
                                   {"post_feedforward_layernorm", "post_ffw_norm"}};

inline Renames Joined(Renames first, const Renames& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

}  // namespace arn::convert
