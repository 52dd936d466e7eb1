// Tables and indexes with wrong bytes: an error, or a tokenizer that still works. Under
// AddressSanitizer this finds reads out of bounds.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "flatbuffers/flatbuffers.h"
#include "runtime/bundle/token_tables.h"
#include "tests/support/test_time.h"
#include "tests/unit/text/tokenizer_fixture.h"

namespace arn::test {
namespace {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t Next() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  size_t Below(size_t limit) { return static_cast<size_t>(Next() % limit); }

 private:
  uint64_t state_;
};

const char* const kTexts[] = {
    "the fox foxes of a I'm 123 x<|left|> y<s>",
    "\n\n  e\u0301 é... ~~ <x> \u3000\u2028",
    "日本語 한국어 \U0001F468\u200D\U0001F469 ᄀ",
    "\xFF\xE2\x82 \xF0\x9F",
};

void Use(const LoadedTokenizer& t) {
  for (const char* text : kTexts) {
    const auto encoded = t.Encode(text, true);
    t.Decode(encoded.ids, false);
    t.DecodeStream(encoded.ids, true);
  }
  std::vector<int32_t> ids;
  for (uint32_t id = 0; id < std::min<uint32_t>(t->n_tokens(), 64); ++id) {
    ids.push_back(static_cast<int32_t>(id * 7919 % t->n_tokens()));
  }
  t.Decode(ids, false);
  t.DecodeStream(ids, false);
}

class HostileTokenizer : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string name = GetParam();
    const std::string folder =
        name == "fable" ? ARN_FABLE_MODEL : std::string(ARN_TEXT_TEST_DATA) + "/" + name;
    convert::TokenizerTables tables;
    std::string error;
    ASSERT_TRUE(convert::ConvertTokenizer(folder, &tables, &error)) << error;
    image_ = MakeImage(tables);
  }
  TokenizerImage image_;
};

TEST_P(HostileTokenizer, SegmentsWithWrongBytes_ErrorOrWorks) {
  Random random(1);
  size_t refused = 0, worked = 0;
  for (int round = 0; round < 300; ++round) {
    TokenizerImage image = image_;
    uint8_t* bytes = reinterpret_cast<uint8_t*>(image.segments.data());
    for (size_t n = 1 + random.Below(8); n > 0; --n) {
      // Half of the changes hit the small segments at the front.
      const size_t limit = round % 2 == 0 ? image.segment_bytes : image.segment_bytes / 8;
      bytes[random.Below(limit)] = static_cast<uint8_t>(random.Next());
    }
    const auto t = LoadedTokenizer::FromImage(std::move(image));
    (t.ok() ? worked : refused) += 1;
    if (t.ok()) {
      Use(t);
    } else {
      EXPECT_FALSE(t.error().empty());
    }
  }
  EXPECT_GT(refused, 0u);
  EXPECT_GT(worked, 0u);
}

TEST_P(HostileTokenizer, IndexWithWrongBytes_ErrorOrWorks) {
  Random random(2);
  size_t refused = 0, worked = 0;
  for (int round = 0; round < 1500; ++round) {
    TokenizerImage image = image_;
    image.index[random.Below(image.index.size())] ^= static_cast<uint8_t>(1 + random.Below(255));
    // Opening a bundle runs this verifier before it reads the index.
    flatbuffers::Verifier verifier(image.index.data(), image.index.size());
    if (!verifier.VerifyBuffer<fbs::Tokenizer>(nullptr)) continue;
    const auto t = LoadedTokenizer::FromImage(std::move(image));
    (t.ok() ? worked : refused) += 1;
    if (t.ok()) Use(t);
  }
  EXPECT_GT(refused, 0u);
  EXPECT_GT(worked, 0u);
}

// The mapped file is overwritten with zeros.
TEST_P(HostileTokenizer, SegmentsZeroedAfterLoading_EncodeEnds) {
  auto t = LoadedTokenizer::FromImage(image_);
  ASSERT_TRUE(t.ok()) << t.error();
  t.ZeroSegments();
  Use(t);
  t.Encode(std::string(100000, 'a'));
}

INSTANTIATE_TEST_SUITE_P(Small, HostileTokenizer,
                         testing::Values("fable", "sentence_pieces", "metaspace_first",
                                         "byte_level_added", "splits", "unigram_charsmap",
                                         "unigram_bytes", "word_piece", "word_level",
                                         "bpe_word_end", "pieces_unigram"),
                         [](const auto& param) { return std::string(param.param); });

class BadTables : public testing::Test {
 protected:
  void SetUp() override {
    std::string error;
    ASSERT_TRUE(
        convert::ConvertTokenizer(std::string(ARN_TEXT_TEST_DATA) + "/splits", &tables_, &error))
        << error;
  }
  std::string Error() const { return LoadedTokenizer::FromImage(MakeImage(tables_)).error(); }
  void ExpectError(const char* part) const {
    EXPECT_NE(Error().find(part), std::string::npos) << Error();
  }
  convert::TokenizerTables tables_;
};

template <typename T>
void Put(std::vector<uint8_t>* bytes, size_t at, T value) {
  std::memcpy(bytes->data() + at, &value, sizeof value);
}

TEST_F(BadTables, Unchanged_NoError) { EXPECT_EQ(Error(), ""); }

TEST_F(BadTables, OffsetsNotRising_Refused) {
  Put<uint32_t>(&tables_.token_offsets, 8, 0xFFFFFF);
  ExpectError("token_offsets");
}

TEST_F(BadTables, OffsetsCutShort_Refused) {
  tables_.token_offsets.resize(tables_.token_offsets.size() - 4);
  ExpectError("token_offsets");
}

TEST_F(BadTables, TokenTableNotAPowerOfTwo_Refused) {
  tables_.token_table.resize(tables_.token_table.size() - sizeof(TokenSlot));
  ExpectError("token_table");
}

TEST_F(BadTables, TokenTableFull_Refused) {
  for (size_t at = 0; at < tables_.token_table.size(); at += sizeof(TokenSlot)) {
    Put(&tables_.token_table, at, TokenSlot{0, 0});
  }
  ExpectError("slots in use, expected at most 3/4");
}

TEST_F(BadTables, TokenTableWithOneHole_Refused) {
  for (size_t at = sizeof(TokenSlot); at < tables_.token_table.size(); at += sizeof(TokenSlot)) {
    Put(&tables_.token_table, at, TokenSlot{0, 0});
  }
  ExpectError("slots in use, expected at most 3/4");
}

// Not fuller than allowed, but a lookup could scan the whole table.
TEST_F(BadTables, SlotsInARow_Refused) {
  for (const size_t begin : {size_t{0}, size_t{6000}}) {  // the second run wraps around
    std::vector<uint8_t> slots;
    for (size_t i = 0; i < 8192; ++i) {
      slots.resize(slots.size() + sizeof(TokenSlot));
      const bool is_used = (i + 8192 - begin) % 8192 < kMaxSlotRun + 1;
      Put(&slots, i * sizeof(TokenSlot), TokenSlot{0, is_used ? 0 : kEmptySlot});
    }
    tables_.token_table = slots;
    ExpectError("tokenizer.token_table has 4097 used slots in a row");
  }
}

TEST_F(BadTables, TokenTableNamesNoToken_Refused) {
  Put(&tables_.token_table, 0, TokenSlot{0, tables_.n_tokens});
  ExpectError("token_table");
}

TEST_F(BadTables, MergeTableFull_Refused) {
  for (size_t at = kBoundaryBytes; at < tables_.merge_table.size(); at += sizeof(MergeSlot)) {
    Put(&tables_.merge_table, at, MergeSlot{0, 0, 0, 0});
  }
  ExpectError("slots in use, expected at most 3/4");
}

TEST_F(BadTables, MergeIntoNoToken_Refused) {
  Put(&tables_.merge_table, kBoundaryBytes, MergeSlot{0, 0, 0, tables_.n_tokens});
  ExpectError("merge_table");
}

TEST_F(BadTables, MergeTableWithoutBoundary_Refused) {
  tables_.merge_table.resize(100);
  ExpectError("merge_table");
}

TEST_F(BadTables, SpecialIdsOutOfRange_Refused) {
  tables_.prefix_ids = {tables_.n_tokens};
  ExpectError("prefix_ids");
}

TEST_F(BadTables, AddedIdOutOfRange_Refused) {
  tables_.added[0].id = tables_.n_tokens;
  ExpectError("added[0].id");
}

TEST_F(BadTables, UnkIdOutOfRange_Refused) {
  tables_.unk_id = static_cast<int32_t>(tables_.n_tokens);
  ExpectError("unk_id");
}

TEST_F(BadTables, UnknownKinds_Refused) {
  auto good = tables_;
  tables_.pre_tokenizers[0].kind = static_cast<fbs::PreTokenizerKind>(77);
  ExpectError("pre_tokenizers[0].kind is 77");
  tables_ = good;
  tables_.normalizers.push_back({static_cast<fbs::NormalizerKind>(77), "", ""});
  ExpectError("normalizers[0].kind is 77");
  tables_ = good;
  tables_.decoders.push_back({static_cast<fbs::DecoderKind>(77), "", ""});
  ExpectError("decoders[0].kind is 77");
}

class BadUnigramTables : public BadTables {
 protected:
  void SetUp() override {
    std::string error;
    ASSERT_TRUE(convert::ConvertTokenizer(std::string(ARN_TEXT_TEST_DATA) + "/unigram_charsmap",
                                          &tables_, &error))
        << error;
  }
};

TEST_F(BadUnigramTables, Unchanged_NoError) { EXPECT_EQ(Error(), ""); }

TEST_F(BadUnigramTables, TrieOfBrokenBlocks_Refused) {
  tables_.trie.resize(tables_.trie.size() - sizeof(TrieUnit));
  ExpectError("tokenizer.trie");
  tables_.trie.clear();
  ExpectError("tokenizer.trie is missing");
}

TEST_F(BadUnigramTables, TrieLeadsOutside_Refused) {
  const auto units = static_cast<uint32_t>(tables_.trie.size() / sizeof(TrieUnit));
  Put(&tables_.trie, 0, TrieUnit{units, kEmptySlot, kEmptySlot});
  ExpectError("tokenizer.trie");
}

TEST_F(BadUnigramTables, TrieNamesNoToken_Refused) {
  Put(&tables_.trie, 0, TrieUnit{0, kEmptySlot, tables_.n_tokens});
  ExpectError("tokenizer.trie");
}

TEST_F(BadUnigramTables, TooFewScores_Refused) {
  tables_.scores.resize(tables_.scores.size() - sizeof(double));
  ExpectError("tokenizer.scores");
}

TEST_F(BadUnigramTables, CharsmapTreeTooLong_Refused) {
  Put<uint32_t>(&tables_.normalizers[0].charsmap, 0, 0xFFFFFFFC);
  ExpectError("charsmap");
}

TEST_F(BadUnigramTables, CharsmapGrowsMoreThanItSays_EncodeFails) {
  tables_.normalizers[0].growth = 1;
  const auto t = LoadedTokenizer::FromImage(MakeImage(tables_));
  ASSERT_TRUE(t.ok()) << t.error();
  const auto encoded = t.Encode("\uFDFA\uFDFA\uFDFA\uFDFA");
  EXPECT_EQ(encoded.status, Status::kBadBundle);
  EXPECT_NE(encoded.error.find("grows beyond"), std::string::npos) << encoded.error;
}

// The trie has the id of another token, so the backward pass does not end at the start of the text.
TEST_F(BadUnigramTables, TrieAndTextsDisagree_EncodeFailsOrWorks) {
  for (size_t at = 0; at < tables_.trie.size(); at += sizeof(TrieUnit)) {
    TrieUnit unit;
    std::memcpy(&unit, tables_.trie.data() + at, sizeof unit);
    if (unit.id != kEmptySlot) unit.id = (unit.id * 7 + 3) % tables_.n_tokens;
    Put(&tables_.trie, at, unit);
  }
  const auto t = LoadedTokenizer::FromImage(MakeImage(tables_));
  ASSERT_TRUE(t.ok()) << t.error();
  Use(t);
  EXPECT_EQ(t.Encode("the fox and the hen").status, Status::kInternal);
}

TEST_F(BadTables, BrokenRegex_Refused) {
  tables_.pre_tokenizers[0].regex = "(a";
  ExpectError(
      "pre_tokenizers[0]: the regular expression cannot be used: missing closing parenthesis");
}

TEST_F(BadTables, HugeRegex_Refused) {
  tables_.pre_tokenizers[0].regex = "(((a{1000}){1000}){1000})";
  ExpectError("pre_tokenizers[0]: the regular expression");
}

// Limits exponential backtracking.
TEST_F(BadTables, EndlessRegex_EncodeFails) {
  tables_.pre_tokenizers[0].regex = "(?:a+)+b";
  const auto t = LoadedTokenizer::FromImage(MakeImage(tables_));
  ASSERT_TRUE(t.ok()) << t.error();
  const auto encoded = t.Encode(std::string(60, 'a'));
  EXPECT_EQ(encoded.status, Status::kUnsupported);
  EXPECT_NE(encoded.error.find("steps on this text"), std::string::npos) << encoded.error;
}

// Limits the total work of all matches in a text.
TEST_F(BadTables, SlowRegex_EncodeFailsSoon) {
  const std::string text(100000, 'a');
  for (const char* pattern :
       {"a*b", "a+(?=b)", "(?:a|aa)*b", "a*?b", "(?<=a)a*+b", "a{1000}b", "[a]{60000}b", "\\w*\\d",
        "(?:a*x|a*y|a*z|a*1|a*2|a*3|b)", "(?=a*b)a", "(?!a*b)b", "(?:a+)++b"}) {
    tables_.pre_tokenizers[0].regex = pattern;
    const auto t = LoadedTokenizer::FromImage(MakeImage(tables_));
    ASSERT_TRUE(t.ok()) << t.error();
    const double start = ThreadSeconds();
    const auto encoded = t.Encode(text);
    const double seconds = ThreadSeconds() - start;
    EXPECT_EQ(encoded.status, Status::kUnsupported) << pattern;
    EXPECT_LT(seconds, 2.0 * kSlowdown) << pattern;  // tenths of a second on an idle machine
  }
}

TEST_F(BadTables, SlowRegex_IsStopped) {
  tables_.pre_tokenizers[0].regex = "a*b";
  const auto t = LoadedTokenizer::FromImage(MakeImage(tables_));
  ASSERT_TRUE(t.ok()) << t.error();
  int n_asked = 0;
  Tokenizer::EncodeOptions options;
  options.max_steps = UINT64_MAX;
  options.stop = [](void* user) { return ++*static_cast<int*>(user) == 5 ? 1 : 0; };
  options.user = &n_asked;
  EXPECT_EQ(t.Encode(std::string(100000, 'a'), options).status, Status::kCancelled);
  EXPECT_EQ(n_asked, 5);
}

// Nothing splits the text, so that the model gets all of it at once.
TEST(TokenizerStop, TextOfOnePiece_IsStoppedWithinIt) {
  for (const char* name : {"pieces_bpe", "pieces_unigram", "unigram_bytes"}) {
    const auto t = LoadedTokenizer::FromFolder(std::string(ARN_TEXT_TEST_DATA) + "/" + name);
    ASSERT_TRUE(t.ok()) << t.error();
    std::string text;
    for (uint32_t i = 0; i < 200000; ++i) text += static_cast<char>('a' + i * i % 26);
    int n_asked = 0;
    Tokenizer::EncodeOptions options;
    options.user = &n_asked;
    options.stop = [](void* user) { return ++*static_cast<int*>(user) == 0 ? 1 : 0; };
    EXPECT_EQ(t.Encode(text, options).status, Status::kOk) << name;
    EXPECT_GE(n_asked, 200000 / 16384) << name;
    n_asked = 0;
    options.stop = [](void* user) { return ++*static_cast<int*>(user) == 5 ? 1 : 0; };
    EXPECT_EQ(t.Encode(text, options).status, Status::kCancelled) << name;
    EXPECT_EQ(n_asked, 5) << name;
  }
}

TEST_F(BadTables, RegexThatRefersBack_Refused) {
  tables_.pre_tokenizers[0].regex = "(a*)b\\1";
  ExpectError("pre_tokenizers[0]: the regular expression has a back-reference to group 1");
}

}  // namespace
}  // namespace arn::test
