// Ids and texts equal the reference's (data/make_cases.py), and properties of any text.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/unit/text/tokenizer_fixture.h"

namespace arn::test {
namespace {

namespace fs = std::filesystem;

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

const nlohmann::json& Cases(const char* file) {
  static std::map<std::string, nlohmann::json> read;
  const auto [place, is_new] = read.try_emplace(file);
  if (is_new) place->second = nlohmann::json::parse(ReadFile(fs::path(ARN_TEXT_TEST_DATA) / file));
  return place->second;
}

// Returns the case from make_cases.py or from make_model_cases.py.
const nlohmann::json& CasesOf(const char* name) {
  const nlohmann::json& first = Cases("cases.json");
  return first["tokenizers"].contains(name) ? first : Cases("model_cases.json");
}

fs::path FolderOf(const std::string& name) {
  return name == "fable" ? fs::path(ARN_FABLE_MODEL) : fs::path(ARN_TEXT_TEST_DATA) / name;
}

class TokenizerCases : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    tokenizer_ = LoadedTokenizer::FromFolder(FolderOf(GetParam()));
    ASSERT_TRUE(tokenizer_.ok()) << tokenizer_.error();
  }
  const nlohmann::json& expected() const { return CasesOf(GetParam())["tokenizers"][GetParam()]; }
  std::vector<std::string> texts() const {
    return expected().contains("texts") ? expected()["texts"] : CasesOf(GetParam())["texts"];
  }

  LoadedTokenizer tokenizer_;
};

TEST_P(TokenizerCases, Encode_FiveHundredStrings_SameIds) {
  ASSERT_EQ(texts().size(), 500u);
  for (size_t i = 0; i < texts().size(); ++i) {
    const auto encoded = tokenizer_.Encode(texts()[i]);
    ASSERT_EQ(encoded.status, Status::kOk) << encoded.error;
    EXPECT_EQ(nlohmann::json(encoded.ids), expected()["ids"][i]) << "text " << i;
  }
}

TEST_P(TokenizerCases, EncodeWithSpecial_Strings_SameIds) {
  for (size_t i = 0; i < expected()["with_special"].size(); ++i) {
    EXPECT_EQ(nlohmann::json(tokenizer_.Encode(texts()[i], true).ids),
              expected()["with_special"][i])
        << "text " << i;
  }
}

TEST_P(TokenizerCases, Decode_RandomAndEncodedIds_SameText) {
  for (const auto& entry : expected()["decode"]) {
    const std::vector<int32_t> ids = entry[0];
    EXPECT_EQ(tokenizer_.Decode(ids, false), entry[1].get<std::string>()) << entry[0];
    EXPECT_EQ(tokenizer_.Decode(ids, true), entry[2].get<std::string>()) << entry[0];
  }
}

// Byte tokens such as "<0x41>", which a stream decodes one by one.
bool HasByteToken(const LoadedTokenizer& tokenizer, const std::vector<int32_t>& ids) {
  for (const int32_t id : ids) {
    const StringView text = tokenizer->TokenText(id);
    if (text.size == 6 && std::string(text.data, 3) == "<0x") return true;
  }
  return false;
}

TEST_P(TokenizerCases, DecodeStream_NoInvalidByteRuns_SameText) {
  size_t compared = 0;
  for (const auto& entry : expected()["decode"]) {
    const std::vector<int32_t> ids = entry[0];
    const std::string want = entry[1];
    if (HasByteToken(tokenizer_, ids) && want.find("\xEF\xBF\xBD") != std::string::npos) continue;
    EXPECT_EQ(tokenizer_.DecodeStream(ids, false), want) << entry[0];
    EXPECT_EQ(tokenizer_.DecodeStream(ids, true), entry[2].get<std::string>()) << entry[0];
    ++compared;
  }
  EXPECT_GT(compared, 20u);
}

TEST_P(TokenizerCases, Encode_InvalidUtf8_AsItsReplacement) {
  const std::pair<std::string, std::string> pairs[] = {
      {"a\x80 b", "a\uFFFD b"},
      {"\xE2\x82", "\uFFFD"},
      {"\xF0\x9F\x98 x", "\uFFFD x"},
      {"\xC0\xAF", "\uFFFD\uFFFD"},
      {"\xED\xA0\x80", "\uFFFD\uFFFD\uFFFD"},
      {"\xF4\x90\x80\x80 z", "\uFFFD\uFFFD\uFFFD\uFFFD z"},
      {"\xE2\x82\x41",
       "\uFFFD"
       "A"},
  };
  for (const auto& [bad, good] : pairs) {
    EXPECT_EQ(tokenizer_.Encode(bad).ids, tokenizer_.Encode(good).ids) << good;
  }
  const std::string all_bad(3000, '\xFF');
  EXPECT_EQ(tokenizer_.Encode(all_bad).status, Status::kOk);
}

TEST_P(TokenizerCases, Encode_NoRoomForIds_CountsThem) {
  const std::string text = "the fox and the hen";
  const size_t want = tokenizer_.Encode(text).ids.size();
  std::vector<max_align_t> scratch(
      tokenizer_->EncodeScratchBytes(text.size()) / sizeof(max_align_t) + 1);
  const Span<std::byte> space(reinterpret_cast<std::byte*>(scratch.data()),
                              tokenizer_->EncodeScratchBytes(text.size()));
  Diag diag;
  size_t count = 0;
  int32_t one = -1;
  EXPECT_EQ(tokenizer_->Encode({text.data(), text.size()}, {}, space, {&one, 1}, &count, &diag),
            Status::kBufferTooSmall);
  EXPECT_EQ(count, want);
  EXPECT_EQ(tokenizer_->Encode({text.data(), text.size()}, {}, space.subspan(0, space.size() - 1),
                               {&one, 1}, &count, &diag),
            Status::kBufferTooSmall);
  EXPECT_NE(std::string(diag.text()).find("scratch"), std::string::npos);
}

TEST_P(TokenizerCases, Create_ArenaBytes_IsEnough) {
  EXPECT_LE(tokenizer_.arena_used_bytes(), tokenizer_.arena_bytes());
}

TEST(Tokenizer, EncodeThenDecode_ByteLevel_GivesTheTextBack) {
  nlohmann::json json = nlohmann::json::parse(ReadFile(FolderOf("fable") / "tokenizer.json"));
  json["normalizer"] = nullptr;
  convert::TokenizerTables tables;
  std::string error;
  ASSERT_TRUE(convert::ConvertTokenizerJson(json.dump(), &tables, &error)) << error;
  const auto t = LoadedTokenizer::FromImage(MakeImage(tables));
  ASSERT_TRUE(t.ok()) << t.error();
  size_t compared = 0;
  for (const char* file : {"cases.json", "model_cases.json"}) {
    for (const std::string text : Cases(file)["texts"]) {
      if (!t.GivesBack(text)) continue;
      EXPECT_EQ(t.Decode(t.Encode(text).ids, false), text);
      ++compared;
    }
  }
  EXPECT_GT(compared, 900u);
}

TEST_P(TokenizerCases, DecodeToken_EveryToken_WithinItsBound) {
  const size_t bound = tokenizer_->max_piece_bytes();
  std::string piece(bound, '\0');
  for (uint32_t id = 0; id < tokenizer_->n_tokens(); ++id) {
    // After an incomplete character, which is output together with the token.
    Tokenizer::DecodeState state;
    state.started = true;
    state.pending_size = 3;
    state.pending[0] = 0xF0, state.pending[1] = 0x9F, state.pending[2] = 0x98;
    const size_t n =
        tokenizer_->DecodeToken(&state, static_cast<int32_t>(id), false, {piece.data(), bound});
    EXPECT_GE(n + state.pending_size, tokenizer_->TokenText(static_cast<int32_t>(id)).size > 0)
        << id;
  }
}

// Quadratic time would take hours here.
TEST_P(TokenizerCases, Encode_MegabyteOfOneThing_Ends) {
  for (const char* unit : {"a", " ", "\n", "1", "é", "😀", "\u0301", "~", "<", "ab "}) {
    std::string text;
    while (text.size() < 1000000) text += unit;
    const auto encoded = tokenizer_.Encode(text);
    EXPECT_EQ(encoded.status, Status::kOk) << unit << ": " << encoded.error;
  }
}

TEST_P(TokenizerCases, Encode_TwoThreads_SameIds) {
  const std::vector<std::string> all = texts();
  std::vector<int32_t> ids[2];
  const auto work = [&](std::vector<int32_t>* out) {
    for (const std::string& text : all) {
      const auto encoded = tokenizer_.Encode(text, true);
      out->insert(out->end(), encoded.ids.begin(), encoded.ids.end());
    }
  };
  std::thread other(work, &ids[0]);
  work(&ids[1]);
  other.join();
  EXPECT_EQ(ids[0], ids[1]);
}

INSTANTIATE_TEST_SUITE_P(Small, TokenizerCases,
                         testing::Values("fable", "sentence_pieces", "metaspace_first",
                                         "metaspace_words", "byte_level_added", "splits",
                                         "unigram_charsmap", "unigram_bytes", "word_piece",
                                         "word_piece_cased", "word_level", "bpe_word_end",
                                         "bpe_byte_word_end", "bpe_subword_prefix",
                                         "pieces_unigram", "pieces_unigram_bytes", "pieces_bpe"),
                         [](const auto& param) { return std::string(param.param); });

TEST(Tokenizer, IsSpecial_AddedTokens_ByTheirFlag) {
  const auto t = LoadedTokenizer::FromFolder(FolderOf("byte_level_added"));
  ASSERT_TRUE(t.ok()) << t.error();
  const auto id_of = [&](const std::string& text) { return t.Encode(text).ids.at(0); };
  EXPECT_TRUE(t->IsSpecial(id_of("<|left|>")));
  EXPECT_FALSE(t->IsSpecial(id_of("fox")));
  EXPECT_FALSE(t->IsSpecial(-1));
  EXPECT_FALSE(t->IsSpecial(static_cast<int32_t>(t->n_tokens())));
}

TEST(Tokenizer, TokenText_OutOfRange_Empty) {
  const auto t = LoadedTokenizer::FromFolder(FolderOf("fable"));
  ASSERT_TRUE(t.ok()) << t.error();
  EXPECT_EQ(t->TokenText(-1).size, 0u);
  EXPECT_EQ(t->TokenText(static_cast<int32_t>(t->n_tokens())).size, 0u);
  EXPECT_EQ(t.Decode({-1, 1 << 30}, false), "");
}

// Real tokenizers, from the folder of references.
fs::path ReferenceFolder() { return fs::path(ARN_SHARED_DIR) / "tokenizers"; }

void ExpectPublishedIds(const LoadedTokenizer& tokenizer, const std::string& name) {
  const fs::path root = ReferenceFolder();
  const std::string all = ReadFile(root / "cases" / "texts.inp");
  const std::string separator = "\n__ggml_vocab_test__\n";
  std::istringstream lines(ReadFile(root / "cases" / (name + ".ids")));
  size_t at = 0, count = 0;
  for (std::string line; at <= all.size() && std::getline(lines, line); ++count) {
    const size_t end = std::min(all.find(separator, at), all.size());
    std::istringstream numbers(line);
    std::vector<int32_t> want;
    for (int32_t id = 0; numbers >> id;) want.push_back(id);
    EXPECT_EQ(tokenizer.Encode(all.substr(at, end - at)).ids, want) << "case " << count;
    at = end + separator.size();
  }
  EXPECT_GT(count, 40u);
}

class ReferenceTokenizers : public testing::TestWithParam<const char*> {};

TEST_P(ReferenceTokenizers, Encode_PublishedCases_SameIds) {
  const fs::path root = ReferenceFolder();
  if (!fs::exists(root / "cases")) GTEST_SKIP() << "there is no " << root;
  const auto tokenizer = LoadedTokenizer::FromFolder(root / GetParam());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error();
  ExpectPublishedIds(tokenizer, GetParam());
}

TEST(SentencePieceReference, ModelAlone_PublishedCases_SameIds) {
  const fs::path root = ReferenceFolder();
  if (!fs::exists(root / "cases")) GTEST_SKIP() << "there is no " << root;
  convert::TokenizerTables tables;
  std::string error;
  ASSERT_TRUE(convert::ConvertSentencePieceBytes(ReadFile(root / "llama2" / "tokenizer.model"),
                                                 &tables, &error))
      << error;
  const auto tokenizer = LoadedTokenizer::FromImage(MakeImage(tables));
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error();
  ExpectPublishedIds(tokenizer, "llama2");
}

INSTANTIATE_TEST_SUITE_P(Real, ReferenceTokenizers,
                         testing::Values("gpt2", "llama2", "llama3", "qwen2.5"),
                         [](const auto& param) {
                           std::string name = param.param;
                           std::erase(name, '.');
                           return name;
                         });

}  // namespace
}  // namespace arn::test
