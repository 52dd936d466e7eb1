// Dequantised tensors against tests/golden/data/quantised (make_quantised_goldens.py), bit for bit.
#include <cstring>
#include <numeric>

#include "converter/hf/quantised/methods.h"
#include "tests/unit/converter/bundle_fixture.h"

namespace arn::convert {
namespace {

using test::TinyTensor;
using test::TinyTensors;

TinyTensor FromJson(const nlohmann::json& json) {
  TinyTensor tensor;
  tensor.dtype = json.at("dtype");
  tensor.shape = json.at("shape").get<std::vector<uint64_t>>();
  const std::string hex = json.at("bytes");
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    tensor.bytes.push_back(static_cast<uint8_t>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return tensor;
}

nlohmann::json LoadCases() {
  const std::vector<uint8_t> file = test::ReadFile(ARN_QUANTISED_GOLDENS);
  return nlohmann::json::parse(file.begin(), file.end());
}

// Writes the tensors of a case, and reads them as the converter does.
Checkpoint ReadCase(const nlohmann::json& c, const test::TempFolder& folder) {
  TinyTensors tensors;
  for (const auto& [name, json] : c.at("tensors").items()) tensors[name] = FromJson(json);
  const std::vector<uint8_t> file = test::EncodeSafetensors(tensors);
  test::WriteFile(folder / "model.safetensors", file.data(), file.size());
  nlohmann::json config = {{"quantization_config", c.at("config")}};
  std::vector<std::string> warnings;
  const auto quantised = TakeQuantisation(&config, "config.json");
  EXPECT_TRUE(quantised.has_value());
  EXPECT_TRUE(config.empty());
  Checkpoint checkpoint(folder.path());
  DecodeQuantised(*quantised, {}, &checkpoint, &warnings);
  return checkpoint;
}

TEST(QuantisedFormats, Values_AreTheReferencesBitForBit) {
  for (const nlohmann::json& c : LoadCases()) {
    SCOPED_TRACE(c.at("name").get<std::string>());
    const test::TempFolder folder;
    const Checkpoint checkpoint = ReadCase(c, folder);
    EXPECT_EQ(checkpoint.entries().size(), c.at("weights").size());
    for (const auto& [name, json] : c.at("weights").items()) {
      const TinyTensor wanted = FromJson(json);
      const Checkpoint::Entry* entry = checkpoint.Find(name);
      ASSERT_NE(entry, nullptr) << name;
      ASSERT_EQ(entry->tensor->shape, wanted.shape);
      ASSERT_TRUE(Checkpoint::IsFloat(*entry->tensor));
      std::vector<float> values(wanted.bytes.size() / 4);
      Checkpoint::ReadFloats(*entry, 0, values.size(), values.data());
      EXPECT_EQ(std::memcmp(values.data(), wanted.bytes.data(), wanted.bytes.size()), 0) << name;
    }
  }
}

TEST(QuantisationConfigs, AreTakenOutOfTheConfigOrItsTextConfig) {
  const nlohmann::json keys = {{"quant_method", "gptq"}, {"bits", 4}};
  for (const char* key : {"quantization_config", "compression_config"}) {
    nlohmann::json config = {{key, keys}, {"vocab_size", 3}};
    const auto outer = TakeQuantisation(&config, "c");
    ASSERT_TRUE(outer.has_value());
    EXPECT_EQ(outer->keys, keys);
    EXPECT_EQ(outer->label, std::string("c: ") + key);
    EXPECT_EQ(config, nlohmann::json({{"vocab_size", 3}}));
  }
  nlohmann::json nested = {{"text_config", {{"quantization_config", keys}}}};
  const auto inner = TakeQuantisation(&nested, "c");
  ASSERT_TRUE(inner.has_value());
  EXPECT_EQ(inner->label, "c: text_config: quantization_config");
  EXPECT_TRUE(nested["text_config"].empty());
  for (const nlohmann::json& nothing : {nlohmann::json(), nlohmann::json::object()}) {
    nlohmann::json config = {{"quantization_config", nothing}};
    EXPECT_FALSE(TakeQuantisation(&config, "c").has_value());
    EXPECT_TRUE(config.empty());
  }
}

// Any range of elements, inside rows and across them, is what the whole has there.
TEST(QuantisedFormats, Ranges_AreThoseOfTheWhole) {
  for (const nlohmann::json& c : LoadCases()) {
    SCOPED_TRACE(c.at("name").get<std::string>());
    const test::TempFolder folder;
    const Checkpoint checkpoint = ReadCase(c, folder);
    for (const auto& [name, entry] : checkpoint.entries()) {
      std::vector<float> whole(entry.tensor->elements());
      Checkpoint::ReadFloats(entry, 0, whole.size(), whole.data());
      const uint64_t cols = entry.tensor->shape.back();
      for (const uint64_t first : {uint64_t{0}, uint64_t{1}, cols - 1, cols, cols + 3, 2 * cols}) {
        for (const uint64_t count : {uint64_t{1}, cols - 1, cols, cols + 1, whole.size() - first}) {
          if (first + count > whole.size()) continue;
          std::vector<float> part(count);
          Checkpoint::ReadFloats(entry, first, count, part.data());
          EXPECT_EQ(std::memcmp(part.data(), whole.data() + first, count * sizeof(float)), 0)
              << first << " " << count;
        }
      }
    }
  }
}

}  // namespace
}  // namespace arn::convert
