// Tokenizers of GGUF files as whole tokenizer.json texts, and each key that changes one.
#include <cmath>

#include "tests/unit/converter/gguf/gguf_config_fixture.h"

namespace arn::convert {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// The keys after "tokenizer.ggml.".
json Changed(json keys, const json& changes) {
  if (!changes.is_null()) keys.merge_patch(changes);
  return keys;
}

json Added(uint32_t id, const char* text, bool is_special) {
  return {{"id", id},        {"content", text},      {"special", is_special}, {"lstrip", false},
          {"rstrip", false}, {"single_word", false}, {"normalized", false}};
}

json Special(const char* text, uint32_t type = 0) {
  return {{"SpecialToken", {{"id", text}, {"type_id", type}}}};
}
json Sequence(const char* name, uint32_t type = 0) {
  return {{"Sequence", {{"id", name}, {"type_id", type}}}};
}
json Of(const char* text, uint32_t id) { return {{"id", text}, {"ids", json::array({id})}}; }

const json kWords = {
    {"model", "bert"},
    {"tokens", {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "\u2581ab", "c", "\u2581[", "", "\u2581x"}},
    {"token_type", {3, 3, 3, 3, 1, 1, 1, 1, 5}}};

TEST(GgufWords, AreAWholeTokenizer) {
  const json wanted = {
      {"normalizer",
       {{"type", "BertNormalizer"},
        {"clean_text", true},
        {"handle_chinese_chars", true},
        {"strip_accents", nullptr},
        {"lowercase", true}}},
      {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
      {"decoder", {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}}},
      {"post_processor",
       {{"type", "TemplateProcessing"},
        {"single", {Special("[CLS]"), Sequence("A"), Special("[SEP]")}},
        {"pair",
         {Special("[CLS]"), Sequence("A"), Special("[SEP]"), Sequence("B", 1),
          Special("[SEP]", 1)}},
        {"special_tokens", {{"[CLS]", Of("[CLS]", 2)}, {"[SEP]", Of("[SEP]", 3)}}}}},
      {"added_tokens",
       {Added(0, "[PAD]", true), Added(1, "[UNK]", true), Added(2, "[CLS]", true),
        Added(3, "[SEP]", true)}},
      {"model",
       {{"type", "WordPiece"},
        {"unk_token", "[UNK]"},
        {"continuing_subword_prefix", "##"},
        {"max_input_chars_per_word", 100},
        {"vocab",
         {{"[PAD]", 0},
          {"[UNK]", 1},
          {"[CLS]", 2},
          {"[SEP]", 3},
          {"ab", 4},
          {"##c", 5},
          {"[", 6}}}}}};
  EXPECT_EQ(wanted, TokenizerOf(kWords));
}

// A piece with a capital letter is one of a model that keeps them, but for what looks like a mark.
TEST(GgufWords, Capitals) {
  const auto lowers = [](const json& changes) {
    return TokenizerOf(Changed(kWords, changes))["normalizer"]["lowercase"];
  };
  const auto with = [](const char* piece) {
    json tokens = kWords["tokens"];
    tokens[4] = piece;
    return json({{"tokens", tokens}});
  };
  for (const char* piece : {"\u2581aA", "\u2581Z", "Z", "xMx"}) {
    EXPECT_EQ(false, lowers(with(piece))) << piece;
  }
  for (const char* piece : {"\u2581[A]", "\u2581@", "\u2581`", "\u2581\u00C4"}) {
    EXPECT_EQ(true, lowers(with(piece))) << piece;
  }
  EXPECT_EQ(false, lowers({{"normalizer.lowercase", false}}));
  json said = with("Z");
  said["normalizer.lowercase"] = true;
  EXPECT_EQ(true, lowers(said));
  for (const bool strips : {true, false}) {
    const json tokenizer = TokenizerOf(Changed(kWords, {{"normalizer.strip_accents", strips}}));
    EXPECT_EQ(strips, tokenizer["normalizer"]["strip_accents"]);
  }
}

// The tokens around texts are those of a key, of another key, or those of the usual texts.
TEST(GgufWords, Marks) {
  const auto marks = [](const json& changes) {
    const json tokenizer = TokenizerOf(Changed(kWords, changes));
    const json& single = tokenizer["post_processor"]["single"];
    return json({single[0]["SpecialToken"]["id"], single[2]["SpecialToken"]["id"],
                 tokenizer["model"]["unk_token"]});
  };
  EXPECT_EQ(json({"[CLS]", "[SEP]", "[UNK]"}), marks({}));
  EXPECT_EQ(json({"[PAD]", "[CLS]", "\u2581ab"}),
            marks({{"bos_token_id", 0}, {"eos_token_id", 2}, {"unknown_token_id", 4}}));
  EXPECT_EQ(json({"[UNK]", "c", "[UNK]"}), marks({{"bos_token_id", 0},
                                                  {"cls_token_id", 1},
                                                  {"eos_token_id", 2},
                                                  {"seperator_token_id", 5}}));
  const auto error = [](const char* gone, const char* key) {
    json tokens = kWords["tokens"];
    for (json& token : tokens) {
      if (token == gone) token = "other";
    }
    EXPECT_EQ(std::string("t.gguf: tokenizer.ggml.") + key +
                  ": expected the number of a token, found nothing",
              TokenizerError(kWords, {{"tokens", tokens}}));
  };
  error("[CLS]", "cls_token_id");
  error("[SEP]", "seperator_token_id");
  error("[UNK]", "unknown_token_id");
  EXPECT_EQ("t.gguf: tokenizer.ggml.cls_token_id: expected the number of one of 9 tokens, found 9",
            TokenizerError(kWords, {{"cls_token_id", 9}}));
}

const json kBytes = {{"model", "gpt2"},
                     {"pre", "gpt-2"},
                     {"tokens", {"a", "b", "ab", "<s>", "</s>", "<x>"}},
                     {"token_type", {1, 1, 1, 3, 3, 4}},
                     {"merges", {"a b"}},
                     {"bos_token_id", 3},
                     {"eos_token_id", 4}};

TEST(GgufBytes, AreAWholeTokenizer) {
  const json tokenizer = TokenizerOf(Changed(kBytes, {{"merges", {"a b", "  c", "x y z"}}}));
  EXPECT_EQ(json({{"type", "BPE"},
                  {"ignore_merges", false},
                  {"vocab", {{"a", 0}, {"b", 1}, {"ab", 2}}},
                  {"merges", json::parse(R"([["a","b"],[" ","c"],["x","y z"]])")}}),
            tokenizer["model"]);
  EXPECT_EQ(json({{"type", "ByteLevel"}}), tokenizer["decoder"]);
  EXPECT_EQ(json({Added(3, "<s>", true), Added(4, "</s>", true), Added(5, "<x>", false)}),
            tokenizer["added_tokens"]);
  EXPECT_TRUE(tokenizer["post_processor"].is_null());
}

// Added tokens behind the others are in no vocabulary, unless there is a gap before them.
TEST(GgufBytes, AddedTokensBehindTheOthers) {
  const auto vocab = [](const json& tokens, const json& types) {
    return TokenizerOf(Changed(kBytes, {{"tokens", tokens},
                                        {"token_type", types},
                                        {"merges", json::array()},
                                        {"bos_token_id", nullptr},
                                        {"eos_token_id", nullptr}}))["model"]["vocab"];
  };
  EXPECT_EQ(json({{"a", 0}, {"b", 1}}), vocab({"a", "b", "c", "d"}, {1, 1, 3, 4}));
  EXPECT_EQ(json({{"a", 0}, {"b", 1}, {"c", 2}}), vocab({"a", "b", "c", "d"}, {1, 3, 1, 4}));
  EXPECT_EQ(json({{"a", 0}}), vocab({"a", "b", "c", "d"}, {1, 3, 5, 5}));
  // A gap: an unused token or one without text.
  EXPECT_EQ(json({{"a", 0}, {"c", 2}, {"d", 3}}), vocab({"a", "b", "c", "d"}, {1, 5, 3, 4}));
  EXPECT_EQ(json({{"a", 0}, {"c", 2}, {"d", 3}}), vocab({"a", "", "c", "d"}, {1, 1, 2, 4}));
  EXPECT_EQ(json::object(), vocab({"a", "b"}, {5, 5}));
  // Two unused tokens may have the same text, and so may two without one.
  EXPECT_EQ(json({{"a", 0}}), vocab({"a", "a", "", ""}, {1, 5, 1, 1}));
}

TEST(GgufBytes, TokensAroundTexts) {
  const auto around = [](const json& changes) {
    return TokenizerOf(Changed(kBytes, changes))["post_processor"];
  };
  const json begin = {{"<s>", Of("<s>", 3)}}, end = {{"</s>", Of("</s>", 4)}};
  json both = begin;
  both.update(end);
  EXPECT_EQ(json({{"type", "TemplateProcessing"},
                  {"single", {Special("<s>"), Sequence("A")}},
                  {"special_tokens", begin}}),
            around({{"add_bos_token", true}}));
  EXPECT_EQ(json({{"type", "TemplateProcessing"},
                  {"single", {Sequence("A"), Special("</s>")}},
                  {"special_tokens", end}}),
            around({{"add_eos_token", true}}));
  const json whole = {{"type", "TemplateProcessing"},
                      {"single", {Special("<s>"), Sequence("A"), Special("</s>")}},
                      {"special_tokens", both}};
  EXPECT_EQ(whole, around({{"add_bos_token", true}, {"add_eos_token", true}}));
  // A separator needs an end; without one of its own it is the end.
  const json pair = {{"add_bos_token", true}, {"add_eos_token", true}, {"add_sep_token", true}};
  json with_pair = whole;
  with_pair["pair"] = {Special("<s>"),  Sequence("A"), Special("</s>"),
                       Special("</s>"), Sequence("B"), Special("</s>")};
  EXPECT_EQ(with_pair, around(pair));
  with_pair["pair"][3] = Special("<x>");
  with_pair["special_tokens"]["<x>"] = Of("<x>", 5);
  EXPECT_EQ(with_pair, around(Changed(pair, {{"seperator_token_id", 5}})));
  EXPECT_FALSE(around(Changed(pair, {{"add_eos_token", false}})).contains("pair"));
  EXPECT_TRUE(around({{"add_bos_token", true}, {"bos_token_id", nullptr}}).is_null());
  EXPECT_TRUE(around({{"add_eos_token", true}, {"eos_token_id", -1}}).is_null());
}

TEST(GgufBytes, UnknownSplitting_IsTold) {
  const auto warnings = [](const json& pre) {
    std::vector<std::string> list;
    TokenizerOf(Changed(kBytes, {{"pre", pre}}), &list);
    return list;
  };
  EXPECT_THAT(warnings("gpt-2"), IsEmpty());
  EXPECT_THAT(warnings("default"), ElementsAre("t.gguf: tokenizer.ggml.pre is default: texts may "
                                               "be split differently than in training"));
  EXPECT_THAT(warnings(json()), ElementsAre("t.gguf: tokenizer.ggml.pre is absent: texts may be "
                                            "split differently than in training"));
}

const json kPair = {{"model", "llama"},
                    {"tokens", {"<unk>", "a", "\u2581", "<0x41>"}},
                    {"token_type", {2, 1, 1, 6}},
                    {"scores", {0, -1, -2, 0}}};

TEST(GgufPieces, AreAWholeTokenizer) {
  const json spaced = {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "\u2581"}};
  const json wanted = {
      {"normalizer",
       {{"type", "Sequence"},
        {"normalizers", {{{"type", "Prepend"}, {"prepend", "\u2581"}}, spaced}}}},
      {"pre_tokenizer", nullptr},
      {"decoder",
       {{"type", "Sequence"},
        {"decoders",
         {{{"type", "Replace"}, {"pattern", {{"String", "\u2581"}}}, {"content", " "}},
          {{"type", "ByteFallback"}},
          {{"type", "Fuse"}},
          {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}}}}}},
      {"post_processor", nullptr},
      {"added_tokens", json::array({Added(0, "<unk>", true)})},
      {"model",
       {{"type", "BPE"},
        {"fuse_unk", true},
        {"byte_fallback", true},
        {"unk_token", "<unk>"},
        {"vocab", {{"<unk>", 0}, {"a", 1}, {"\u2581", 2}, {"<0x41>", 3}}},
        {"merges", json::array()}}}};
  EXPECT_EQ(wanted, TokenizerOf(kPair));
  EXPECT_EQ(
      json::array({spaced}),
      TokenizerOf(Changed(kPair, {{"add_space_prefix", false}}))["normalizer"]["normalizers"]);
  // The first unknown token, unless a key names another; 0 is a number, too.
  const json two = {{"token_type", {1, 2, 2, 6}}};
  EXPECT_EQ("a", TokenizerOf(Changed(kPair, two))["model"]["unk_token"]);
  EXPECT_EQ("<unk>", TokenizerOf(Changed(Changed(kPair, two),
                                         {{"unknown_token_id", 0}}))["model"]["unk_token"]);
  EXPECT_EQ(
      "t.gguf: tokenizer.ggml.unknown_token_id: expected the number of one of 4 tokens, "
      "found 4",
      TokenizerError(kPair, {{"unknown_token_id", 4}}));
  EXPECT_EQ("t.gguf: tokenizer.ggml.scores: expected a score for each token, found nothing",
            TokenizerError(kPair, {{"scores", nullptr}}));
}

// Scores that are all the same, of normal tokens, say nothing; the file's merges do.
TEST(GgufPieces, FlatScores_AreTold) {
  const auto warnings = [](const json& changes) {
    std::vector<std::string> list;
    TokenizerOf(Changed(kPair, changes), &list);
    return list;
  };
  const auto told = ElementsAre(
      "t.gguf: tokenizer.ggml.scores are all the same: texts may be split differently than in "
      "training");
  EXPECT_THAT(warnings({{"scores", {7, -1, -1, -1}}}), told);
  EXPECT_THAT(warnings({{"scores", {-1, -1, -1, -1}}}), told);
  EXPECT_THAT(warnings({{"scores", {0, -1, -1.5, -1}}}), IsEmpty());
  EXPECT_THAT(
      warnings({{"scores", {-1, -1, -1, -1}}, {"model", "gemma4"}, {"merges", {"\u2581 a"}}}),
      IsEmpty());
  EXPECT_EQ(json::parse(R"([["\u2581","a"]])"),
            TokenizerOf(Changed(
                kPair, {{"model", "gemma4"}, {"merges", {"\u2581 a"}}}))["model"]["merges"]);
}

// Merges only of normal pieces, cut between characters; the same score: the longer left piece, in
// characters, and then the longer right one.
TEST(GgufPieces, MergesOfScores) {
  const auto merges = [](const json& tokens, const json& types, const json& scores) {
    return TokenizerOf({{"model", "llama"},
                        {"tokens", tokens},
                        {"token_type", types},
                        {"scores", scores}})["model"]["merges"];
  };
  EXPECT_EQ(json::parse(R"([["a","b"]])"), merges({"a", "b", "ab"}, {1, 1, 1}, {0, -1, -2}));
  EXPECT_EQ(json::array(), merges({"a", "b", "ab"}, {1, 1, 4}, {0, -1, -2}));
  EXPECT_EQ(json::array(), merges({"a", "b", "ab"}, {1, 3, 1}, {0, -1, -2}));
  EXPECT_EQ(json::parse(R"([["\u00E9","b"],["a","\u00E9"]])"),
            merges({"\u00E9", "a", "b", "a\u00E9", "\u00E9b"}, {1, 1, 1, 1, 1}, {0, 0, 0, -3, -2}));
  // "\u00E9\u00E9" has more bytes than "aaa", and fewer characters.
  EXPECT_EQ(json::parse(R"([["aaa","x"],["\u00E9\u00E9","x"]])"),
            merges({"\u00E9\u00E9", "\u00E9\u00E9x", "x", "aaa", "aaax"}, {1, 1, 1, 1, 1},
                   {0, -1, 0, 0, -1}));
  EXPECT_EQ(json::parse(R"([["x","aaa"],["x","\u00E9\u00E9"]])"),
            merges({"\u00E9\u00E9", "x\u00E9\u00E9", "x", "aaa", "xaaa"}, {1, 1, 1, 1, 1},
                   {0, -1, 0, 0, -1}));
  // What is alike in all of it keeps the order of the pieces.
  EXPECT_EQ(json::parse(R"([["b","x"],["a","x"]])"),
            merges({"a", "b", "x", "bx", "ax"}, {1, 1, 1, 1, 1}, {0, 0, 0, -1, -1}));
}

// Every part of a piece of a megabyte would be 500 GB.
TEST(GgufPieces, ALongPiece_CostsItsLength) {
  json tokens = {"a", "b"};
  tokens.push_back(std::string(1 << 20, 'a') + "b");
  tokens.push_back(std::string(1 << 20, 'a'));
  const json tokenizer =
      TokenizerOf({{"model", "llama"}, {"tokens", tokens}, {"scores", {0, 0, -1, -1}}});
  EXPECT_EQ(json::array({json::array({tokens[3], "b"})}), tokenizer["model"]["merges"]);
}

const json kUnigram = {{"model", "t5"},
                       {"tokens", {"<pad>", "</s>", "<unk>", "a", "x"}},
                       {"token_type", {3, 3, 2, 1, 5}},
                       {"scores", {0, 0, 0, -1.5, 0}},
                       {"eos_token_id", 1}};

TEST(GgufUnigram, IsAWholeTokenizer) {
  const json pieces = {
      {"type", "Metaspace"}, {"replacement", "\u2581"}, {"add_prefix_space", true}};
  const json wanted = {
      {"normalizer", nullptr},
      {"pre_tokenizer",
       {{"type", "Sequence"},
        {"pretokenizers", json::array({{{"type", "WhitespaceSplit"}}, pieces})}}},
      {"decoder", pieces},
      {"post_processor",
       {{"type", "TemplateProcessing"},
        {"single", {Sequence("A"), Special("</s>")}},
        {"special_tokens", {{"</s>", Of("</s>", 1)}}}}},
      {"added_tokens", {Added(0, "<pad>", true), Added(1, "</s>", true), Added(2, "<unk>", true)}},
      {"model",
       {{"type", "Unigram"},
        {"vocab", json::array({{"<pad>", 0.0}, {"</s>", 0.0}, {"<unk>", 0.0}, {"a", -1.5}})},
        {"byte_fallback", false},
        {"unk_id", 2}}}};
  EXPECT_EQ(wanted, TokenizerOf(kUnigram));
  const json steps = TokenizerOf(
      Changed(kUnigram, {{"remove_extra_whitespaces", false},
                         {"add_space_prefix", false}}))["pre_tokenizer"]["pretokenizers"];
  EXPECT_EQ(json::array(
                {{{"type", "Metaspace"}, {"replacement", "\u2581"}, {"add_prefix_space", false}}}),
            steps);
  const auto model = [](const json& changes) {
    return TokenizerOf(Changed(kUnigram, changes))["model"];
  };
  // The first unknown token, unless a key names another.
  EXPECT_EQ(0, model({{"unknown_token_id", 0}})["unk_id"]);
  EXPECT_EQ(1, model({{"token_type", {3, 2, 2, 1, 5}}})["unk_id"]);
  EXPECT_EQ(true, model({{"token_type", {6, 3, 2, 1, 5}}})["byte_fallback"]);
  EXPECT_EQ(true, model({{"token_type", {1, 3, 2, 6, 5}}})["byte_fallback"]);
  EXPECT_TRUE(model({{"token_type", {5, 5, 5, 5, 5}}, {"eos_token_id", nullptr}})["vocab"].empty());
  // An unused token behind the last is none that could be unknown.
  EXPECT_EQ(
      "t.gguf: tokenizer.ggml.unknown_token_id: expected the number of one of 4 tokens, "
      "found 4",
      TokenizerError(kUnigram, {{"unknown_token_id", 4}}));
  // Bytes as llama.cpp's converter writes them, signed or not, in base64.
  const json map =
      TokenizerOf(Changed(kUnigram, {{"precompiled_charsmap", {0, 127, -128, 255, -1}}}));
  EXPECT_EQ(json({{"type", "Precompiled"}, {"precompiled_charsmap", "AH+A//8="}}),
            map["normalizer"]);
}

TEST(GgufVocabularyBounds, IdsAndKinds) {
  EXPECT_EQ("t.gguf: tokenizer.ggml.tokens: token 1 is not valid UTF-8",
            TokenizerError(kBytes, {{"tokens", {"a", "\xF4\x8F\xBF", "c", "d", "e", "f"}}}));
  EXPECT_EQ("t.gguf: tokenizer.ggml.tokens: tokens 0 and 2 have the same text \"a\"",
            TokenizerError(kBytes, {{"tokens", {"a", "b", "a", "d", "e", "f"}}}));
  EXPECT_EQ(
      "t.gguf: tokenizer.ggml.token_type: expected a list of 6 values, one for each of "
      "tokenizer.ggml.tokens, found [1]",
      TokenizerError(kBytes, {{"token_type", {1}}}));
  EXPECT_EQ(
      "t.gguf: tokenizer.ggml.model odd is not supported (supported: gpt2, llama, gemma4, "
      "t5, bert; or --no-tokenizer)",
      TokenizerError(kBytes, {{"model", "odd"}}));
  EXPECT_TRUE(TokenizerOf({{"model", "none"}}).is_null());
  EXPECT_TRUE(TokenizerOf(json::object()).is_null());
}

}  // namespace
}  // namespace arn::convert
