// Words as transformers joins them (make_word_goldens.py).
#include "runtime/transcription/words.h"

#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "nlohmann/json.hpp"

namespace arn {
namespace {

TEST(JoinWords, GivesTheReferencesWords) {
  const nlohmann::json cases = nlohmann::json::parse(std::ifstream(ARN_WORD_CASES));
  ASSERT_GT(cases.size(), 10u);
  for (const nlohmann::json& c : cases) {
    std::string text;
    std::vector<Word> words;
    for (const std::string& piece : c.at("pieces").get<std::vector<std::string>>()) {
      Word word;
      word.offset = static_cast<uint32_t>(text.size());
      word.bytes = static_cast<uint32_t>(piece.size());
      word.first_id = 2 * static_cast<uint32_t>(words.size());
      word.n_ids = 2;
      words.push_back(word);
      text += piece;
    }
    const size_t n_pieces = words.size();
    words.resize(JoinWords({text.data(), text.size()}, c.at("spaces"), {words.data(), n_pieces}));
    std::vector<std::string> found;
    uint32_t next_id = 0;
    for (const Word& word : words) {
      found.push_back(text.substr(word.offset, word.bytes));
      EXPECT_EQ(next_id, word.first_id);
      next_id += word.n_ids;
    }
    EXPECT_EQ(2 * n_pieces, next_id);
    EXPECT_EQ(c.at("words").get<std::vector<std::string>>(), found);
  }
}

TEST(JoinWords, NoPieces_AreNoWords) { EXPECT_EQ(0u, JoinWords("", true, {})); }

TEST(HasNoSpaces, KnowsTheLanguages) {
  EXPECT_TRUE(HasNoSpaces("zh"));
  EXPECT_TRUE(HasNoSpaces("yue"));
  EXPECT_FALSE(HasNoSpaces("en"));
  EXPECT_FALSE(HasNoSpaces(""));
}

}  // namespace
}  // namespace arn
