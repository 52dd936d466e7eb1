// Assistants that are not one of the decoder's are refused, by file, field and value.
#include "converter/tensors/assistant.h"

#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "converter/family/families.h"
#include "nlohmann/json.hpp"
#include "tests/support/tiny_checkpoint.h"
#include "tests/unit/converter/expect_error.h"

namespace arn::convert {
namespace {

using test::EncodeFloats;
using test::EncodeSafetensors;
using test::TempFolder;
using test::TinyTensors;
using test::WriteFile;

constexpr const char* kOrder = "masked_embedding.token_ordering";
constexpr uint32_t kVocab = 510;

nlohmann::json LoadCase() {
  const std::vector<uint8_t> file = test::ReadFile(ARN_GOLDEN_DIR "/assistant/clusters.json");
  return nlohmann::json::parse(file.begin(), file.end());
}

template <typename Action>
void ExpectRefused(Action action, const std::string& words) {
  EXPECT_THAT(test::ErrorOf(action), testing::HasSubstr(words));
}

class AssistantTest : public testing::Test {
 protected:
  AssistantTest() {
    std::iota(order_.begin(), order_.end(), 0);
    decoder_ = ReadDecoderSpec(case_["config"], "config.json", &warnings_);
  }

  // Writes config_ and the order of the tokens as numbers of type T; null: without it.
  template <typename T>
  std::shared_ptr<const DecoderSpec> Read(const char* dtype) {
    TinyTensors tensors;
    tensors["lm_head.weight"] = {"F32", {1}, EncodeFloats({0.0f}, "F32")};
    if (dtype != nullptr) {
      const std::vector<T> numbers(order_.begin(), order_.end());
      std::vector<uint8_t> bytes(numbers.size() * sizeof(T));
      std::memcpy(bytes.data(), numbers.data(), bytes.size());
      tensors[kOrder] = {dtype, {numbers.size()}, bytes};
    }
    const std::vector<uint8_t> file = EncodeSafetensors(tensors);
    WriteFile(folder_ / "model.safetensors", file.data(), file.size());
    WriteFile(folder_ / "config.json", config_.dump());
    return ReadAssistant(folder_.path(), decoder_, {}, &warnings_);
  }
  std::shared_ptr<const DecoderSpec> Read() { return Read<int64_t>("I64"); }

  const TempFolder folder_;
  const nlohmann::json case_ = LoadCase();
  nlohmann::json config_ = case_["assistant_config"];
  std::vector<int64_t> order_ = std::vector<int64_t>(kVocab);
  DecoderSpec decoder_;
  std::vector<std::string> warnings_;
};

// Six layers, the last two of which have no keys and values of their own.
TEST_F(AssistantTest, Layers_ReadTheLastOfTheirTypes) {
  const std::shared_ptr<const DecoderSpec> spec = Read();
  EXPECT_EQ((std::vector<uint32_t>{2, 2, 2, 3}), spec->kv_layers);
  EXPECT_EQ(44u, spec->hidden);
  EXPECT_EQ(64u, spec->assistant.decoder_hidden);
  EXPECT_EQ(30u, spec->assistant.n_clusters);
  EXPECT_EQ(5u, spec->assistant.n_clusters_used);
  EXPECT_EQ(Read<int32_t>("I32")->assistant.token_order, spec->assistant.token_order);
}

TEST_F(AssistantTest, AnotherDecodersFields_AreRefused) {
  struct Row {
    const char* object;  // of the config; "": the config itself
    const char* key;
    nlohmann::json value;
    const char* message;
  };
  const Row rows[] = {
      {"", "model_type", "gemma4", "model_type: expected gemma4_assistant or"},
      {"", "backbone_hidden_size", 1536,
       "backbone_hidden_size: expected the model's hidden_size, "
       "64, found 1536"},
      {"", "backbone_hidden_size", nullptr, "backbone_hidden_size: expected the model's"},
      {"", "quantization_config", {{"quant_method", "awq"}}, "quantization_config: expected none"},
      {"", "text_config", 3, "text_config: expected an object, found 3"},
      {"", "num_centroids", 7, "num_centroids: expected a divisor of the 510 tokens, found 7"},
      {"", "centroid_intermediate_top_k", 31, "centroid_intermediate_top_k: expected at most 30"},
      {"text_config", "vocab_size", 509, "vocab_size: expected the model's, 510, found 509"},
      {"text_config", "vocab_size_per_layer_input", 510, "vocab_size_per_layer_input: expected 0"},
      {"text_config", "hidden_size_per_layer_input", 8, "hidden_size_per_layer_input: expected 0"},
      {"text_config", "enable_moe_block", true, "enable_moe_block: expected false"},
      {"text_config", "num_kv_shared_layers", 2,
       "num_kv_shared_layers: expected 0 or all of the 4"},
      {"text_config", "sliding_window", 9,
       "sliding_window: expected that of the model's layer 2, "
       "8: layer 0 has 9, found 9"},
      {"text_config", "head_dim", 20, "head_dim: expected that of the model's layer 2, 16"},
      {"text_config", "global_head_dim", 28,
       "global_head_dim: expected that of the model's layer "
       "3, 24: layer 3 has 28"},
      {"text_config", "num_key_value_heads", 3,
       "num_key_value_heads: expected that of the model's "
       "layer 2, 2"},
  };
  const nlohmann::json original = config_;
  for (const Row& row : rows) {
    SCOPED_TRACE(row.message);
    config_ = original;
    (row.object[0] == '\0' ? config_ : config_[row.object])[row.key] = row.value;
    ExpectRefused([&] { Read(); }, row.message);
    ExpectRefused([&] { Read(); }, "config.json");
  }
  config_ = original;
  config_["text_config"]["rope_parameters"]["sliding_attention"]["rope_theta"] = 20000.0;
  ExpectRefused([&] { Read(); },
                "rope_parameters: expected that of the model's layer 2, for layer 0");
}

TEST_F(AssistantTest, OrdersThatAreNone_AreRefused) {
  ExpectRefused([&] { Read<int64_t>(nullptr); },
                "tensor masked_embedding.token_ordering is missing");
  ExpectRefused([&] { Read<float>("F32"); },
                "expected 510 numbers of type I64 or I32, found [510]");
  order_[7] = 510;
  ExpectRefused([&] { Read(); }, "the value at [7] is 510, expected each of the 510 tokens once");
  order_[7] = 6;
  ExpectRefused([&] { Read(); }, "the value at [7] is 6");
  order_[7] = -1;
  ExpectRefused([&] { Read(); }, "the value at [7] is -1");
  order_.pop_back();
  ExpectRefused([&] { Read(); }, "expected 510 numbers of type I64 or I32, found [509]");
}

}  // namespace
}  // namespace arn::convert
