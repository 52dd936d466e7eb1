// What is read of a vision tower's config and of its image processor's.
#include "converter/family/vision_family.h"

#include <cmath>
#include <fstream>

#include "nlohmann/json.hpp"
#include "tests/support/tiny_checkpoint.h"
#include "tests/unit/converter/expect_error.h"

namespace arn::convert {
namespace {

using ::testing::HasSubstr;

// The keys of Qwen3.5's checkpoints.
class QwenVisionTest : public testing::Test {
 protected:
  VisionSpec Read() {
    std::ofstream(folder_ / "preprocessor_config.json") << processor_.dump();
    warnings_.clear();
    RopeSpec rope;
    rope.rotary_dim = 16;
    ropes_ = {rope};
    return ReadVision(config_, "config.json", folder_.path(), query_, &ropes_, &warnings_).value();
  }
  std::string ReadError() {
    return test::ErrorOf([&] { Read(); });
  }

  struct Change {
    nlohmann::json* file;
    const char* object;  // as a JSON pointer
    const char* key;
    nlohmann::json value;
    const char* message;
  };
  // Expects an error with the key and the message for each change alone.
  void ExpectRefused(const std::vector<Change>& changes) {
    const nlohmann::json config = config_, processor = processor_;
    for (const Change& change : changes) {
      SCOPED_TRACE(change.key);
      (*change.file)[nlohmann::json::json_pointer(change.object)][change.key] = change.value;
      const std::string error = ReadError();
      EXPECT_THAT(error, HasSubstr(change.key));
      EXPECT_THAT(error, HasSubstr(change.message));
      config_ = config;
      processor_ = processor;
    }
  }

  nlohmann::json& tower() { return config_["vision_config"]; }

  nlohmann::json config_ = {{"architectures", {"Qwen3_5ForConditionalGeneration"}},
                            {"image_token_id", 500},
                            {"text_config", {{"rope_parameters", {{"mrope_section", {3, 3, 2}}}}}},
                            {"vision_config",
                             {{"deepstack_visual_indexes", nlohmann::json::array()},
                              {"depth", 2},
                              {"hidden_size", 48},
                              {"in_channels", 3},
                              {"initializer_range", 0.02},
                              {"intermediate_size", 96},
                              {"model_type", "qwen3_5"},
                              {"num_heads", 3},
                              {"num_position_embeddings", 36},
                              {"out_hidden_size", 64},
                              {"patch_size", 16},
                              {"spatial_merge_size", 2},
                              {"temporal_patch_size", 2}}}};
  nlohmann::json processor_ = {{"size", {{"longest_edge", 16777216}, {"shortest_edge", 65536}}},
                               {"patch_size", 16},
                               {"temporal_patch_size", 2},
                               {"merge_size", 2},
                               {"image_mean", {0.5, 0.5, 0.5}},
                               {"image_std", {0.5, 0.5, 0.5}},
                               {"processor_class", "Qwen3VLProcessor"},
                               {"image_processor_type", "Qwen2VLImageProcessorFast"}};
  VisionQuery query_ = {64, 1000, 2, 0};
  test::TempFolder folder_;
  std::vector<RopeSpec> ropes_;
  std::vector<std::string> warnings_;
};

TEST_F(QwenVisionTest, TowerRopesAndBudget_AreRead) {
  const VisionSpec vision = Read();
  EXPECT_EQ(6u, vision.position_side);
  EXPECT_EQ(2u, vision.frames);
  EXPECT_EQ(2u, vision.merge_side);
  EXPECT_EQ(65536u, vision.max_patches);
  ASSERT_EQ(1u, warnings_.size());
  EXPECT_THAT(warnings_[0], HasSubstr("up to 16384 tokens"));
  EXPECT_EQ(65536u, vision.image.min_pixels);
  EXPECT_EQ(16777216u, vision.image.max_pixels);
  EXPECT_TRUE(vision.has_mrope);
  ASSERT_EQ(2u, vision.projector.stages.size());
  EXPECT_EQ(4u * 48, vision.projector.stages[0].width);
  EXPECT_EQ(64u, vision.projector.stages[1].width);
  EXPECT_TRUE(vision.deepstack.empty());
  ASSERT_EQ(2u, ropes_.size());
  EXPECT_EQ((std::vector<uint8_t>{0, 1, 2, 0, 1, 2, 0, 1}), ropes_[0].axes);
  EXPECT_EQ((std::vector<uint8_t>{1, 1, 1, 1, 2, 2, 2, 2}), ropes_[1].axes);
  EXPECT_EQ(1u, vision.tower->kinds[0].rope);
  EXPECT_FLOAT_EQ(0.1f, ropes_[1].inv_freq[1]);  // 10000^(-2 / 8)
  EXPECT_FLOAT_EQ(0.1f, ropes_[1].inv_freq[5]);
}

TEST_F(QwenVisionTest, Sections_OfOtherSizes) {
  config_["text_config"]["rope_parameters"]["mrope_section"] = {6, 1, 1};
  Read();
  EXPECT_EQ((std::vector<uint8_t>{0, 1, 2, 0, 0, 0, 0, 0}), ropes_[0].axes);
}

TEST_F(QwenVisionTest, PixelsOfOldProcessors_CountFirst) {
  processor_["min_pixels"] = 3136;
  processor_["max_pixels"] = 1003520;
  const VisionSpec vision = Read();
  EXPECT_EQ(3136u, vision.image.min_pixels);
  EXPECT_EQ(1003520u, vision.image.max_pixels);
  EXPECT_EQ(4u * 980, vision.max_patches);
}

TEST_F(QwenVisionTest, PixelsOfTheCommandLine_CountBeforeThem) {
  query_.max_pixels = 50000;
  const VisionSpec vision = Read();
  EXPECT_EQ(50000u, vision.image.min_pixels);
  EXPECT_EQ(50000u, vision.image.max_pixels);
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(QwenVisionTest, WindowsAndChunks_AreRead) {
  config_["architectures"] = {"Qwen2_5_VLForConditionalGeneration"};
  tower() = {{"depth", 4},        {"fullatt_block_indexes", {1, 3}}, {"hidden_size", 48},
             {"in_chans", 3},     {"intermediate_size", 96},         {"num_heads", 3},
             {"patch_size", 16},  {"out_hidden_size", 64},           {"tokens_per_second", 2},
             {"window_size", 112}};
  const VisionSpec vision = Read();
  EXPECT_EQ(3u, vision.window_side);
  EXPECT_EQ((std::vector<uint32_t>{1, 0, 1, 0}), vision.tower->layer_kinds);
  EXPECT_TRUE(vision.tower->kinds[1].has_image_windows);
  EXPECT_FALSE(vision.tower->kinds[0].has_image_windows);
  EXPECT_EQ("", vision.positions);
  EXPECT_FALSE(vision.has_patch_bias);
  EXPECT_EQ((std::vector<uint8_t>{0, 0, 0, 1, 1, 1, 2, 2}), ropes_[0].axes);
  tower()["window_size"] = 31;
  EXPECT_THAT(ReadError(), HasSubstr("window_size: expected a token's side at least"));
  tower()["window_size"] = 112;
  tower()["fullatt_block_indexes"] = {-1};
  EXPECT_THAT(ReadError(), HasSubstr("fullatt_block_indexes: expected indices of layers"));
  tower()["fullatt_block_indexes"] = {1};
  config_["text_config"]["rope_parameters"]["mrope_section"] = {3, 3, 3};
  EXPECT_THAT(ReadError(), HasSubstr("mrope_section: 9 pairs in all, RoPE has 8"));
}

TEST_F(QwenVisionTest, Deepstack_IsReadByLayer) {
  config_["architectures"] = {"Qwen3VLForConditionalGeneration"};
  tower()["depth"] = 12;
  tower()["deepstack_visual_indexes"] = {11, 5};
  const VisionSpec vision = Read();
  ASSERT_EQ(2u, vision.deepstack.size());
  EXPECT_EQ(5u, vision.deepstack[0].layer);
  EXPECT_EQ(11u, vision.deepstack[1].layer);
  const ProjectorSpec& projector = vision.deepstack[0].projector;
  EXPECT_EQ("vision.tower.deepstack_merger_list.1.norm", projector.norm);
  ASSERT_EQ(2u, projector.stages.size());
  EXPECT_EQ("vision.tower.deepstack_merger_list.1.linear_fc2", projector.stages[1].weight);
  EXPECT_EQ("", vision.projector.norm);
  for (const nlohmann::json& wrong : {nlohmann::json{5, 12}, {5, 5}, {-1}, {1, 2, 3}}) {
    tower()["deepstack_visual_indexes"] = wrong;
    EXPECT_THAT(ReadError(), HasSubstr("deepstack_visual_indexes"));
  }
  tower()["deepstack_visual_indexes"] = nlohmann::json::array();
  EXPECT_TRUE(Read().deepstack.empty());
}

TEST_F(QwenVisionTest, WhatIsNotSupported_IsNamed) {
  ExpectRefused({
      {&config_, "/vision_config", "deepstack_visual_indexes", {5, 11}, "expected an empty list"},
      {&config_, "/vision_config", "out_hidden_size", 128, "expected the decoder's hidden_size"},
      {&config_, "/vision_config", "num_heads", 5, "expected a divisor of hidden_size"},
      {&config_, "/vision_config", "num_heads", 8, "expected heads of a multiple of 4"},
      {&config_, "/vision_config", "num_position_embeddings", 35, "expected a square"},
      {&config_, "/vision_config", "in_channels", 1, "expected 3"},
      {&config_, "/vision_config", "fullatt_block_indexes", {1}, "not supported for images"},
      {&config_, "/text_config/rope_parameters", "mrope_section", {4, 4}, "three numbers"},
      {&config_, "", "image_token_id", 1000, "the vocabulary has 1000"},
      {&processor_, "", "patch_size", 14, "expected the tower's patch_size"},
      {&processor_, "", "temporal_patch_size", 1, "expected the tower's temporal_patch_size"},
      {&processor_, "", "merge_size", 1, "expected the tower's spatial_merge_size"},
      {&processor_, "", "min_pixels", 16777217, "1 to 16777216, the most pixels"},
      {&processor_, "", "max_pixels", 33554432, "at most 65536 patches"},
      {&processor_, "", "size", {{"longest_edge", 1000}, {"shortest_edge", 1}}, "at least 1024"},
      {&processor_, "", "resample", 7, "expected 1 to 3"},
      {&processor_, "", "do_resize", false, "expected true"},
  });
}

// The keys of Gemma 4's checkpoints.
class PatchBudgetTest : public QwenVisionTest {
 protected:
  PatchBudgetTest() {
    config_ = {{"architectures", {"Gemma4ForConditionalGeneration"}},
               {"image_token_id", 500},
               {"text_config", {{"pad_token_id", 0}, {"hidden_size_per_layer_input", 256}}},
               {"vision_config",
                {{"attention_bias", false},
                 {"head_dim", 64},
                 {"hidden_activation", "gelu_pytorch_tanh"},
                 {"hidden_size", 768},
                 {"num_attention_heads", 12},
                 {"num_key_value_heads", 6},
                 {"pooling_kernel_size", 3},
                 {"rms_norm_eps", 1e-5},
                 {"rope_parameters", {{"rope_theta", 10.0}, {"rope_type", "default"}}},
                 {"standardize", true},
                 {"use_clipped_linears", true}}}};
    processor_ = {{"do_normalize", false},
                  {"max_soft_tokens", 280},
                  {"image_processor_type", "Gemma4ImageProcessor"}};
  }
};

TEST_F(PatchBudgetTest, TowerAndBudget_AreRead) {
  VisionSpec vision = Read();
  EXPECT_TRUE(warnings_.empty());
  EXPECT_EQ(280u, vision.image.max_tokens);
  EXPECT_EQ(9u * 280, vision.max_patches);
  EXPECT_EQ(840u, vision.position_side);
  EXPECT_EQ(10240u, vision.stored_positions);
  EXPECT_TRUE(vision.has_clamps);
  EXPECT_FALSE(vision.sees_both_ways);
  EXPECT_FLOAT_EQ(std::sqrt(768.0f), vision.merge_factor);
  EXPECT_EQ("vision.tower.std_scale", vision.merge_scale);
  EXPECT_FLOAT_EQ(0.5f, vision.image.mean[1]);
  EXPECT_FLOAT_EQ(0.5f, vision.image.std[1]);
  const LayerKindSpec& kind = vision.tower->kinds[0];
  EXPECT_EQ(6u, kind.n_kv_heads);
  EXPECT_FLOAT_EQ(1.0f, kind.attention_scale);
  EXPECT_FLOAT_EQ(1e-5f, kind.norm_epsilon);
  EXPECT_FALSE(kind.has_mlp_bias);
  EXPECT_TRUE(vision.tower->rotates_halves);
  ASSERT_EQ(2u, ropes_.size());
  EXPECT_EQ(2u, ropes_[1].axes.front());
  EXPECT_EQ(1u, ropes_[1].axes.back());
  EXPECT_FLOAT_EQ(std::pow(10.0f, -1.0f / 16), ropes_[1].inv_freq[1]);
  config_["text_config"]["use_bidirectional_attention"] = "vision";
  processor_["do_normalize"] = true;
  processor_["image_mean"] = {0.25, 0.25, 0.25};
  vision = Read();
  EXPECT_TRUE(vision.sees_both_ways);
  EXPECT_FLOAT_EQ(0.75f, vision.image.mean[0]);
}

TEST_F(PatchBudgetTest, WhatIsNotSupported_IsNamed) {
  tower()["position_embedding_size"] = 839;
  EXPECT_THAT(ReadError(), HasSubstr("max_soft_tokens: expected at most 279 tokens"));
  tower().erase("position_embedding_size");
  tower()["head_dim"] = 62;
  EXPECT_THAT(ReadError(), HasSubstr("num_attention_heads: expected heads of a multiple of 4"));
  tower()["head_dim"] = 64;
  ExpectRefused({
      {&config_, "/vision_config", "num_key_value_heads", 5, "a divisor of num_attention_heads"},
      {&config_, "/vision_config/rope_parameters", "rope_type", "linear", "expected default"},
      {&config_, "/text_config", "pad_token_id", 3, "expected 0"},
      {&processor_, "", "max_soft_tokens", 100, "expected 70, 140, 280, 560 or 1120"},
      {&processor_, "", "patch_size", 14, "expected the tower's patch_size"},
      {&processor_, "", "pooling_kernel_size", 2, "expected the tower's pooling_kernel_size"},
  });
}

}  // namespace
}  // namespace arn::convert
