// The model in models/ as a GGUF file: weights, tokenizer, chat template, stop token ids and
// sampling. Its bundle equals the folder's byte for byte.
#include "converter/hf/safetensors.h"
#include "nlohmann/json.hpp"
#include "tests/unit/converter/gguf/gguf_fixture.h"

namespace arn::convert {
namespace {

using nlohmann::json;
using test::GgufWriter;

json Load(const char* name) {
  const std::vector<uint8_t> file = test::ReadFile(std::filesystem::path(ARN_FABLE_DIR) / name);
  return json::parse(file.begin(), file.end());
}

void AddConfig(GgufWriter* writer) {
  const json config = Load("config.json"), generation = Load("generation_config.json");
  writer->String("general.architecture", "qwen3");
  const std::pair<const char*, const char*> counts[] = {
      {"qwen3.block_count", "num_hidden_layers"},
      {"qwen3.context_length", "max_position_embeddings"},
      {"qwen3.embedding_length", "hidden_size"},
      {"qwen3.feed_forward_length", "intermediate_size"},
      {"qwen3.attention.head_count", "num_attention_heads"},
      {"qwen3.attention.head_count_kv", "num_key_value_heads"},
      {"qwen3.attention.key_length", "head_dim"},
      {"qwen3.attention.value_length", "head_dim"},
  };
  for (const auto& [key, from] : counts) writer->Uint(key, config[from]);
  writer->Float("qwen3.attention.layer_norm_rms_epsilon", config["rms_norm_eps"]);
  writer->Float("qwen3.rope.freq_base", config["rope_parameters"]["rope_theta"]);
  writer->Float("general.sampling.temp", generation["temperature"]);
  writer->Int("general.sampling.top_k", generation["top_k"]);
  writer->Float("general.sampling.top_p", generation["top_p"]);
}

void AddTokenizer(GgufWriter* writer) {
  const json tokenizer = Load("tokenizer.json");
  const json& vocabulary = tokenizer["model"]["vocab"];
  const json& added = tokenizer["added_tokens"];
  std::vector<std::string> tokens(vocabulary.size() + added.size());
  std::vector<int32_t> types(tokens.size(), 1);
  for (const auto& [text, id] : vocabulary.items()) tokens.at(id) = text;
  for (const json& token : added) {
    tokens.at(token["id"]) = token["content"];
    types.at(token["id"]) = 3;
  }
  std::vector<std::string> merges;
  for (const json& merge : tokenizer["model"]["merges"]) {
    merges.push_back(merge[0].get<std::string>() + " " + merge[1].get<std::string>());
  }
  writer->String("tokenizer.ggml.model", "gpt2");
  writer->String("tokenizer.ggml.pre", "qwen2");
  writer->Strings("tokenizer.ggml.tokens", tokens);
  writer->Ints("tokenizer.ggml.token_type", types);
  writer->Strings("tokenizer.ggml.merges", merges);
  writer->Uint("tokenizer.ggml.eos_token_id", 1023);
  writer->Uint("tokenizer.ggml.padding_token_id", 1021);
  writer->String("tokenizer.chat_template", Load("tokenizer_config.json")["chat_template"]);
}

TEST_F(GgufTest, WholeModel_IsTheSameBundle) {
  GgufWriter writer;
  AddConfig(&writer);
  AddTokenizer(&writer);
  const SafetensorsFile weights(std::filesystem::path(ARN_FABLE_DIR) / "model.safetensors");
  for (const SourceTensor& tensor : weights.tensors()) {
    std::vector<uint8_t> bytes(tensor.bytes);
    weights.Read(tensor.offset, bytes.data(), bytes.size());
    ASSERT_EQ("BF16", tensor.dtype);
    writer.Tensor(GgufName(tensor.name, false), test::kGgufBf16, tensor.shape, bytes);
  }
  WriteGguf(writer);
  ConvertOptions folder = Options(DType::kInt8);
  folder.folder = ARN_FABLE_DIR;
  folder.source_name = "model";
  Run(folder);
  EXPECT_THAT(warnings_, ::testing::IsEmpty());
  Run(GgufOptions(DType::kInt8));
  EXPECT_THAT(warnings_, ::testing::IsEmpty());
  EXPECT_TRUE(test::ReadFile(folder_ / "out/model.arn") ==
              test::ReadFile(folder_ / "out/gguf.arn"));
}

}  // namespace
}  // namespace arn::convert
