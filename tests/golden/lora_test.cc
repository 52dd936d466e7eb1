// Adapters merged by the converter: the logits of W + scale B A.
#include "tests/golden/lora_case.h"

namespace arn::test {
namespace {

constexpr double kTolerance = 2e-4;  // as golden_test.cc

TEST_P(LoraGoldenTest, Merged_GivesTheReferencesLogits) {
  WriteAdapter();
  ASSERT_TRUE(Make({"--lora", lora_.string(), "--merge"}));
  const std::vector<float> logits = Logits();
  const std::vector<int32_t> ids = golden_.all_ids();
  ASSERT_EQ(ids.size() * golden_.vocab(), logits.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    ExpectLogits(golden_, i, logits.data() + i * golden_.vocab(), kTolerance);
  }
}

TEST_P(LoraGoldenTest, ScaleOfZero_GivesTheBase) {
  WriteAdapter();
  ASSERT_TRUE(Make({"--lora", lora_.string(), "--merge", "--lora-scale", "0"}));
  const std::vector<float> merged = Logits();
  ASSERT_TRUE(Make({}));
  EXPECT_EQ(Logits(), merged);
}

TEST_P(LoraGoldenTest, WhatIsNotHonoured_IsRefusedByName) {
  ASSERT_TRUE(Make({}));  // the checkpoint
  const nlohmann::json before = adapter_;
  const auto shapes = shapes_;
  const auto refused = [&](const char* key, const nlohmann::json& value) {
    adapter_ = before;
    adapter_[key] = value;
    ExpectRefused(key);
  };
  refused("use_dora", true);
  refused("bias", "lora_only");
  refused("modules_to_save", {"lm_head"});
  refused("peft_type", "LOHA");
  refused("init_lora_weights", "pissa");
  refused("some_new_key", 3);
  adapter_ = before;
  adapter_["r"] = 7;
  adapter_["rank_pattern"] = nlohmann::json::object();
  ExpectRefused("expected rank 7");
  adapter_ = before;
  shapes_["base_model.model.model.embed_tokens.lora_embedding_A"] = {4, 8};
  ExpectRefused("lora_embedding_A");
  shapes_ = shapes;
  const auto rank = static_cast<uint64_t>(before.at("r"));
  shapes_["base_model.model.model.layers.0.absent.lora_A.weight"] = {rank, 8};
  ExpectRefused("has no lora_B");
  shapes_["base_model.model.model.layers.0.absent.lora_B.weight"] = {8, rank};
  ExpectRefused("model.layers.0.absent");
}

INSTANTIATE_TEST_SUITE_P(Cases, LoraGoldenTest,
                         testing::Values("all_linear", "patterns", "fan_in_fan_out"),
                         [](const auto& p) { return std::string(p.param); });

}  // namespace
}  // namespace arn::test
