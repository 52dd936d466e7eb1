// Adapters merged by the converter: the logits of W + scale B A.
#include <cmath>

#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "tests/golden/golden_case.h"
#include "tests/harness/process.h"

namespace arn::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr double kTolerance = 2e-4;  // as golden_test.cc

class LoraGoldenTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    ARN_NEEDS_CONVERTER();
    const std::string name = std::string("lora/") + GetParam();
    golden_ = LoadGolden(name);
    json_ = nlohmann::json::parse(ReadText(SourcePath("tests/golden/data/" + name + ".json")));
    json_.at("adapter_tensors").get_to(shapes_);
    adapter_ = json_.at("adapter");
  }

  void WriteAdapter() {
    TinyTensors tensors;
    for (const auto& [name, shape] : shapes_) {
      const std::vector<float> values = TinyValues(
          name, shape[0] * shape[1], golden_.checkpoint.base_seed, json_.at("adapter_amplitude"));
      tensors[name] = {"F32", shape, EncodeFloats(values, "F32")};
    }
    fs::create_directories(lora_);
    const std::vector<uint8_t> bytes = EncodeSafetensors(tensors);
    WriteFile(lora_ / "adapter_model.safetensors", bytes.data(), bytes.size());
    WriteFile(lora_ / "adapter_config.json", adapter_.dump());
  }
  void ExpectRefused(const std::string& part) {
    WriteAdapter();
    const ProcessResult result =
        RunProcess({ConverterPath(), (folder_ / "checkpoint").string(), "-o",
                    (folder_ / "refused.arn").string(), "--lora", lora_.string(), "--merge"});
    EXPECT_NE(0, result.exit_code);
    EXPECT_THAT(result.err, HasSubstr(part));
    EXPECT_FALSE(fs::exists(folder_ / "refused.arn"));
  }
  bool Make(const std::vector<std::string>& options) {
    std::vector<std::string> all = {"--weights", "f32"};
    all.insert(all.end(), options.begin(), options.end());
    return ConvertGolden(golden_, ConfigStyle::kTransformers5, folder_ / "checkpoint",
                         folder_ / "model.arn", all);
  }
  std::vector<float> Logits() {
    const ModelPtr model = OpenModel(folder_ / "model.arn");
    if (model == nullptr) return {};
    arn_session_options options = ARN_SESSION_OPTIONS_INIT;
    options.kv_type = ARN_KV_F32;
    options.all_logits = 1;
    const SessionPtr session = NewSession(model.get(), options);
    if (session == nullptr) return {};
    return AllLogits(session.get(), golden_.vocab(), 64, golden_.all_ids());
  }

  TempFolder folder_;
  const fs::path lora_ = folder_ / "lora";
  GoldenCase golden_;
  nlohmann::json json_, adapter_;
  std::map<std::string, std::vector<uint64_t>> shapes_;
};

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
