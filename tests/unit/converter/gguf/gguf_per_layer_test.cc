// Per-layer embeddings, streams, and heads that differ by layer. Folder and file must give the same
// bundle.
#include "tests/unit/converter/gguf/gguf_hybrid_fixture.h"

namespace arn::convert {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class GgufPerLayerTest : public GgufHybridTest {
 protected:
  void BeginGlobalHeads(json numbers) {
    json is_local = json::array();
    for (const json& type : config_.at("layer_types")) {
      is_local.push_back(type == "sliding_attention");
    }
    numbers["attention.sliding_window"] = 8;
    numbers["attention.sliding_window_pattern"] = is_local;
    Begin("gemma4", numbers);
    PutFloat("attention.layer_norm_rms_epsilon", 1e-5f);
    PutFloat("rope.freq_base", 1e6f);
    PutFloat("rope.freq_base_swa", 1e4f);
    PutFloat("final_logit_softcapping", 12.0f);
  }
  // `n` of the pairs rotate.
  void PutRotatedPart(size_t n, size_t pairs) {
    std::vector<float> factors(pairs, 1e30f);
    std::fill_n(factors.begin(), n, 1.0f);
    writer_.Tensor("rope_freqs.weight", test::kGgufF32, {pairs},
                   test::EncodeFloats(factors, "F32"));
  }
  const Renames kPerLayer = {
      {"model.embed_tokens_per_layer", "per_layer_token_embd"},
      {"model.per_layer_model_projection", "per_layer_model_proj"},
      {"model.per_layer_projection_norm", "per_layer_proj_norm"},
      {"per_layer_input_gate", "inp_gate"},
      {"post_per_layer_input_norm", "post_norm"},
      {"per_layer_projection", "proj"},
      {"layer_scalar", "layer_output_scale.weight"},
      {"post_attention_layernorm", "post_attention_norm"},
      {"pre_feedforward_layernorm", "ffn_norm"},
      {"post_feedforward_layernorm", "post_ffw_norm"},
  };
};

// Streams in one tensor, the sparsity of gates as quantiles, and widths by layer.
TEST_F(GgufPerLayerTest, ResidualStreams) {
  Load("residual_streams");
  config_["vocab_size_per_layer_input"] = 509;
  TinyTensor& table = tensors_.at("model.embed_tokens_per_layer.weight");
  table.bytes.resize(table.bytes.size() / table.shape[0] * 509);
  table.shape[0] = 509;
  WriteFolder();
  Begin("gemma3n", {{"feed_forward_length", {84, 84, 84, 100, 84, 100}},
                    {"attention.head_count_kv", 2},
                    {"attention.key_length", 16},
                    {"attention.value_length", 16},
                    {"attention.sliding_window", 8},
                    {"attention.shared_kv_layers", 2},
                    {"attention.sliding_window_pattern", {true, false, true, false, true, false}},
                    {"altup.active_idx", 0},
                    {"altup.num_inputs", 4},
                    {"embedding_length_per_layer_input", 10}});
  PutFloat("attention.layer_norm_rms_epsilon", 1e-5f);
  PutFloat("rope.freq_base", 1e6f);
  PutFloat("rope.freq_base_swa", 1e4f);
  PutFloat("final_logit_softcapping", 12.0f);
  // Of 0.8, 0.8, 0.3, 0.5 and 0, as torch rounds them.
  writer_.Floats("gemma3n.activation_sparsity_scale",
                 {0.84162122f, 0.84162122f, -0.52440053f, 0.0f, -INFINITY, -INFINITY});
  for (const char* name : {"model.altup_projections.", "model.altup_unembed_projections."}) {
    TinyTensor stack = {"F32", {3, 64, 64}, {}};
    for (int i = 0; i < 3; ++i) {
      const std::string part = name + std::to_string(i) + ".weight";
      const std::vector<uint8_t>& bytes = tensors_.at(part).bytes;
      stack.bytes.insert(stack.bytes.end(), bytes.begin(), bytes.end());
      tensors_.erase(part);
    }
    tensors_[name + std::string("weight")] = stack;
  }
  const Renames streams = {{"altup_projections", "altup_proj"},
                           {"altup_unembed_projections", "altup_unembd_proj"},
                           {"model.altup_", "altup_"},
                           {"altup.correct_output_scale", "altup_correct_scale.weight"},
                           {"altup.correction_coefs", "altup_correct_coef"},
                           {"altup.prediction_coefs", "altup_predict_coef"},
                           {"altup.modality_router", "altup_router"},
                           {"altup.router_norm", "altup_router_norm"},
                           {"laurel.linear_left", "laurel_l"},
                           {"laurel.linear_right", "laurel_r"},
                           {"laurel.post_laurel_norm", "laurel_post_norm"}};
  ExpectSame(Both(Both(streams, kPerLayer), kUsual));
}

// Layers without a window have heads of their own, of which a part rotates; the last ones share
// keys and are twice as wide.
TEST_F(GgufPerLayerTest, PerLayerEmbeddings) {
  Load("per_layer_embeddings");
  WriteFolder();
  BeginGlobalHeads({{"feed_forward_length", {84, 84, 84, 84, 168, 168}},
                    {"attention.head_count_kv", 2},
                    {"attention.key_length", 24},
                    {"attention.value_length", 24},
                    {"attention.key_length_swa", 16},
                    {"attention.value_length_swa", 16},
                    {"attention.shared_kv_layers", 2},
                    {"rope.dimension_count", 24},
                    {"rope.dimension_count_swa", 16},
                    {"embedding_length_per_layer_input", 10}});
  PutRotatedPart(3, 12);
  ExpectSame(Both(kPerLayer, kUsual));

  BeginGlobalHeads(
      {{"feed_forward_length", {84, 84, 84, 90, 168, 168}}, {"attention.shared_kv_layers", 2}});
  PutRotatedPart(3, 12);
  writer_.Tensor("token_embd.weight", test::kGgufF32, {509, 64},
                 tensors_.at("model.embed_tokens.weight").bytes);
  WriteGguf(writer_);
  EXPECT_THAT(GgufError(), HasSubstr("gemma4.feed_forward_length: expected one number, or twice"));
}

// Experts beside the feed-forward block, gate and up of all in one tensor; keys that are values.
TEST_F(GgufPerLayerTest, ExpertsBesideTheBlock) {
  Load("experts_beside");
  config_["tie_word_embeddings"] = true;
  tensors_.erase("lm_head.weight");
  WriteFolder();
  BeginGlobalHeads({{"feed_forward_length", 84},
                    {"attention.head_count_kv", {1, 1, 1}},
                    {"attention.key_length", 26},
                    {"attention.value_length", 26},
                    {"attention.key_length_swa", 18},
                    {"attention.value_length_swa", 18},
                    {"attention.shared_kv_layers", 0},
                    {"expert_count", 6},
                    {"expert_used_count", 3},
                    {"expert_feed_forward_length", 28},
                    {"rope.dimension_count", 26},
                    {"rope.dimension_count_swa", 18},
                    {"embedding_length_per_layer_input", 0}});
  PutRotatedPart(6, 13);
  const Renames experts = {{"post_feedforward_layernorm_1", "post_ffw_norm_1"},
                           {"post_feedforward_layernorm_2", "post_ffw_norm_2"},
                           {"pre_feedforward_layernorm_2", "pre_ffw_norm_2"},
                           {"router.per_expert_scale", "ffn_down_exps.scale"},
                           {"router.scale", "ffn_gate_inp.scale"},
                           {"router.proj", "ffn_gate_inp"},
                           {"experts.gate_up_proj", "ffn_gate_up_exps.weight"},
                           {"experts.down_proj", "ffn_down_exps.weight"}};
  ExpectSame(Both(Both(experts, kPerLayer), kUsual));
}

}  // namespace
}  // namespace arn::convert
