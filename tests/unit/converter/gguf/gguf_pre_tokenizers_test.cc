// Texts are split as by Hugging Face tokenizers for every tokenizer.ggml.pre that is known
// (make_pre_tokenizers.py).
#include "converter/gguf/pre_tokenizers.h"

#include <set>
#include <sstream>

#include "converter/gguf/gguf_model.h"
#include "converter/hf/json_file.h"
#include "nlohmann/json.hpp"
#include "tests/support/tiny_checkpoint.h"
#include "tests/support/tiny_gguf.h"
#include "tests/unit/converter/expect_error.h"
#include "tests/unit/text/tokenizer_fixture.h"

namespace arn::convert {
namespace {

using nlohmann::json;

class GgufPreTokenizersTest : public ::testing::Test {
 protected:
  test::LoadedTokenizer Load(const json& file, const std::string& pre) {
    test::GgufWriter writer;
    writer.String("tokenizer.ggml.model", "gpt2");
    writer.String("tokenizer.ggml.pre", pre);
    writer.Strings("tokenizer.ggml.tokens", file["tokens"].get<std::vector<std::string>>());
    std::vector<std::string> merges;
    for (const json& pair : file["merges"]) {
      merges.push_back(pair[0].get<std::string>() + " " + pair[1].get<std::string>());
    }
    writer.Strings("tokenizer.ggml.merges", merges);
    const std::vector<uint8_t> bytes = writer.Encode();
    test::WriteFile(folder_ / "t.gguf", bytes.data(), bytes.size());
    std::vector<std::string> warnings;
    const auto tables = ReadGgufTokenizer(folder_ / "t.gguf", &warnings);
    return test::LoadedTokenizer::FromImage(test::MakeImage(tables.value()));
  }

  test::TempFolder folder_;
};

TEST_F(GgufPreTokenizersTest, Texts_AreSplitAsInHuggingFaceTokenizers) {
  const json file = LoadJson(ARN_PRE_TOKENIZERS);
  const json& texts = file["texts"];
  std::set<std::string> tested;
  for (const json& row : file["rows"]) {
    for (const json& name : row["names"]) {
      const auto pre = name.get<std::string>();
      tested.insert(pre);
      const test::LoadedTokenizer tokenizer = Load(file, pre);
      ASSERT_TRUE(tokenizer.ok()) << pre << ": " << tokenizer.error();
      for (size_t i = 0; i < texts.size(); ++i) {
        EXPECT_EQ(row["ids"][i].get<std::vector<int32_t>>(),
                  tokenizer.Encode(texts[i].get<std::string>()).ids)
            << pre << ": " << texts[i];
      }
    }
  }
  std::set<std::string> known;
  std::istringstream names(PreTokenizerNames());
  for (std::string name; std::getline(names >> std::ws, name, ',');) known.insert(name);
  EXPECT_EQ(known, tested);
}

}  // namespace
}  // namespace arn::convert
