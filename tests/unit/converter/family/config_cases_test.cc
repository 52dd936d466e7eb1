// Every key of every family's configuration class: missing, null and with other values. A config
// and its completed form in transformers give the same spec, and a spec differs exactly if the
// logits do. make_config_cases.py describes data/config_cases.json.
#include <cstdio>
#include <optional>
#include <string>

#include "converter/family/families.h"
#include "converter/hf/json_file.h"
#include "nlohmann/json.hpp"
#include "tests/unit/converter/expect_error.h"

namespace arn::convert {
namespace {

using nlohmann::json;

struct Reading {
  std::optional<DecoderSpec> spec;  // empty: refused
  std::string error;
};

Reading Read(const json& config) {
  Reading reading;
  std::vector<std::string> warnings;
  try {
    reading.spec = ReadDecoderSpec(config, "config.json", &warnings);
  } catch (const ConvertError& error) {
    reading.error = error.what();
  }
  return reading;
}

json Changed(json config, const json& item) {
  config.erase(item["key"].get<std::string>());
  if (item.contains("value")) config[item["key"].get<std::string>()] = item["value"];
  return config;
}

json Completed(json config, const json& item) {
  if (item.contains("same")) return config;
  if (!item.contains("set") && !item.contains("without")) return Changed(config, item);
  for (const json& key : item.value("without", json::array())) config.erase(key.get<std::string>());
  config.update(item.value("set", json::object()));
  return config;
}

// max_context and max_rows limit sessions but do not change the computation.
DecoderSpec WithoutBounds(DecoderSpec spec) {
  spec.max_context = 0;
  if (spec.encoder.feature_width == 0) spec.encoder.max_rows = 0;
  spec.n_extra_layers = 0;                                                 // left out
  if (spec.per_layer_rows > spec.vocab) spec.per_layer_rows = spec.vocab;  // no id is above
  return spec;
}

// transformers 5 writes an untied T5 as a tied one without a factor, unlike its checkpoints.
bool IsOfOldMeaning(const json& block, const json& item) {
  return block["config"]["model_type"] == "t5" && item["key"] == "tie_word_embeddings";
}

// Two names of one function that differ in the last bits in transformers, and the order of its
// sums.
bool IsRounding(const json& block, const json& item) {
  const auto key = item["key"].get<std::string>();
  if (key == "chunk_size" || key == "mamba_chunk_size") return true;
  return block["config"].value(key, json()) == "gelu_new" &&
         item.value("value", json()) == "gelu_pytorch_tanh";
}

class ConfigCases : public testing::Test {
 protected:
  // Returns the blocks with the variants among their cases.
  static const json& Blocks() {
    static const json blocks = [] {
      json file = LoadJson(ARN_CONFIG_CASES);
      for (json& block : file["blocks"]) {
        for (const json& number : block["without_effect"]) {
          json item = file["variants"].at(number.get<size_t>());
          item["effect"] = false;
          block["cases"].push_back(std::move(item));
        }
      }
      return file["blocks"];
    }();
    return blocks;
  }
};

TEST_F(ConfigCases, CompletedConfig_IsTheSameSpec) {
  size_t n_equal = 0, n_refused = 0;
  for (const json& block : Blocks()) {
    const Reading base = Read(block["config"]);
    ASSERT_TRUE(base.spec) << block["name"] << ": " << base.error;
    const Reading completed = Read(block["completed"]);
    EXPECT_EQ(base.spec, completed.spec) << block["name"] << ": " << completed.error;
    for (const json& item : block["cases"]) {
      const Reading raw = Read(Changed(block["config"], item));
      const std::string what = block["name"].get<std::string>() + ": " + Shown(item) + " ";
      if (!raw.spec) {
        ++n_refused;
        EXPECT_THAT(raw.error, testing::StartsWith("config.json: ")) << what;
        continue;
      }
      if (IsOfOldMeaning(block, item)) continue;
      const Reading whole = Read(Completed(block["completed"], item));
      EXPECT_TRUE(raw.spec == whole.spec) << what << whole.error;
      ++n_equal;
    }
  }
  RecordProperty("equal", std::to_string(n_equal));
  RecordProperty("refused", std::to_string(n_refused));
  std::printf("%zu configs equal their completed form, %zu are refused by key\n", n_equal,
              n_refused);
  EXPECT_GT(n_equal, n_refused);
}

TEST_F(ConfigCases, SpecDiffers_WhereTheLogitsDo) {
  for (const json& block : Blocks()) {
    const Reading base = Read(block["config"]);
    ASSERT_TRUE(base.spec) << block["name"];
    for (const json& item : block["cases"]) {
      const Reading raw = Read(Changed(block["config"], item));
      if (!raw.spec || IsRounding(block, item)) continue;
      const bool differs = !(WithoutBounds(*raw.spec) == WithoutBounds(*base.spec));
      EXPECT_EQ(item["effect"].get<bool>(), differs)
          << block["name"].get<std::string>() << ": " << Shown(item);
    }
  }
}

}  // namespace
}  // namespace arn::convert
