// A seeded checkpoint with a LoRA adapter as PEFT stores it, and the logits of W + scale B A
// (make_lora_goldens.py).
#pragma once

#include <gmock/gmock.h>

#include <map>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/golden/golden_case.h"
#include "tests/harness/process.h"

namespace arn::test {

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
    std::filesystem::create_directories(lora_);
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
    EXPECT_THAT(result.err, testing::HasSubstr(part));
    EXPECT_FALSE(std::filesystem::exists(folder_ / "refused.arn"));
  }
  bool Make(const std::vector<std::string>& options, const std::string& weights = "f32") {
    std::vector<std::string> all = {"--weights", weights};
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
  const std::filesystem::path lora_ = folder_ / "lora";
  GoldenCase golden_;
  nlohmann::json json_, adapter_;
  std::map<std::string, std::vector<uint64_t>> shapes_;
};

}  // namespace arn::test
