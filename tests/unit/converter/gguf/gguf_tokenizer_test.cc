// Tokenizers of GGUF files give the same tables as the tokenizer.json they come from.
#include "converter/gguf/gguf_tokenizer.h"

#include "converter/gguf/gguf_model.h"
#include "nlohmann/json.hpp"
#include "tests/support/tiny_checkpoint.h"
#include "tests/support/tiny_gguf.h"
#include "tests/unit/converter/expect_error.h"

namespace arn::convert {
namespace {

using nlohmann::json;
using test::GgufWriter;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class GgufTokenizerTest : public ::testing::Test {
 protected:
  // Returns nullopt if the file has no tokenizer.
  std::optional<TokenizerTables> Read(const GgufWriter& writer) {
    const std::vector<uint8_t> bytes = writer.Encode();
    test::WriteFile(folder_ / "t.gguf", bytes.data(), bytes.size());
    warnings_.clear();
    return ReadGgufTokenizer(folder_ / "t.gguf", &warnings_);
  }
  std::string ErrorOf(const GgufWriter& writer) {
    return test::ErrorOf([&] { Read(writer); });
  }

  test::TempFolder folder_;
  std::vector<std::string> warnings_;
};

void ExpectSameTables(const TokenizerTables& wanted, const TokenizerTables& found) {
  EXPECT_EQ(wanted.n_tokens, found.n_tokens);
  EXPECT_TRUE(wanted.token_bytes == found.token_bytes);
  EXPECT_TRUE(wanted.token_offsets == found.token_offsets);
  EXPECT_TRUE(wanted.token_table == found.token_table);
  EXPECT_TRUE(wanted.merge_table == found.merge_table);
  EXPECT_EQ(wanted.byte_fallback, found.byte_fallback);
  EXPECT_EQ(wanted.ignore_merges, found.ignore_merges);
  EXPECT_EQ(wanted.unk_id, found.unk_id);
  EXPECT_EQ(wanted.prefix_ids, found.prefix_ids);
  EXPECT_EQ(wanted.suffix_ids, found.suffix_ids);
  ASSERT_EQ(wanted.normalizers.size(), found.normalizers.size());
  ASSERT_EQ(wanted.pre_tokenizers.size(), found.pre_tokenizers.size());
  for (size_t i = 0; i < wanted.pre_tokenizers.size(); ++i) {
    EXPECT_EQ(wanted.pre_tokenizers[i].kind, found.pre_tokenizers[i].kind);
    EXPECT_EQ(wanted.pre_tokenizers[i].regex, found.pre_tokenizers[i].regex);
  }
  ASSERT_EQ(wanted.decoders.size(), found.decoders.size());
  for (size_t i = 0; i < wanted.decoders.size(); ++i) {
    EXPECT_EQ(wanted.decoders[i].kind, found.decoders[i].kind);
  }
  ASSERT_EQ(wanted.added.size(), found.added.size());
  for (size_t i = 0; i < wanted.added.size(); ++i) {
    EXPECT_EQ(wanted.added[i].content, found.added[i].content);
    EXPECT_EQ(wanted.added[i].id, found.added[i].id);
    EXPECT_EQ(wanted.added[i].special, found.added[i].special);
  }
}

// Adds the tokens of a tokenizer.json by id, with the types llama.cpp's converter assigns.
void AddTokens(const json& tokenizer, GgufWriter* writer, size_t n_unused) {
  std::map<uint32_t, std::string> texts;
  for (const auto& [text, id] : tokenizer["model"]["vocab"].items()) texts[id] = text;
  std::map<uint32_t, bool> special;
  for (const json& token : tokenizer["added_tokens"]) {
    texts[token["id"]] = token["content"];
    special[token["id"]] = token["special"];
  }
  std::vector<std::string> list;
  std::vector<int32_t> types;
  for (const auto& [id, text] : texts) {
    ASSERT_EQ(list.size(), id);
    list.push_back(text);
    types.push_back(special.count(id) == 0 ? 1 : special[id] ? 3 : 4);
  }
  for (size_t i = 0; i < n_unused; ++i) {
    list.push_back("[PAD" + std::to_string(list.size()) + "]");
    types.push_back(5);
  }
  writer->Strings("tokenizer.ggml.tokens", list);
  writer->Ints("tokenizer.ggml.token_type", types);
}

TEST_F(GgufTokenizerTest, ByteLevelTokens_GiveTheTablesOfTheirTokenizerJson) {
  const std::vector<uint8_t> file = test::ReadFile(ARN_FABLE_DIR "/tokenizer.json");
  json tokenizer = json::parse(file.begin(), file.end());
  std::filesystem::create_directories(folder_ / "hf");
  for (const auto& [pre, ignore_merges] : {std::pair("gpt-2", false), {"smollm", false}}) {
    tokenizer["pre_tokenizer"] = {{"type", "ByteLevel"}, {"add_prefix_space", false}};
    if (std::string(pre) == "smollm") {
      tokenizer["pre_tokenizer"] = {
          {"type", "Sequence"},
          {"pretokenizers",
           {{{"type", "Digits"}, {"individual_digits", true}}, tokenizer["pre_tokenizer"]}}};
    }
    tokenizer["normalizer"] = nullptr;
    tokenizer["post_processor"] = nullptr;
    test::WriteFile(folder_ / "hf/tokenizer.json", tokenizer.dump());
    TokenizerTables wanted;
    std::string error;
    ASSERT_TRUE(ConvertTokenizer(folder_ / "hf", &wanted, &error)) << error;

    GgufWriter writer;
    writer.String("tokenizer.ggml.model", "gpt2");
    writer.String("tokenizer.ggml.pre", pre);
    AddTokens(tokenizer, &writer, /*n_unused=*/3);
    std::vector<std::string> merges;
    for (const json& merge : tokenizer["model"]["merges"]) {
      merges.push_back(merge.is_string()
                           ? merge.get<std::string>()
                           : merge[0].get<std::string>() + " " + merge[1].get<std::string>());
    }
    writer.Strings("tokenizer.ggml.merges", merges);
    writer.Uint("tokenizer.ggml.bos_token_id", 5);
    const std::optional<TokenizerTables> found = Read(writer);
    ASSERT_TRUE(found.has_value());
    EXPECT_THAT(warnings_, IsEmpty());
    ExpectSameTables(wanted, *found);
    EXPECT_EQ(ignore_merges, found->ignore_merges);
  }
}

GgufWriter Letters(const char* pre) {
  GgufWriter writer;
  writer.String("tokenizer.ggml.model", "gpt2");
  writer.String("tokenizer.ggml.pre", pre);
  writer.Strings("tokenizer.ggml.tokens", {"a", "b", "ab", "<s>", "</s>"});
  writer.Ints("tokenizer.ggml.token_type", {1, 1, 1, 3, 3});
  writer.Strings("tokenizer.ggml.merges", {"a b"});
  writer.Uint("tokenizer.ggml.bos_token_id", 3);
  writer.Uint("tokenizer.ggml.eos_token_id", 4);
  return writer;
}

TEST_F(GgufTokenizerTest, TokensAroundTexts_AreAsTheFileSaysOrThePreTokenizer) {
  EXPECT_THAT(Read(Letters("gpt-2"))->prefix_ids, IsEmpty());
  EXPECT_THAT(Read(Letters("llama-bpe"))->prefix_ids, ElementsAre(3));
  EXPECT_TRUE(Read(Letters("llama-bpe"))->ignore_merges);
  EXPECT_EQ(1u, Read(Letters("qwen2"))->normalizers.size());
  GgufWriter writer = Letters("llama-bpe");
  writer.Bool("tokenizer.ggml.add_bos_token", false);
  writer.Bool("tokenizer.ggml.add_eos_token", true);
  EXPECT_THAT(Read(writer)->prefix_ids, IsEmpty());
  EXPECT_THAT(Read(writer)->suffix_ids, ElementsAre(4));
}

TEST_F(GgufTokenizerTest, PreTokenizers_WarnOrAreNamed) {
  for (const char* pre : {"default", "gpt-2", "deepseek-v3"}) {
    EXPECT_TRUE(Read(Letters(pre)).has_value()) << pre;
    EXPECT_EQ(std::string(pre) == "default" ? 1u : 0u, warnings_.size()) << pre;
  }
  EXPECT_THAT(ErrorOf(Letters("brand-new")),
              AllOf(HasSubstr("t.gguf"), HasSubstr("tokenizer.ggml.pre brand-new"),
                    HasSubstr("llama-bpe")));
}

GgufWriter Pieces(const char* model) {
  GgufWriter writer;
  writer.String("tokenizer.ggml.model", model);
  writer.Strings("tokenizer.ggml.tokens", {"<unk>", "<s>", "</s>", "<0x0A>", "a", "b", "c",
                                           "\u2581", "ab", "bc", "abc", "\u2581a"});
  writer.Ints("tokenizer.ggml.token_type", {2, 3, 3, 6, 1, 1, 1, 1, 1, 1, 1, 1});
  writer.Uint("tokenizer.ggml.bos_token_id", 1);
  writer.Uint("tokenizer.ggml.eos_token_id", 2);
  writer.Uint("tokenizer.ggml.unknown_token_id", 0);
  return writer;
}

// Merges by score: "ab" before "bc", so "abc" is ab + c.
TEST_F(GgufTokenizerTest, Pieces_MergeByTheirScores) {
  json tokenizer = {
      {"normalizer",
       {{"type", "Sequence"},
        {"normalizers",
         {{{"type", "Prepend"}, {"prepend", "\u2581"}},
          {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "\u2581"}}}}}},
      {"pre_tokenizer", nullptr},
      {"post_processor",
       {{"type", "TemplateProcessing"},
        {"single",
         {{{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}},
          {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}},
        {"special_tokens", {{"<s>", {{"id", "<s>"}, {"ids", {1u}}}}}}}},
      {"decoder",
       {{"type", "Sequence"},
        {"decoders",
         {{{"type", "Replace"}, {"pattern", {{"String", "\u2581"}}}, {"content", " "}},
          {{"type", "ByteFallback"}},
          {{"type", "Fuse"}},
          {{"type", "Strip"}, {"content", " "}, {"start", 1u}, {"stop", 0u}}}}}},
      {"added_tokens",
       {{{"id", 0u}, {"content", "<unk>"}, {"special", true}, {"normalized", false}},
        {{"id", 1u}, {"content", "<s>"}, {"special", true}, {"normalized", false}},
        {{"id", 2u}, {"content", "</s>"}, {"special", true}, {"normalized", false}}}},
      {"model",
       {{"type", "BPE"},
        {"unk_token", "<unk>"},
        {"fuse_unk", true},
        {"byte_fallback", true},
        {"vocab",
         {{"<unk>", 0u},
          {"<s>", 1u},
          {"</s>", 2u},
          {"<0x0A>", 3u},
          {"a", 4u},
          {"b", 5u},
          {"c", 6u},
          {"\u2581", 7u},
          {"ab", 8u},
          {"bc", 9u},
          {"abc", 10u},
          {"\u2581a", 11u}}},
        {"merges",
         json::array({{"a", "b"}, {"\u2581", "a"}, {"b", "c"}, {"ab", "c"}, {"a", "bc"}})}}}};
  TokenizerTables wanted;
  std::string error;
  ASSERT_TRUE(ConvertTokenizerObject(tokenizer, &wanted, &error)) << error;

  GgufWriter writer = Pieces("llama");
  writer.Floats("tokenizer.ggml.scores", {0, 0, 0, 0, -9, -9, -9, -9, -1, -3, -4, -2});
  const std::optional<TokenizerTables> found = Read(writer);
  ASSERT_TRUE(found.has_value());
  EXPECT_THAT(warnings_, IsEmpty());
  ExpectSameTables(wanted, *found);

  // The file's merges instead of the scores, which may be the same for all.
  GgufWriter merged = Pieces("gemma4");
  merged.Floats("tokenizer.ggml.scores", std::vector<float>(12, -1000.0f));
  merged.Strings("tokenizer.ggml.merges", {"b c", "a bc", "\u2581 a", "a b"});
  tokenizer["model"]["merges"] =
      json::array({{"b", "c"}, {"a", "bc"}, {"\u2581", "a"}, {"a", "b"}});
  TokenizerTables by_list;
  ASSERT_TRUE(ConvertTokenizerObject(tokenizer, &by_list, &error)) << error;
  ExpectSameTables(by_list, *Read(merged));
  EXPECT_THAT(warnings_, IsEmpty());

  writer.Bool("tokenizer.ggml.add_space_prefix", false);
  writer.Bool("tokenizer.ggml.add_bos_token", false);
  const std::optional<TokenizerTables> bare = Read(writer);
  EXPECT_EQ(1u, bare->normalizers.size());
  EXPECT_EQ(3u, bare->decoders.size());
  EXPECT_THAT(bare->prefix_ids, IsEmpty());
}

// As T5's tokenizer.json: Unigram pieces, and the end token after every text.
TEST_F(GgufTokenizerTest, Unigram_GivesTheTablesOfItsTokenizerJson) {
  const json pieces = {
      {"type", "Metaspace"}, {"replacement", "\u2581"}, {"add_prefix_space", true}};
  const json tokenizer = {
      {"normalizer", nullptr},
      {"pre_tokenizer",
       {{"type", "Sequence"},
        {"pretokenizers", json::array({{{"type", "WhitespaceSplit"}}, pieces})}}},
      {"post_processor",
       {{"type", "TemplateProcessing"},
        {"single",
         {{{"Sequence", {{"id", "A"}, {"type_id", 0}}}},
          {{"SpecialToken", {{"id", "</s>"}, {"type_id", 0}}}}}},
        {"special_tokens", {{"</s>", {{"id", "</s>"}, {"ids", {1u}}}}}}}},
      {"decoder", pieces},
      {"added_tokens",
       {{{"id", 0u}, {"content", "<pad>"}, {"special", true}, {"normalized", false}},
        {{"id", 1u}, {"content", "</s>"}, {"special", true}, {"normalized", false}},
        {{"id", 2u}, {"content", "<unk>"}, {"special", true}, {"normalized", false}}}},
      {"model",
       {{"type", "Unigram"},
        {"unk_id", 2u},
        {"vocab", json::array({{"<pad>", 0.0},
                               {"</s>", 0.0},
                               {"<unk>", 0.0},
                               {"\u2581", -2.0},
                               {"a", -3.5},
                               {"\u2581a", -2.5}})}}}};
  TokenizerTables wanted;
  std::string error;
  ASSERT_TRUE(ConvertTokenizerObject(tokenizer, &wanted, &error)) << error;

  GgufWriter writer;
  writer.String("tokenizer.ggml.model", "t5");
  writer.Strings("tokenizer.ggml.tokens",
                 {"<pad>", "</s>", "<unk>", "\u2581", "a", "\u2581a", "[PAD6]"});
  writer.Ints("tokenizer.ggml.token_type", {3, 3, 2, 1, 1, 1, 5});
  writer.Floats("tokenizer.ggml.scores", {0, 0, 0, -2, -3.5f, -2.5f, -10000});
  writer.Uint("tokenizer.ggml.eos_token_id", 1);
  writer.Uint("tokenizer.ggml.unknown_token_id", 2);
  writer.Bool("tokenizer.ggml.remove_extra_whitespaces", true);
  const std::optional<TokenizerTables> found = Read(writer);
  ASSERT_TRUE(found.has_value());
  EXPECT_THAT(warnings_, IsEmpty());
  EXPECT_EQ(wanted.model, found->model);
  EXPECT_EQ(wanted.unk_score, found->unk_score);
  ExpectSameTables(wanted, *found);
}

// XLM-R: tokens around a text and between two, and words without extra blanks whatever the key
// says, which is about decoding.
TEST_F(GgufTokenizerTest, UnigramOfAnEncoder_KnowsPairs) {
  GgufWriter writer;
  writer.String("general.architecture", "bert");
  writer.String("tokenizer.ggml.model", "t5");
  writer.Strings("tokenizer.ggml.tokens", {"<s>", "<pad>", "</s>", "<unk>", "\u2581", "\u2581a"});
  writer.Ints("tokenizer.ggml.token_type", {3, 3, 3, 2, 1, 1});
  writer.Floats("tokenizer.ggml.scores", {0, 0, 0, 0, -2, -2.5f});
  writer.Uint("tokenizer.ggml.bos_token_id", 0);
  writer.Uint("tokenizer.ggml.eos_token_id", 2);
  writer.Uint("tokenizer.ggml.unknown_token_id", 3);
  for (const char* key : {"bos", "eos", "sep"}) {
    writer.Bool(std::string("tokenizer.ggml.add_") + key + "_token", true);
  }
  writer.Bool("tokenizer.ggml.remove_extra_whitespaces", false);
  const std::optional<TokenizerTables> found = Read(writer);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(2u, found->pre_tokenizers.size());
  EXPECT_THAT(found->prefix_ids, ElementsAre(0));
  EXPECT_THAT(found->suffix_ids, ElementsAre(2));
  EXPECT_TRUE(found->knows_pair);
  EXPECT_THAT(found->separator_ids, ElementsAre(2, 2));
}

TEST_F(GgufTokenizerTest, WhatDoesNotFit_IsNamed) {
  GgufWriter writer;
  writer.String("tokenizer.ggml.model", "rwkv");
  EXPECT_THAT(ErrorOf(writer), HasSubstr("tokenizer.ggml.model rwkv is not supported"));
  const auto letters = [](const std::function<void(GgufWriter&)>& add) {
    GgufWriter w;
    w.String("tokenizer.ggml.model", "gpt2");
    w.String("tokenizer.ggml.pre", "gpt-2");
    add(w);
    return w;
  };
  EXPECT_THAT(ErrorOf(letters([](GgufWriter&) {})), HasSubstr("tokenizer.ggml.tokens"));
  EXPECT_THAT(ErrorOf(letters([](GgufWriter& w) {
                w.Strings("tokenizer.ggml.tokens", {"a", "b", "a"});
                w.Strings("tokenizer.ggml.merges", {});
              })),
              AllOf(HasSubstr("tokens 0 and 2"), HasSubstr("same text")));
  EXPECT_THAT(ErrorOf(letters([](GgufWriter& w) {
                w.Strings("tokenizer.ggml.tokens", {"a", "\xFF"});
              })),
              HasSubstr("token 1 is not valid UTF-8"));
  EXPECT_THAT(ErrorOf(letters([](GgufWriter& w) {
                w.Strings("tokenizer.ggml.tokens", {"a", "b"});
                w.Ints("tokenizer.ggml.token_type", {1});
              })),
              HasSubstr("tokenizer.ggml.token_type"));
  EXPECT_THAT(ErrorOf(letters([](GgufWriter& w) {
                w.Strings("tokenizer.ggml.tokens", {"a", "b"});
                w.Strings("tokenizer.ggml.merges", {"ab"});
              })),
              HasSubstr("tokenizer.ggml.merges"));
  EXPECT_THAT(ErrorOf(letters([](GgufWriter& w) {
                w.Strings("tokenizer.ggml.tokens", {"a", "b"});
                w.Strings("tokenizer.ggml.merges", {"a c"});
              })),
              AllOf(HasSubstr("t.gguf"), HasSubstr("\"c\"")));
  EXPECT_THAT(ErrorOf(letters([](GgufWriter& w) {
                w.Strings("tokenizer.ggml.tokens", {"a", "b"});
                w.Strings("tokenizer.ggml.merges", {});
                w.Uint("tokenizer.ggml.bos_token_id", 2);
              })),
              AllOf(HasSubstr("bos_token_id"), HasSubstr("2 tokens")));
}

TEST_F(GgufTokenizerTest, NoTokenizer_IsNone) {
  EXPECT_FALSE(Read(GgufWriter()).has_value());
  GgufWriter writer;
  writer.String("tokenizer.ggml.model", "none");
  EXPECT_FALSE(Read(writer).has_value());
}

// eos, end of turn, end of message, and the end tokens of chat formats.
TEST_F(GgufTokenizerTest, EndTokens_AreAllThatEndATurn) {
  const json metadata = {
      {"tokenizer.ggml.tokens", {"a", "<|im_end|>", "b", "<eos>", "<end_of_turn>", "<|eot_id|>"}},
      {"tokenizer.ggml.token_type", {1, 3, 1, 3, 1, 4}},
      {"tokenizer.ggml.eos_token_id", 3},
      {"tokenizer.ggml.eot_token_id", 2}};
  ConfigReader reader(metadata, "m.gguf");
  EXPECT_THAT(EndTokens(&reader), ElementsAre(3, 2, 1, 5));
}

}  // namespace
}  // namespace arn::convert
