// Tokenizers of every type in a bundle: written by the converter, read through the C API, with the
// segment hashes checked.
#include <gtest/gtest.h>

#include "nlohmann/json.hpp"
#include "tests/harness/bundles.h"
#include "tests/support/tiny_checkpoint.h"

namespace arn::test {
namespace {

class TokenizerBundle : public testing::TestWithParam<const char*> {};

TEST_P(TokenizerBundle, ConvertOpenTokenize_SameIds) {
  ARN_NEEDS_CONVERTER();
  const std::filesystem::path data = SourcePath("tests/unit/text/data");
  const TempFolder folder;
  ASSERT_TRUE(Convert(data / GetParam(), folder / "t.arn", {"--tokenizer-only"}));
  arn_model_options options = ARN_MODEL_OPTIONS_INIT;
  options.verify_hashes = 1;
  char error[512] = "";
  arn_model* opened = nullptr;
  ASSERT_EQ(arn_model_open((folder / "t.arn").c_str(), &options, error, sizeof error, &opened),
            ARN_OK)
      << error;
  const ModelPtr model(opened);
  const nlohmann::json cases = nlohmann::json::parse(ReadText(data / "model_cases.json"));
  const nlohmann::json& expected = cases["tokenizers"][GetParam()];
  const nlohmann::json& texts = expected.contains("texts") ? expected["texts"] : cases["texts"];
  ASSERT_GT(expected["with_special"].size(), 10u);
  for (size_t i = 0; i < expected["with_special"].size(); ++i) {
    const std::string text = texts[i];
    std::vector<int32_t> ids(12 * text.size() + 8);
    size_t count = 0;
    ASSERT_EQ(arn_tokenize(model.get(), text.data(), text.size(), ARN_TOKENIZE_DEFAULT, nullptr, 0,
                           ids.data(), ids.size(), &count),
              ARN_OK);
    ids.resize(count);
    EXPECT_EQ(nlohmann::json(ids), expected["with_special"][i]) << "text " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Small, TokenizerBundle,
                         testing::Values("unigram_charsmap", "unigram_bytes", "word_piece",
                                         "word_level", "bpe_word_end", "bpe_subword_prefix",
                                         "pieces_unigram", "pieces_bpe"),
                         [](const auto& param) { return std::string(param.param); });

// Their last space depends on the next token; see docs/constraints.md.
TEST(TokenizerBundleConstraint, WordsThatEndWithASuffix_AreRefused) {
  ARN_NEEDS_CONVERTER();
  const TempFolder folder;
  for (const char* name : {"bpe_word_end", "word_piece"}) {
    const std::string bundle = (folder / (std::string(name) + ".arn")).string();
    ASSERT_TRUE(Convert(SourcePath("tests/unit/text/data") / name, bundle, {"--tokenizer-only"}));
    const ModelPtr model = OpenModel(bundle);
    arn_constraint_options options = ARN_CONSTRAINT_OPTIONS_INIT;
    options.kind = ARN_CONSTRAINT_REGEX;
    options.text = "a";
    options.text_bytes = 1;
    char error[512] = "";
    arn_constraint* made = nullptr;
    const arn_status status =
        arn_constraint_create(model.get(), &options, nullptr, 1 << 20, error, sizeof error, &made);
    arn_constraint_destroy(made);
    if (std::string(name) == "word_piece") {
      EXPECT_EQ(status, ARN_OK) << error;
      continue;
    }
    EXPECT_EQ(status, ARN_UNSUPPORTED);
    EXPECT_STREQ(error,
                 "constraints: not with a tokenizer whose words end with a suffix (</w>) or whose "
                 "texts lose several spaces, because what a token appends depends on the tokens "
                 "before it");
  }
}

}  // namespace
}  // namespace arn::test
