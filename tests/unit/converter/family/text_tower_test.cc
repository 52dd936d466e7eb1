// The text decoder of a multimodal checkpoint.
#include "converter/family/text_tower.h"

#include "converter/family/families.h"
#include "nlohmann/json.hpp"
#include "tests/unit/converter/bundle_fixture.h"

namespace arn::convert {
namespace {

using nlohmann::json;
using test::TinyTensors;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

DecoderSpec Read(const json& config) {
  const TextTower tower = FindTextTower(config, "config.json");
  std::vector<std::string> warnings;
  return ReadDecoderSpec(tower.config, tower.label, &warnings);
}

// The keys of google/gemma-3-4b-it; the class defaults are left out.
TEST(TextTower, Gemma3_CompletedByItsClass) {
  const json config = {{"architectures", {"Gemma3ForConditionalGeneration"}},
                       {"boi_token_index", 255999},
                       {"eoi_token_index", 256000},
                       {"eos_token_id", {1, 106}},
                       {"image_token_index", 262144},
                       {"initializer_range", 0.02},
                       {"mm_tokens_per_image", 256},
                       {"model_type", "gemma3"},
                       {"text_config",
                        {{"hidden_size", 2560},
                         {"intermediate_size", 10240},
                         {"model_type", "gemma3_text"},
                         {"num_hidden_layers", 34},
                         {"rope_scaling", {{"factor", 8.0}, {"rope_type", "linear"}}},
                         {"sliding_window", 1024}}},
                       {"torch_dtype", "bfloat16"},
                       {"transformers_version", "4.50.0.dev0"},
                       {"vision_config", {{"hidden_size", 1152}, {"model_type", "siglip"}}}};
  const DecoderSpec spec = Read(config);
  EXPECT_EQ("Gemma3ForCausalLM", spec.architecture);
  EXPECT_EQ(262208u, spec.vocab);
  EXPECT_EQ(2560u, spec.hidden);
  EXPECT_EQ(34u, spec.layer_kinds.size());
  EXPECT_TRUE(spec.tied);
  EXPECT_EQ(8u, spec.kinds[0].n_heads);
  EXPECT_EQ(4u, spec.kinds[0].n_kv_heads);
  EXPECT_EQ(256u, spec.kinds[0].head_dim);
  EXPECT_EQ(1024u, spec.kinds[0].window);
  EXPECT_EQ(0.125f, spec.ropes[spec.kinds[1].rope].inv_freq[0]);
  EXPECT_EQ(json({1, 106}), FindTextTower(config, "config.json").config["eos_token_id"]);
}

// The keys of meta-llama/Llama-4-Scout-17B-16E, with fewer layers.
TEST(TextTower, Llama4_AsPublished) {
  const json config = {{"architectures", {"Llama4ForConditionalGeneration"}},
                       {"boi_token_index", 200080},
                       {"image_token_index", 200092},
                       {"model_type", "llama4"},
                       {"text_config",
                        {{"_attn_implementation_autoset", true},
                         {"attention_bias", false},
                         {"attention_chunk_size", 8192},
                         {"attn_scale", 0.1},
                         {"attn_temperature_tuning", true},
                         {"cache_implementation", "hybrid"},
                         {"floor_scale", 8192},
                         {"for_llm_compressor", false},
                         {"head_dim", 128},
                         {"hidden_act", "silu"},
                         {"hidden_size", 5120},
                         {"interleave_moe_layer_step", 1},
                         {"intermediate_size", 8192},
                         {"intermediate_size_mlp", 16384},
                         {"max_position_embeddings", 10485760},
                         {"model_type", "llama4_text"},
                         {"no_rope_layers", json::array()},
                         {"num_attention_heads", 40},
                         {"num_experts_per_tok", 1},
                         {"num_hidden_layers", 4},
                         {"num_key_value_heads", 8},
                         {"num_local_experts", 16},
                         {"rms_norm_eps", 1e-5},
                         {"rope_scaling",
                          {{"factor", 16.0},
                           {"high_freq_factor", 1.0},
                           {"low_freq_factor", 1.0},
                           {"original_max_position_embeddings", 8192},
                           {"rope_type", "llama3"}}},
                         {"rope_theta", 500000.0},
                         {"router_jitter_noise", 0.0},
                         {"use_qk_norm", true},
                         {"vocab_size", 202048}}},
                       {"torch_dtype", "bfloat16"},
                       {"vision_config", {{"model_type", "llama4_vision_model"}}}};
  const DecoderSpec spec = Read(config);
  EXPECT_EQ("Llama4ForCausalLM", spec.architecture);
  EXPECT_EQ((std::vector<uint32_t>{0, 0, 0, 1}), spec.layer_kinds);
  EXPECT_EQ(8192u, spec.kinds[0].chunk);
  EXPECT_FALSE(spec.tied);
}

// The keys of Qwen/Qwen2-VL-2B-Instruct: the decoder's lie beside those of the whole.
TEST(TextTower, Qwen2Vl_FlatAsPublished) {
  const json config = {{"architectures", {"Qwen2VLForConditionalGeneration"}},
                       {"attention_dropout", 0.0},
                       {"bos_token_id", 151643},
                       {"eos_token_id", 151645},
                       {"vision_start_token_id", 151652},
                       {"vision_end_token_id", 151653},
                       {"vision_token_id", 151654},
                       {"image_token_id", 151655},
                       {"video_token_id", 151656},
                       {"hidden_act", "silu"},
                       {"hidden_size", 1536},
                       {"initializer_range", 0.02},
                       {"intermediate_size", 8960},
                       {"max_position_embeddings", 32768},
                       {"max_window_layers", 28},
                       {"model_type", "qwen2_vl"},
                       {"num_attention_heads", 12},
                       {"num_hidden_layers", 28},
                       {"num_key_value_heads", 2},
                       {"rms_norm_eps", 1e-06},
                       {"rope_theta", 1000000.0},
                       {"sliding_window", 32768},
                       {"tie_word_embeddings", true},
                       {"torch_dtype", "bfloat16"},
                       {"transformers_version", "4.41.2"},
                       {"use_cache", true},
                       {"use_sliding_window", false},
                       {"vision_config", {{"depth", 32}, {"embed_dim", 1280}}},
                       {"rope_scaling", {{"type", "mrope"}, {"mrope_section", {16, 24, 24}}}},
                       {"vocab_size", 151936}};
  const DecoderSpec spec = Read(config);
  EXPECT_EQ("Qwen2ForCausalLM", spec.architecture);
  EXPECT_TRUE(spec.tied);
  EXPECT_TRUE(spec.kinds[0].has_qkv_bias);
  EXPECT_EQ(128u, spec.kinds[0].head_dim);
  EXPECT_EQ(0u, spec.kinds[0].window);
  json plain = config;
  plain.erase("rope_scaling");
  EXPECT_EQ(Read(plain).ropes, spec.ropes);
}

// What a class of its own says of absent keys.
// The keys of Qwen/Qwen2.5-Omni-3B that say what its decoder computes.
TEST(TextTower, PartOfAModelThatSpeaks_AsPublished) {
  const json text = {{"hidden_size", 2048},
                     {"intermediate_size", 11008},
                     {"model_type", "qwen2_5_omni_text"},
                     {"num_attention_heads", 16},
                     {"num_hidden_layers", 36},
                     {"num_key_value_heads", 2},
                     {"rope_scaling", {{"mrope_section", {16, 24, 24}}, {"rope_type", "default"}}},
                     {"rope_theta", 1000000.0},
                     {"vocab_size", 151936}};
  json config = {{"architectures", {"Qwen2_5OmniModel"}},
                 {"model_type", "qwen2_5_omni"},
                 {"talker_config", {{"hidden_size", 896}}},
                 {"thinker_config", {{"text_config", text}, {"user_token_id", 872}}}};
  const DecoderSpec spec = Read(config);
  EXPECT_EQ("Qwen2ForCausalLM", spec.architecture);
  EXPECT_EQ(36u, spec.layer_kinds.size());
  EXPECT_EQ(151936u, spec.vocab);
  EXPECT_FALSE(spec.tied);
  config.erase("thinker_config");
  EXPECT_THAT(test::ErrorOf([&] { Read(config); }), HasSubstr("thinker_config"));
}

TEST(TextTower, DefaultsOfClasses_AreTaken) {
  const json text = {{"vocab_size", 64},
                     {"hidden_size", 512},
                     {"num_attention_heads", 32},
                     {"num_hidden_layers", 2}};
  const auto read = [&](const char* architecture) {
    return Read({{"architectures", {architecture}}, {"text_config", text}});
  };
  const DecoderSpec qwen2 = read("Qwen2_5_VLForConditionalGeneration");
  EXPECT_EQ(29568u, qwen2.kinds[0].ffn_dim);
  EXPECT_EQ(8u, qwen2.kinds[0].n_kv_heads);
  EXPECT_EQ(1e-5f, qwen2.kinds[0].norm_epsilon);
  const DecoderSpec qwen3 = read("Qwen3VLForConditionalGeneration");
  EXPECT_EQ("Qwen3ForCausalLM", qwen3.architecture);
  EXPECT_EQ(128000u, qwen3.max_context);
  EXPECT_EQ(128u, qwen3.kinds[0].head_dim);
  EXPECT_NE(qwen2.ropes[0].inv_freq[1], qwen3.ropes[0].inv_freq[1]);
  const DecoderSpec moe = read("Qwen3VLMoeForConditionalGeneration");
  EXPECT_EQ("Qwen3MoeForCausalLM", moe.architecture);
  EXPECT_TRUE(moe.kinds[0].norm_topk_prob);
  EXPECT_EQ(4u, moe.kinds[0].n_experts_used);
  const DecoderSpec voxtral = read("VoxtralForConditionalGeneration");
  EXPECT_EQ(8192u, voxtral.kinds[0].ffn_dim);
  EXPECT_EQ(128u, voxtral.kinds[0].head_dim);
  EXPECT_EQ(8u, voxtral.kinds[0].n_kv_heads);
}

// Llama 3.2 11B Vision without its layers that attend to the image is a Llama 3.1 8B.
TEST(TextTower, CrossLayers_AreLeftOut) {
  json config = {{"architectures", {"MllamaForConditionalGeneration"}},
                 {"text_config", {{"model_type", "mllama_text_model"}}}};
  const TextTower tower = FindTextTower(config, "config.json");
  EXPECT_THAT(tower.left_out_layers, ElementsAre(3, 8, 13, 18, 23, 28, 33, 38));
  const DecoderSpec spec = Read(config);
  EXPECT_EQ("LlamaForCausalLM", spec.architecture);
  EXPECT_EQ(32u, spec.layer_kinds.size());
  EXPECT_EQ(128256u, spec.vocab);
  config["text_config"]["cross_attention_layers"] = nullptr;
  EXPECT_EQ(32u, Read(config).layer_kinds.size());
  config["text_config"]["cross_attention_layers"] = {3, 40};
  EXPECT_THAT(test::ErrorOf([&] { Read(config); }),
              HasSubstr("text_config: cross_attention_layers: expected indices of layers"));
}

// The keys that SmolVLM, Idefics3 and Pixtral have beside those of a Llama.
TEST(TextTower, KeysOfOtherParts_AreNotTheDecoders) {
  json text = {{"architectures", {"VLlama3ForCausalLM"}},
               {"model_type", "llama"},
               {"hidden_size", 576},
               {"num_attention_heads", 9},
               {"is_composition", true},
               {"neftune_noise_alpha", 0.0},
               {"perceiver_config", {{"model_type", "vllama3"}, {"resampler_depth", 6}}},
               {"pixel_shuffle_factor", 4},
               {"qk_layer_norms", false},
               {"use_resampler", false},
               {"vocab_size", 49280}};
  const json config = {{"architectures", {"SmolVLMForConditionalGeneration"}},
                       {"text_config", text}};
  EXPECT_EQ(64u, Read(config).kinds[0].head_dim);
}

TEST(TextTower, PrefixInBothDirections_IsRefused) {
  const json config = {{"architectures", {"PaliGemmaForConditionalGeneration"}},
                       {"text_config", {{"model_type", "gemma"}}}};
  EXPECT_THAT(test::ErrorOf([&] { Read(config); }),
              HasSubstr("config.json: PaliGemmaForConditionalGeneration: its decoder alone is not "
                        "supported: its attention to the prompt is bidirectional"));
}

// Either says it; a head that is there and differs is kept apart anyway.
TEST(TextTower, TiedByEither) {
  const auto tied = [](const char* architecture, const json& outer, const json& inner) {
    json config = {{"architectures", {architecture}}, {"text_config", {{"model_type", "qwen2"}}}};
    if (!outer.is_null()) config["tie_word_embeddings"] = outer;
    if (!inner.is_null()) config["text_config"]["tie_word_embeddings"] = inner;
    return Read(config).tied;
  };
  const char* untied = "LlavaOnevisionForConditionalGeneration";
  EXPECT_FALSE(tied(untied, {}, {}));
  EXPECT_TRUE(tied(untied, false, true));
  EXPECT_TRUE(tied(untied, true, {}));
  EXPECT_TRUE(tied("InternVLForConditionalGeneration", {}, false));
  EXPECT_FALSE(tied("InternVLForConditionalGeneration", false, {}));
}

TEST(TextTower, FactorsOfLogits_AreLeftOutAndNamed) {
  const auto tower = [](const json& text) {
    return FindTextTower(
        {{"architectures", {"LlavaNextForConditionalGeneration"}}, {"text_config", text}}, "c");
  };
  const TextTower capped = tower({{"model_type", "gemma2"}});
  EXPECT_TRUE(capped.config["final_logit_softcapping"].is_null());
  EXPECT_THAT(capped.notes,
              ElementsAre("c: text_config: final_logit_softcapping 30.0 has no effect in "
                          "LlavaNextForConditionalGeneration, as in transformers 5"));
  const TextTower scaled = tower({{"model_type", "granite"}, {"logits_scaling", 8.0}});
  EXPECT_EQ(1.0, scaled.config["logits_scaling"]);
  EXPECT_THAT(scaled.notes, ElementsAre(HasSubstr("logits_scaling 8.0 has no effect")));
  EXPECT_THAT(tower({{"model_type", "granite"}}).notes, ElementsAre());
}

TEST(TextTower, WithoutTextConfig_IsRefused) {
  EXPECT_THAT(test::ErrorOf([] {
                FindTextTower({{"architectures", {"Gemma3ForConditionalGeneration"}}}, "c.json");
              }),
              HasSubstr("c.json: text_config: expected an object"));
}

TEST(TextTower, QuantisedWhole_IsRefused) {
  const json config = {{"architectures", {"LlavaForConditionalGeneration"}},
                       {"quantization_config", {{"quant_method", "awq"}}},
                       {"text_config", {{"model_type", "llama"}}}};
  EXPECT_THAT(test::ErrorOf([&] { Read(config); }), HasSubstr("quantization_config"));
}

class TextTowerConvert : public ConvertTest {
 protected:
  // Returns the bundle of a seeded decoder: alone, or with its tensors renamed by `rename` and two
  // other towers added.
  std::vector<uint8_t> BundleOf(const std::function<std::string(const std::string&)>& rename) {
    test::TinyCheckpoint tiny;
    tiny.tied = false;
    WriteCheckpoint(tiny, [&](TinyTensors& tensors) {
      if (!rename) return;
      TinyTensors renamed;
      for (const auto& [name, tensor] : tensors) renamed[rename(name)] = tensor;
      const test::TinyTensor some = tensors["model.norm.weight"];
      for (const char* other : others_) renamed[other] = some;
      tensors = std::move(renamed);
    });
    if (rename) {
      const std::filesystem::path path = folder_ / "model/config.json";
      json text = json::parse(test::ReadFile(path));
      const json tied = text["tie_word_embeddings"];
      text.erase("tie_word_embeddings");
      json whole = {{"tie_word_embeddings", tied}, {"text_config", text}};
      if (part_ != nullptr) whole = {{part_, whole}};
      whole["architectures"] = {architecture_};
      test::WriteFile(path, whole.dump());
    }
    Run(Options(DType::kInt8));
    return test::ReadFile(folder_ / "out/model.arn");
  }

  const char* architecture_ = "LlavaForConditionalGeneration";
  const char* part_ = nullptr;  // key of the object that holds text_config
  std::vector<const char*> others_ = {"vision_tower.a.weight", "vision_tower.b.weight",
                                      "model.multi_modal_projector.linear_1.weight"};
};

TEST_F(TextTowerConvert, PartOfAModelThatSpeaks_GivesTheDecodersBundle) {
  const std::vector<uint8_t> alone = BundleOf(nullptr);
  architecture_ = "Qwen2_5OmniModel";
  part_ = "thinker_config";
  others_ = {"thinker.visual.a.weight", "thinker.audio_tower.b.weight", "talker.model.norm.weight",
             "token2wav.c.weight"};
  EXPECT_EQ(alone, BundleOf([](const std::string& name) { return "thinker." + name; }));
}

TEST_F(TextTowerConvert, EveryLayout_GivesTheDecodersBundle) {
  const std::vector<uint8_t> alone = BundleOf(nullptr);
  const std::string model = "model.";
  const auto inside = [&](const std::string& name, const std::string& body) {
    return name.rfind(model, 0) == 0 ? body + name.substr(model.size()) : name;
  };
  using Names = std::function<std::string(const std::string&)>;
  const Names layouts[] = {
      [](const std::string& name) { return "language_model." + name; },
      [](const std::string& name) {
        return name == "lm_head.weight" ? "language_model." + name : "language_model.model." + name;
      },
      [&](const std::string& name) { return inside(name, "model.language_model."); },
      [&](const std::string& name) { return inside(name, "model.text_model."); }};
  for (const Names& layout : layouts) {
    EXPECT_EQ(alone, BundleOf(layout)) << layout("model.norm.weight");
    EXPECT_THAT(warnings_,
                ::testing::Contains("of LlavaForConditionalGeneration only the text decoder is "
                                    "converted; left out: multi_modal_projector (1 tensor), "
                                    "vision_tower (2 tensors)"));
  }
}

TEST_F(TextTowerConvert, TensorsOfNoTower_AreRefused) {
  others_.push_back("model.memory.weight");
  EXPECT_THAT(test::ErrorOf([&] {
                BundleOf([](const std::string& name) { return "language_model." + name; });
              }),
              AllOf(HasSubstr("does not account for"), HasSubstr("model.memory.weight")));
}

}  // namespace
}  // namespace arn::convert
