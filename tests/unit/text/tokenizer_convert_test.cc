// Conversion of tokenizer.json: supported and refused contents.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "converter/tokenizer/regex_translate.h"
#include "converter/tokenizer/tokenizer_tables.h"
#include "nlohmann/json.hpp"
#include "tests/unit/text/tokenizer_fixture.h"

namespace arn::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// a..e and two merges; BOS and EOS are added tokens.
json Small() {
  return json::parse(R"({
    "added_tokens": [
      {"id": 7, "content": "<s>", "special": true, "normalized": false},
      {"id": 8, "content": "</s>", "special": true, "normalized": false}],
    "normalizer": null, "pre_tokenizer": null, "post_processor": null, "decoder": {"type": "Fuse"},
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "c": 2, "d": 3, "e": 4, "ab": 5, "abc": 6},
              "merges": [["a", "b"], ["ab", "c"]]}})");
}

class TokenizerConvert : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) /
              (std::string("arn_") + testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  void Write(const char* name, const std::string& text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  // Returns the error, or "" on success.
  std::string Convert(const json& tokenizer) {
    Write("tokenizer.json", tokenizer.dump());
    std::string error;
    tables_ = {};
    return convert::ConvertTokenizer(folder_, &tables_, &error) ? "" : error;
  }
  std::string ErrorOf(const std::function<void(json*)>& change) {
    json tokenizer = Small();
    change(&tokenizer);
    return Convert(tokenizer);
  }

  fs::path folder_;
  convert::TokenizerTables tables_;
};

TEST_F(TokenizerConvert, Small_Encodes) {
  Write("tokenizer.json", Small().dump());
  const auto t = LoadedTokenizer::FromFolder(folder_);
  ASSERT_TRUE(t.ok()) << t.error();
  EXPECT_EQ(t.Encode("abcabd<s>e").ids, (std::vector<int32_t>{6, 5, 3, 7, 4}));
  EXPECT_EQ(t.Decode({6, 7, 4}, false), "abc<s>e");
  EXPECT_EQ(t.Decode({6, 7, 4}, true), "abce");
}

TEST_F(TokenizerConvert, UnsupportedKinds_RefusedByName) {
  const std::pair<const char*, const char*> kinds[] = {
      {"normalizer", "Unheard"}, {"pre_tokenizer", "FixedLength"},
      {"decoder", "CTC"},        {"post_processor", "Unheard"},
      {"model", "Unheard"},
  };
  for (const auto& [place, kind] : kinds) {
    const std::string error =
        ErrorOf([place = place, kind = kind](json* t) { (*t)[place]["type"] = kind; });
    EXPECT_EQ(error,
              std::string("tokenizer.json: ") + place + ".type \"" + kind + "\" is not supported");
  }
  EXPECT_EQ(ErrorOf([](json* t) {
              (*t)["normalizer"] = json::parse(
                  R"({"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Unheard"}]})");
            }),
            "tokenizer.json: normalizer.normalizers[1].type \"Unheard\" is not supported");
}

TEST_F(TokenizerConvert, UnsupportedSettings_RefusedWithTheirPlace) {
  const auto model = [this](const char* key, const json& value) {
    return ErrorOf([&](json* t) { (*t)["model"][key] = value; });
  };
  EXPECT_EQ(model("dropout", 0.1), "tokenizer.json: model.dropout 0.1 is not supported");
  EXPECT_EQ(model("dropout", 0.0), "");
  EXPECT_EQ(model("continuing_subword_prefix", "##"),
            "tokenizer.json: model.merges[0] has a right side without the prefix");
  EXPECT_EQ(model("continuing_subword_prefix", ""), "");
  EXPECT_EQ(ErrorOf([](json* t) {
              (*t)["model"]["byte_fallback"] = true;
              (*t)["model"]["end_of_word_suffix"] = "</w>";
            }),
            "tokenizer.json: model.byte_fallback is true with a prefix or suffix of words, which "
            "is not supported");
  EXPECT_EQ(model("unk_token", "<unk>"), "tokenizer.json: model.unk_token is not in model.vocab");
  EXPECT_EQ(model("merges", json::parse(R"([["a", "x"]])")),
            "tokenizer.json: model.merges[0] has the token \"x\", not in model.vocab");
  EXPECT_EQ(model("merges", json::parse(R"(["a b c"])")),
            "tokenizer.json: model.merges[0] is \"a b c\", expected two tokens and a space between "
            "them");
  EXPECT_EQ(model("vocab", json::parse(R"({"a": 0, "b": 0})")),
            "tokenizer.json: model.vocab gives the id 0 to \"a\" and to \"b\"");
  EXPECT_NE(model("vocab", json::parse(R"({"a": -1})")).find("the id -1"), std::string::npos);
  EXPECT_EQ(model("byte_fallback", 3),
            "tokenizer.json: model.byte_fallback is 3, expected true or false");
}

// The bundle lacks the trees that constraints need.
TEST_F(TokenizerConvert, WordsThatEndWithASuffix_HaveNoByteTree) {
  json tokenizer = Small();
  ASSERT_EQ(Convert(tokenizer), "");
  EXPECT_FALSE(tables_.byte_tree.empty());
  EXPECT_TRUE(tables_.warnings.empty());
  tokenizer["decoder"] = {{"type", "BPEDecoder"}, {"suffix", "</w>"}};
  ASSERT_EQ(Convert(tokenizer), "");
  EXPECT_TRUE(tables_.byte_tree.empty());
  ASSERT_EQ(tables_.warnings.size(), 1u);
  EXPECT_EQ(tables_.warnings[0],
            "tokenizer: words end with a suffix or texts lose several spaces: the bundle has no "
            "constraints (JSON schemas, grammars, tool calls)");
}

TEST_F(TokenizerConvert, AddedTokens_IdsOfTheReferenceOnly) {
  EXPECT_EQ(ErrorOf([](json* t) { (*t)["added_tokens"][1]["id"] = 9; }),
            "tokenizer.json: added_tokens[1].id is 9, expected 8 (the id that Hugging Face "
            "tokenizers gives to \"</s>\")");
  EXPECT_EQ(ErrorOf([](json* t) { (*t)["added_tokens"][1]["content"] = "<s>"; }),
            "tokenizer.json: added_tokens[1].content appears twice");
  // A token from the vocabulary keeps its id.
  EXPECT_EQ(ErrorOf([](json* t) {
              (*t)["added_tokens"] = json::parse(
                  R"([{"id": 4, "content": "e", "special": true, "normalized": false}])");
            }),
            "");
}

TEST_F(TokenizerConvert, Decoders_OutOfOrder_Refused) {
  const auto decoders = [this](const char* list) {
    return ErrorOf([&](json* t) {
      (*t)["decoder"] = {{"type", "Sequence"}, {"decoders", json::parse(list)}};
    });
  };
  EXPECT_EQ(decoders(R"([{"type": "ByteFallback"}, {"type": "Fuse"},
                         {"type": "Strip", "content": " ", "start": 1, "stop": 0}])"),
            "");
  EXPECT_NE(decoders(R"([{"type": "Fuse"}, {"type": "ByteFallback"}])").find("ByteFallback"),
            std::string::npos);
  EXPECT_NE(decoders(R"([{"type": "Strip", "content": " ", "start": 1, "stop": 0}])").find("Strip"),
            std::string::npos);
  EXPECT_NE(decoders(R"([{"type": "ByteLevel"}])").find("the pre_tokenizer is not"),
            std::string::npos);
}

TEST_F(TokenizerConvert, MergesAsText_SameTables) {
  ASSERT_EQ(Convert(Small()), "");
  const convert::TokenizerTables pairs = tables_;
  ASSERT_EQ(ErrorOf([](json* t) {
              (*t)["model"]["merges"] = {"#version: 0.2", "a b", "ab c"};
            }),
            "");
  EXPECT_EQ(tables_.merge_table, pairs.merge_table);
  EXPECT_EQ(tables_.token_table, pairs.token_table);
}

TEST_F(TokenizerConvert, BadFiles_Explained) {
  std::string error;
  EXPECT_FALSE(convert::ConvertTokenizer(folder_ / "nowhere", &tables_, &error));
  EXPECT_NE(error.find("tokenizer.json: cannot be opened"), std::string::npos) << error;
  Write("tokenizer.json", "{\"model\": ");
  EXPECT_FALSE(convert::ConvertTokenizer(folder_, &tables_, &error));
  EXPECT_NE(error.find("not valid JSON"), std::string::npos) << error;
  Write("tokenizer.json", "[]");
  EXPECT_FALSE(convert::ConvertTokenizer(folder_, &tables_, &error));
  EXPECT_EQ(error, "tokenizer.json: is [], expected an object");
}

// As in transformers 5: ignores the settings of tokenizer_config.json.
TEST_F(TokenizerConvert, SpecialTokensAround_OfThePostProcessor) {
  json with_template = Small();
  with_template["post_processor"] = json::parse(R"({"type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
               {"Sequence": {"id": "A", "type_id": 0}}],
    "pair": [], "special_tokens": {"<s>": {"id": "<s>", "ids": [7], "tokens": ["<s>"]}}})");
  using Ids = std::vector<uint32_t>;
  ASSERT_EQ(Convert(with_template), "");
  EXPECT_EQ(tables_.prefix_ids, Ids{7});
  EXPECT_EQ(tables_.suffix_ids, Ids{});
  EXPECT_TRUE(tables_.warnings.empty());
  ASSERT_EQ(Convert(Small()), "");
  EXPECT_EQ(tables_.prefix_ids, Ids{});

  Write("tokenizer_config.json", R"({"bos_token": "<s>", "eos_token": {"content": "</s>"},
    "add_bos_token": true, "add_eos_token": true})");
  ASSERT_EQ(Convert(with_template), "");
  EXPECT_EQ(tables_.prefix_ids, Ids{7});
  EXPECT_EQ(tables_.suffix_ids, Ids{});
  ASSERT_EQ(tables_.warnings.size(), 1u);
  EXPECT_EQ(tables_.warnings[0],
            "tokenizer_config.json: add_eos_token is true, but the post_processor of "
            "tokenizer.json applies");
  ASSERT_EQ(Convert(Small()), "");
  EXPECT_EQ(tables_.prefix_ids, Ids{});
  EXPECT_EQ(tables_.warnings.size(), 2u);
}

TEST_F(TokenizerConvert, SpecialTokenIds_FromEitherFile) {
  Write("tokenizer_config.json", R"({"bos_token": {"content": "<s>"}, "pad_token": null})");
  Write("special_tokens_map.json", R"({"bos_token": "a", "eos_token": "</s>"})");
  ASSERT_EQ(Convert(Small()), "");
  EXPECT_EQ(tables_.bos_id, 7);
  EXPECT_EQ(tables_.eos_id, 8);
  EXPECT_EQ(tables_.pad_id, -1);
}

TEST(RegexTranslate, OnigurumaSyntax_Pcre2Syntax) {
  using convert::TranslateRegex;
  const std::pair<const char*, const char*> pairs[] = {
      {R"(\p{L}+|\p{Letter}?)", R"(\p{L}+|\p{L}?)"},
      {R"(\p{N}{1,3}+)", R"(\p{N}+)"},
      {R"(x{2,3}+)", R"((?:x{2,3})+)"},
      {R"([a-z]++)", R"([a-z]++)"},
      {R"(^a$)", R"((?m:^)a(?m:$))"},
      {R"(\p{Han})", R"(\p{sc:Han})"},
      {R"(\P{^Lu})", R"(\p{Lu})"},
      {R"(a(?i)b|c)", R"(a(?i:b|c))"},
      {R"((?m:.))", R"((?s:.))"},
      {R"((?<n>a)(b))", R"((?:a)(?:b))"},
      {R"(\u00e9\x41)", R"(\x{00e9}\x{41})"},
      {R"(a{,2}b{c)", R"(a{,2}b\{c)"},
      {R"((?=a)(?!b)(?<=c)(?<!d)(?>e))", R"((?=a)(?!b)(?<=c)(?<!d)(?>e))"},
      {R"([^\S\n])", R"([^\P{White_Space}\n])"},
      {R"(\h)", R"([0-9A-Fa-f])"},
      {R"([a[bc]d])", R"([abcd])"},
      {R"([^(\d|[.,])])", R"([^(\d|.,)])"},
      {R"([[^a]])", R"([^a])"},
      {R"([^[^a b]])", R"((?[ !([^a\x{20}b]) ]))"},
      {R"([a-z&&[^b]])", R"((?[ ([a-z] & [^b]) ]))"},
      {R"([^a-z&&b[^c]])", R"((?[ !([a-z] & ([b] + [^c])) ]))"},
      {R"([\Hx])", R"((?[ ([x] + [^0-9A-Fa-f]) ]))"},
  };
  for (const auto& [from, to] : pairs) EXPECT_EQ(TranslateRegex(from), to);
}

TEST(RegexTranslate, NoEqual_Refused) {
  for (const char* pattern : {R"((a)\1)",
                              R"([[:alpha:]])",
                              R"([a-[b]])",
                              R"([[b]-c])",
                              R"([a&&])",
                              R"([a[^\x00-\x{FF}]])",
                              R"(\X)",
                              R"(\K)",
                              R"(\G)",
                              R"(a{2}?)",
                              R"(a**)",
                              R"((?~a))",
                              R"((?#c))",
                              R"([]a])",
                              R"([a[b)",
                              "(a",
                              "a)",
                              "[a",
                              R"(\p{NoSuch})",
                              R"(\xE9)",
                              "*",
                              "\\"}) {
    EXPECT_THROW(convert::TranslateRegex(pattern), std::invalid_argument) << pattern;
  }
}

TEST_F(TokenizerConvert, Unigram_BadParts_RefusedWithTheirPlace) {
  const auto unigram = [this](const std::function<void(json*)>& change) {
    json t = json::parse(R"({"model": {"type": "Unigram", "unk_id": 0,
                                       "vocab": [["<unk>", 0], ["a", -1.5], ["b", -2]]}})");
    change(&t);
    return Convert(t);
  };
  EXPECT_EQ(unigram([](json*) {}), "");
  EXPECT_EQ(unigram([](json* t) { (*t)["model"]["unk_id"] = 3; }),
            "tokenizer.json: model.unk_id is 3 of 3 tokens");
  EXPECT_EQ(unigram([](json* t) { (*t)["model"]["vocab"][1] = {"a"}; }),
            "tokenizer.json: model.vocab[1] is not a string and its score");
  EXPECT_EQ(unigram([](json* t) { (*t)["model"]["vocab"][1][1] = "x"; }),
            "tokenizer.json: model.vocab[1] has a score that is not a number");
  EXPECT_EQ(unigram([](json* t) { (*t)["model"]["alpha"] = 0.5; }),
            "tokenizer.json: model.alpha 0.5 is not supported");
}

TEST_F(TokenizerConvert, Unigram_NoUnknownToken_EncodingFailsWithAReason) {
  Write("tokenizer.json", R"({"model": {"type": "Unigram", "vocab": [["a", -1], ["b", -2]]}})");
  const auto t = LoadedTokenizer::FromFolder(folder_);
  ASSERT_TRUE(t.ok()) << t.error();
  EXPECT_EQ(t.Encode("abba").ids, (std::vector<int32_t>{0, 1, 1, 0}));
  EXPECT_EQ(t.Encode("abc").status, Status::kBadArgument);
  EXPECT_NE(t.Encode("abc").error.find("no token"), std::string::npos);
}

// Scores are the doubles from the reference's JSON parser, not the nearest ones.
TEST_F(TokenizerConvert, Unigram_Scores_AsTheReferenceReadsThem) {
  const std::string text = R"({"model": {"type": "Unigram", "unk_id": 0, "vocab": [
      ["a", -2.0122928619384766], ["b", -3.9598512649536133], ["c", 1e-3], ["d", -7]]}})";
  std::string error;
  ASSERT_TRUE(convert::ConvertTokenizerJson(text, &tables_, &error)) << error;
  std::vector<double> scores(4);
  ASSERT_EQ(tables_.scores.size(), sizeof(double) * 4);
  std::memcpy(scores.data(), tables_.scores.data(), tables_.scores.size());
  EXPECT_EQ(scores, (std::vector<double>{-2.012292861938477, -3.9598512649536137, 1e-3, -7}));
  EXPECT_EQ(tables_.unk_score, -17);
}

TEST_F(TokenizerConvert, Precompiled_BadTable_Refused) {
  const auto table = [this](const char* base64) {
    return ErrorOf([&](json* t) {
      (*t)["normalizer"] = {{"type", "Precompiled"}, {"precompiled_charsmap", base64}};
    });
  };
  const std::string place = "tokenizer.json: normalizer.precompiled_charsmap ";
  EXPECT_EQ(table("!"), place + "is not base64");
  EXPECT_EQ(table(""), place + "is not a compiled table");
  EXPECT_EQ(table("/////wAA"), place + "is not a compiled table");
}

TEST_F(TokenizerConvert, SentencePiece_NotAModel_Refused) {
  std::string error;
  EXPECT_FALSE(convert::ConvertSentencePieceBytes("\x0A\x7F", &tables_, &error));
  EXPECT_EQ(error, "tokenizer.model: ends inside a field");
  EXPECT_FALSE(convert::ConvertSentencePieceBytes("", &tables_, &error));
  EXPECT_EQ(error, "tokenizer.model: has no pieces");
  // One piece "a", trainer_spec.model_type 3.
  EXPECT_FALSE(convert::ConvertSentencePieceBytes(std::string("\x0A\x03\x0A\x01"
                                                              "a\x12\x02\x18\x03"),
                                                  &tables_, &error));
  EXPECT_EQ(error, "tokenizer.model: model_type WORD is not supported");
}

// A piece merges only if both of its parts are normal pieces.
TEST_F(TokenizerConvert, SentencePiece_PieceOfAControlSymbol_NoMerge) {
  const auto piece = [](const std::string& text, char type) {
    // 1: text, 2: a score of -1, 3: type
    const std::string body = std::string("\x0A") + static_cast<char>(text.size()) + text +
                             std::string("\x15\x00\x00\x80\xBF\x18", 6) + type;
    return std::string("\x0A") + static_cast<char>(body.size()) + body;
  };
  const std::string bpe("\x12\x02\x18\x02", 4);
  std::string error;
  ASSERT_TRUE(convert::ConvertSentencePieceBytes(
      piece("?", 2) + piece("a", 3) + piece("b", 1) + piece("ab", 1) + bpe, &tables_, &error))
      << error;
  const auto t = LoadedTokenizer::FromImage(MakeImage(tables_));
  ASSERT_TRUE(t.ok()) << t.error();
  EXPECT_FALSE(
      convert::ConvertSentencePieceBytes(piece("?", 2) + piece("\x80", 1) + bpe, &tables_, &error));
  EXPECT_EQ(error, "tokenizer.model: piece 1 is not UTF-8");
}

// The files next to the model define added tokens, BOS and EOS.
TEST_F(TokenizerConvert, SentencePiece_FilesBesideIt_Count) {
  fs::copy_file(fs::path(ARN_TEXT_TEST_DATA) / "pieces_bpe" / "tokenizer.model",
                folder_ / "tokenizer.model");
  Write("tokenizer_config.json", R"({"add_bos_token": false, "add_eos_token": true,
      "eos_token": "</s>", "added_tokens_decoder": {"560": {"content": "<|end|>", "special": true},
                                                    "1": {"content": "<s>", "special": true}}})");
  const auto t = LoadedTokenizer::FromFolder(folder_);
  ASSERT_TRUE(t.ok()) << t.error();
  const auto ids = t.Encode("fox<|end|>", true).ids;
  ASSERT_GT(ids.size(), 2u);
  EXPECT_EQ(ids[ids.size() - 2], 560);
  EXPECT_EQ(ids.back(), 2);
  EXPECT_TRUE(t->IsSpecial(560));
  // The text of another token.
  Write("tokenizer_config.json", R"({"added_tokens_decoder": {"561": {"content": "a"}}})");
  EXPECT_NE(LoadedTokenizer::FromFolder(folder_).error().find("an id of another token"),
            std::string::npos);
}

}  // namespace
}  // namespace arn::test
