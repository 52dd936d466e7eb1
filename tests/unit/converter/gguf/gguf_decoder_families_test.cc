// Families of decoders in GGUF files, with and without experts. Folder and file of a golden case
// must give the same bundle.
#include <cmath>

#include "tests/unit/converter/gguf/gguf_family_fixture.h"

namespace arn::convert {
namespace {

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
    for (const auto& [key, value] : counts.items()) writer.Uint(arch + "." + key, value);
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
  // Writes each layer's experts, stored one by one, as stacks.
  void StackExperts(GgufWriter* writer) {
    for (uint32_t i = 0; i < BlockCount(); ++i) {
      const std::string layer = std::to_string(i);
      for (const char* kind : {"gate", "up", "down"}) {
        const auto name = [&](int e) {
          return "model.layers." + layer + ".mlp.experts." + std::to_string(e) + "." + kind +
                 "_proj.weight";
        };
        TinyTensor stack;
        int n = 0;
        for (; tensors_.count(name(n)) != 0; ++n) {
          TinyTensor expert;
          Take(name(n), &expert);
          stack.shape = {uint64_t(n) + 1, expert.shape[0], expert.shape[1]};
          stack.bytes.insert(stack.bytes.end(), expert.bytes.begin(), expert.bytes.end());
        }
        if (n != 0) Put("blk." + layer + ".ffn_" + kind + "_exps.weight", stack, writer);
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
    for (auto& [name, tensor] : tensors_) {
      if (name.find(part) == std::string::npos) continue;
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

const Renames kLatent = {{"self_attn.q_a_proj", "attn_q_a"},
                         {"self_attn.q_a_layernorm", "attn_q_a_norm"},
                         {"self_attn.q_b_proj", "attn_q_b"},
                         {"self_attn.kv_a_proj_with_mqa", "attn_kv_a_mqa"},
                         {"self_attn.kv_a_layernorm", "attn_kv_a_norm"}};
const Renames kMixture = {{"mlp.gate.e_score_correction_bias", "exp_probs_b.bias"},
                          {"mlp.shared_experts.gate_proj", "ffn_gate_shexp"},
                          {"mlp.shared_experts.up_proj", "ffn_up_shexp"},
                          {"mlp.shared_experts.down_proj", "ffn_down_shexp"},
                          {"mlp.gate.", "ffn_gate_inp."},
                          {"self_attn.q_norm", "attn_q_norm"},
                          {"self_attn.k_norm", "attn_k_norm"}};
const Renames kNext = {{"shared_head.norm", "nextn.shared_head_norm"},
                       {"enorm", "nextn.enorm"},
                       {"hnorm", "nextn.hnorm"},
                       {"eh_proj", "nextn.eh_proj"}};
const Renames kPostNorms = {{"self_attn.q_norm", "attn_q_norm"},
                            {"self_attn.k_norm", "attn_k_norm"},
                            {"post_attention_layernorm", "post_attention_norm"},
                            {"post_feedforward_layernorm", "post_ffw_norm"}};

Renames Joined(Renames first, const Renames& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

TEST_F(GgufDecoderTest, Exaone4) {
  GgufWriter writer = LoadAs("windowed_layers_rotate", "exaone4");
  ReplaceRope({{"rope_type", "default"}, {"rope_theta", 1000000.0}});
  WriteFolder();
  writer.Bools("exaone4.attention.sliding_window_pattern", {true, true, false});
  AddAll(kPostNorms, &writer);
  ExpectSame(writer, "");
}

// Another row of the same name, because the file has a window.
TEST_F(GgufDecoderTest, Olmo3) {
  GgufWriter writer = LoadAs("post_norms_windows", "olmo2");
  WriteFolder();
  writer.Bools("olmo2.attention.sliding_window_pattern", {true, false, true});
  writer.String("olmo2.rope.scaling.type", "yarn");
  writer.Float("olmo2.rope.scaling.factor", 4.0f);
  writer.Float("olmo2.rope.scaling.yarn_attn_factor", 1.2f);
  writer.Uint("olmo2.rope.scaling.original_context_length", 64);
  AddAll(kPostNorms, &writer);
  ExpectSame(writer, "");
}

TEST_F(GgufDecoderTest, Ernie) {
  GgufWriter writer = LoadAs("rotated_neighbours", "ernie4_5");
  WriteFolder();
  AddAll({}, &writer);
  ExpectSame(writer, "");
}

// Experts behind a dense layer; the correction is a row.
TEST_F(GgufDecoderTest, ErnieExperts) {
  GgufWriter writer = LoadAs("router_statistics", "ernie4_5-moe",
                             {{"expert_count", 7},
                              {"expert_used_count", 3},
                              {"interleave_moe_layer_step", 1},
                              {"leading_dense_block_count", 1},
                              {"expert_shared_count", 2}});
  WriteFolder();
  StackExperts(&writer);
  AddAll(Joined({{"mlp.moe_statics.e_score_correction_bias", "exp_probs_b.bias"}}, kMixture),
         &writer);
  ExpectSame(writer, "");
}

// The base is stored scaled by alpha, rounded to f32.
TEST_F(GgufDecoderTest, HunYuan) {
  for (const char* golden : {"norms_after_rope", "norms_after_rope_experts"}) {
    const bool has_experts = std::string(golden) == "norms_after_rope_experts";
    GgufWriter writer = has_experts ? LoadAs(golden, "hunyuan-moe",
                                             {{"expert_used_count", 2},
                                              {"expert_shared_feed_forward_length", 44},
                                              {"expert_feed_forward_length", 44},
                                              {"expert_shared_count", 1}})
                                    : LoadAs(golden, "hunyuan-dense");
    const double dim = config_["head_dim"];
    config_["rope_parameters"]["alpha"] = 50.0;
    WriteFolder();
    writer.Float(arch_ + ".rope.freq_base",
                 static_cast<float>(10000.0 * std::pow(50.0, dim / (dim - 2.0))));
    writer.String(arch_ + ".rope.scaling.type", "none");
    writer.Float(arch_ + ".rope.scaling.factor", 1.0f);
    writer.Uint(arch_ + ".rope.scaling.original_context_length", 262144);
    StackExperts(&writer);
    AddAll({{"self_attn.query_layernorm", "attn_q_norm"},
            {"self_attn.key_layernorm", "attn_k_norm"},
            {"mlp.gate.wg", "ffn_gate_inp"},
            {"mlp.shared_mlp.gate_proj", "ffn_gate_shexp"},
            {"mlp.shared_mlp.up_proj", "ffn_up_shexp"},
            {"mlp.shared_mlp.down_proj", "ffn_down_shexp"}},
           &writer);
    ExpectSame(writer, "");
  }
}

TEST_F(GgufDecoderTest, Glm4) {
  GgufWriter writer = LoadAs("neighbours_sandwich", "glm4", {{"rope.dimension_count", 12}});
  WriteFolder();
  AddAll({{"post_self_attn_layernorm", "post_attention_norm"},
          {"post_mlp_layernorm", "post_ffw_norm"},
          {"mlp.gate_up_proj", "ffn_up"}},
         &writer);
  ExpectSame(writer, "");
}

TEST_F(GgufDecoderTest, CommandR) {
  GgufWriter writer = LoadAs("one_norm", "command-r");
  WriteFolder();
  AddAll({}, &writer);
  ExpectSame(writer, "");
}

TEST_F(GgufDecoderTest, Cohere2) {
  GgufWriter writer = LoadAs("one_norm_windows", "cohere2", {{"rope.dimension_count", 16}});
  WriteFolder();
  AddAll({}, &writer);
  ExpectSame(writer, "with windows in all but every fourth layer");
}

// q, k and v have biases, the matrix behind them has none.
TEST_F(GgufDecoderTest, SeedOss) {
  GgufWriter writer = LoadAs("input_biases", "seed_oss");
  WriteFolder();
  AddAll({{"post_attention_layernorm", "post_attention_norm"}}, &writer);
  ExpectSame(writer, "");
}

TEST_F(GgufDecoderTest, Arcee) {
  GgufWriter writer = LoadAs("relu_squared", "arcee", {{"rope.dimension_count", 20}});
  ReplaceRope({{"rope_type", "default"}, {"rope_theta", 10000.0}});
  WriteFolder();
  PairRows(20);
  AddAll({}, &writer);
  ExpectSame(writer, "");
}

// No norm of the file has weights; q, k and v are clipped.
TEST_F(GgufDecoderTest, Olmo) {
  GgufWriter writer = LoadAs("plain_layer_norm", "olmo");
  config_["clip_qkv"] = 0.75;
  WriteFolder();
  writer.Float("olmo.attention.layer_norm_epsilon", 1e-5f);
  writer.Float("olmo.attention.clamp_kqv", 0.75f);
  PairRows(16);
  AddAll({}, &writer);
  ExpectSame(writer, "");
}

TEST_F(GgufDecoderTest, StableLm) {
  for (const bool is_parallel : {false, true}) {
    GgufWriter writer = LoadAs(is_parallel ? "gated_one_norm" : "gated_layer_norm", "stablelm",
                               {{"rope.dimension_count", 4}});
    WriteFolder();
    writer.Bool("stablelm.use_parallel_residual", is_parallel);
    AddAll({}, &writer);
    ExpectSame(writer, "");
  }
}

TEST_F(GgufDecoderTest, Phi2) {
  GgufWriter writer = LoadAs("head_bias", "phi2", {{"rope.dimension_count", 8}});
  WriteFolder();
  AddAll({{"model.final_layernorm", "output_norm"},
          {"self_attn.dense", "attn_output"},
          {"mlp.fc1", "ffn_up"},
          {"mlp.fc2", "ffn_down"}},
         &writer);
  ExpectSame(writer, "");
}

// The file stores norms with the 1 added, and their epsilon as RMSNorm's.
TEST_F(GgufDecoderTest, Nemotron) {
  GgufWriter writer = LoadAs("layer_norm_less_one", "nemotron", {{"rope.dimension_count", 12}});
  WriteFolder();
  for (auto& [name, tensor] : tensors_) {
    if (name.find("norm.weight") == std::string::npos) continue;
    std::vector<float> values = Floats(tensor);
    for (float& v : values) v += 1.0f;
    tensor.bytes = test::EncodeFloats(values, "F32");
  }
  AddAll({}, &writer);
  ExpectSame(writer, "");
}

TEST_F(GgufDecoderTest, Jais2) {
  GgufWriter writer = LoadAs("squared_layer_norm", "jais2");
  WriteFolder();
  AddAll({}, &writer);
  ExpectSame(writer, "");
}

TEST_F(GgufDecoderTest, Bloom) {
  GgufWriter writer = LoadAs(
      "alibi", "bloom",
      {{"context_length", 2048}, {"feed_forward_length", 264}, {"attention.head_count_kv", 6}});
  WriteFolder();
  BlockRows("query_key_value", 6, 1, 11);
  AddRest({{"transformer.h.", "blk."},
           {"transformer.word_embeddings_layernorm", "token_embd_norm"},
           {"transformer.word_embeddings", "token_embd"},
           {"transformer.ln_f", "output_norm"},
           {"lm_head", "output"},
           {"input_layernorm", "attn_norm"},
           {"post_attention_layernorm", "ffn_norm"},
           {"self_attention.query_key_value", "attn_qkv"},
           {"self_attention.dense", "attn_output"},
           {"mlp.dense_h_to_4h", "ffn_up"},
           {"mlp.dense_4h_to_h", "ffn_down"}},
          &writer);
  ExpectSame(writer, "");
}

TEST_F(GgufDecoderTest, Falcon) {
  GgufWriter writer = LoadAs("grouped_heads", "falcon",
                             {{"feed_forward_length", 256}, {"attention.head_count_kv", 2}});
  WriteFolder();
  writer.String("falcon.tensor_data_layout", "jploski");
  BlockRows("query_key_value", 2, 4, 8);
  AddRest({{"transformer.h.", "blk."},
           {"transformer.word_embeddings", "token_embd"},
           {"transformer.ln_f", "output_norm"},
           {"lm_head", "output"},
           {"ln_attn", "attn_norm_2"},
           {"ln_mlp", "attn_norm"},
           {"self_attention.query_key_value", "attn_qkv"},
           {"self_attention.dense", "attn_output"},
           {"mlp.dense_h_to_4h", "ffn_up"},
           {"mlp.dense_4h_to_h", "ffn_down"}},
          &writer);
  ExpectSame(writer, "");
}

TEST_F(GgufDecoderTest, Ministral3) {
  GgufWriter writer =
      LoadAs("temperature_of_positions", "mistral3", {{"rope.dimension_count", 24}});
  config_["rope_parameters"]["mscale"] = 0.7;
  WriteFolder();
  writer.String("mistral3.rope.scaling.type", "yarn");
  writer.Float("mistral3.rope.scaling.factor", 4.0f);
  writer.Uint("mistral3.rope.scaling.original_context_length", 8);
  writer.Float("mistral3.rope.scaling.yarn_log_multiplier", 0.7f);
  writer.Float("mistral3.attention.temperature_scale", 0.4f);
  PairRows(24);
  AddAll({}, &writer);
  ExpectSame(writer, "");
}

TEST_F(GgufDecoderTest, Olmoe) {
  GgufWriter writer = LoadAs("experts_all_head_norms", "olmoe");
  WriteFolder();
  StackExperts(&writer);
  AddAll(kMixture, &writer);
  ExpectSame(writer, "that are not normalised");
}

// The gate of the shared expert has lost its first dimension.
TEST_F(GgufDecoderTest, Qwen2Experts) {
  GgufWriter writer =
      LoadAs("shared_expert_gate", "qwen2moe", {{"expert_shared_feed_forward_length", 60}});
  WriteFolder();
  StackExperts(&writer);
  for (auto& [name, tensor] : tensors_) {
    if (name.find("shared_expert_gate") != std::string::npos)
      tensor.shape.erase(tensor.shape.begin());
  }
  AddAll(Joined({{"mlp.shared_expert_gate", "ffn_gate_inp_shexp"},
                 {"mlp.shared_expert.gate_proj", "ffn_gate_shexp"},
                 {"mlp.shared_expert.up_proj", "ffn_up_shexp"},
                 {"mlp.shared_expert.down_proj", "ffn_down_shexp"}},
                kMixture),
         &writer);
  ExpectSame(writer, "that are not normalised");
}

// gate and up of experts, and of the shared expert, become tensors of their own.
TEST_F(GgufDecoderTest, GraniteExperts) {
  for (const bool is_shared : {false, true}) {
    json keys = json::object();
    if (is_shared) keys["expert_shared_feed_forward_length"] = 44;
    GgufWriter writer =
        LoadAs(is_shared ? "experts_by_rows_shared" : "experts_by_rows", "granitemoe", keys);
    WriteFolder();
    writer.Float("granitemoe.attention.scale", config_["attention_multiplier"]);
    writer.Float("granitemoe.embedding_scale", config_["embedding_multiplier"]);
    writer.Float("granitemoe.residual_scale", config_["residual_multiplier"]);
    writer.Float("granitemoe.logit_scale", config_["logits_scaling"]);
    PairRows(16);
    for (uint32_t i = 0; i < BlockCount(); ++i) {
      const std::string from = "model.layers." + std::to_string(i) + ".";
      const std::string to = "blk." + std::to_string(i) + ".";
      SplitRows(from + "block_sparse_moe.input_linear.weight", to + "ffn_gate_exps.weight",
                to + "ffn_up_exps.weight", &writer);
      if (!is_shared) continue;
      SplitRows(from + "shared_mlp.input_linear.weight", to + "ffn_gate_shexp.weight",
                to + "ffn_up_shexp.weight", &writer);
    }
    AddAll({{"block_sparse_moe.output_linear", "ffn_down_exps"},
            {"block_sparse_moe.router.layer", "ffn_gate_inp"},
            {"shared_mlp.output_linear", "ffn_down_shexp"}},
           &writer);
    ExpectSame(writer, "");
  }
}

TEST_F(GgufDecoderTest, Dots1) {
  GgufWriter writer = LoadAs("later_windows_experts", "dots1", {{"attention.sliding_window", 0}});
  config_["sliding_window"] = nullptr;
  WriteFolder();
  StackExperts(&writer);
  AddAll(kMixture, &writer);
  ExpectSame(writer, "");
}

TEST_F(GgufDecoderTest, ExaoneExperts) {
  GgufWriter writer = LoadAs("windowed_layers_rotate_experts", "exaone-moe",
                             {{"expert_shared_feed_forward_length", 56}});
  WriteFolder();
  writer.Bools("exaone-moe.attention.sliding_window_pattern", {true, true, false});
  StackExperts(&writer);
  AddAll(Joined({{"mlp.e_score_correction_bias", "exp_probs_b.bias"}}, kMixture), &writer);
  ExpectSame(writer, "");
}

TEST_F(GgufDecoderTest, Deepseek2) {
  GgufWriter writer = LoadLatent("latent_attention_greedy");
  WriteFolder();
  StackExperts(&writer);
  SplitLatent(&writer);
  AddAll(Joined(kLatent, kMixture), &writer);
  ExpectSame(writer, "");
}

TEST_F(GgufDecoderTest, Deepseek3) {
  GgufWriter writer = LoadLatent("latent_attention");
  AddLatentScaling(&writer);
  WriteFolder();
  StackExperts(&writer);
  SplitLatent(&writer);
  AddAll(Joined(kLatent, kMixture), &writer);
  ExpectSame(writer, "");
}

// The layer behind the last is a multi-token prediction head.
TEST_F(GgufDecoderTest, PredictionHead) {
  GgufWriter writer = LoadLatent("mtp/latent_attention");
  AddLatentScaling(&writer);
  WriteFolder();
  StackExperts(&writer);
  SplitLatent(&writer);
  AddAll(Joined(Joined(kNext, kLatent), kMixture), &writer);
  ExpectSame(writer, "");
}

TEST_F(GgufDecoderTest, WhatContradictsLatentAttention_IsNamed) {
  struct Case {
    const char* key;
    uint32_t value;
    const char* error;
  };
  for (const Case& bad : {
           Case{"attention.head_count_kv", 4, "attention.head_count_kv: expected 1, found 4"},
           Case{"attention.key_length", 33, "attention.key_length: expected 32, found 33"},
           Case{"attention.key_length_mla", 8, "attention.key_length_mla: expected more than"},
           Case{"nextn_predict_layers", 3, "nextn_predict_layers: expected fewer than"},
           Case{"expert_group_count", 3, "expert_group_count: expected expert_group_used_count"},
           Case{"attention.sliding_window", 9, "attention.sliding_window is 9"},
       }) {
    GgufWriter writer = LoadLatent("latent_attention_greedy", {{bad.key, bad.value}});
    StackExperts(&writer);
    SplitLatent(&writer);
    AddAll(Joined(kLatent, kMixture), &writer);
    WriteGguf(writer);
    EXPECT_THAT(GgufError(), HasSubstr(std::string("deepseek2.") + bad.error));
  }
}

}  // namespace
}  // namespace arn::convert
