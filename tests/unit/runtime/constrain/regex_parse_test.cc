// Regular expressions: a table of cases, and random ones against a plain matcher.
#include "runtime/constrain/regex_parse.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "constrain_fixture.h"
#include "runtime/text/unicode_data.h"
#include "runtime/text/utf8.h"
#include "tests/support/test_time.h"

namespace arn {
namespace {

using test::AllStrings;
using test::Block;
using test::Expression;
using test::Extra;
using test::RandomExpression;
using test::TermMatches;

class RegexParse : public ::testing::Test {
 protected:
  // The term, or kNothing with the message in diag_.
  Term Parse(const std::string& pattern, RegexOptions options = {}) {
    terms_ = Terms::Create(block_.span());
    diag_.Clear();
    Term term = kNothing;
    status_ = ParseRegex(terms_, {pattern.data(), pattern.size()}, options, &term, &diag_);
    return status_ == Status::kOk ? term : kNothing;
  }
  void Expect(const std::string& pattern, const std::vector<std::string>& matched,
              const std::vector<std::string>& others, RegexOptions options = {}) {
    const Term term = Parse(pattern, options);
    ASSERT_EQ(Status::kOk, status_) << pattern << ": " << diag_.text();
    for (const std::string& text : matched) {
      EXPECT_TRUE(TermMatches(terms_, term, text)) << pattern << " on " << text;
    }
    for (const std::string& text : others) {
      EXPECT_FALSE(TermMatches(terms_, term, text)) << pattern << " on " << text;
    }
    EXPECT_FALSE(terms_->failed());
  }

  Block block_{4 << 20};
  Terms* terms_ = nullptr;
  Status status_ = Status::kOk;
  Diag diag_;
};

TEST_F(RegexParse, Cases_MatchTheWholeText) {
  Expect("abc", {"abc"}, {"", "ab", "abcd", "xabc"});
  Expect("", {""}, {"a"});
  Expect("a|", {"a", ""}, {"aa"});
  Expect("(a|b)*c", {"c", "abbac"}, {"ab", "cc"});
  Expect("(?:ab)+", {"ab", "abab"}, {"", "aba"});
  Expect("(?<year>\\d{4})-\\d{2}", {"2024-07"},
         {"24-07", "2024-7",
          "\xD9\xA1"
          "234-07"});
  Expect("a{2,3}?", {"aa", "aaa"}, {"a", "aaaa"});
  Expect("a{3}", {"aaa"}, {"aa", "aaaa"});
  Expect("a{2,}", {"aa", "aaaaaa"}, {"a"});
  Expect("a{,2}", {"a{,2}"}, {"a", "aa"});  // ECMA-262: no count
  Expect("[a-c]x[^a-c]", {"axd", "bxz", "cx\xC3\xA9"}, {"axb", "dxd", "ax\xC3"});
  Expect("[]", {}, {"", "a", "]"});
  Expect("[^]", {"a", "\n", "\xF0\x9F\x98\x80"}, {"", "ab"});
  Expect("[\\]\\-a]", {"]", "-", "a"}, {"b"});
  Expect("[a-]", {"a", "-"}, {"b"});
  Expect("[-a]", {"a", "-"}, {"b"});
  Expect("[\\w-.]", {"a", "-", ".", "_"}, {"!", ","});
  Expect(".", {"a", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80", "\t"},
         {"", "\n", "\r", "\xE2\x80\xA8", "\xC3", "\xED\xA0\x80", "\xC0\x80", "\xF5\x80\x80\x80"});
  Expect("\\s", {" ", "\t", "\xC2\xA0", "\xEF\xBB\xBF", "\xE3\x80\x80"}, {"a", "\xE2\x80\x8B"});
  Expect("\\S\\D\\W", {"aa!"}, {"a1!", "aaa"});
  Expect("\\u00e9\\xe9\\u{1F600}\\uD83D\\uDE00\\cJ\\0",
         {std::string("\xC3\xA9\xC3\xA9\xF0\x9F\x98\x80"
                      "\xF0\x9F\x98\x80\n\0",
                      14)},
         {""});
  Expect("\\p{Lu}\\p{Letter}\\P{L}\\p{gc=Nd}", {"A\xC3\xA9-1", "\xC3\x89z \xD9\xA1"},
         {"aa-1", "AA-a"});
  Expect("\\p{ASCII}\\p{Any}", {"a\xE2\x82\xAC"},
         {"\xE2\x82\xAC"
          "a"});
  Expect("\\/\\.\\@\\-", {"/.@-"}, {"a.@-"});
  Expect("]}{x", {"]}{x"}, {""});
  Expect("^a$", {"a"}, {"", "b"});
  Expect("^^a$$|^$", {"a", ""}, {"b"});
}

TEST_F(RegexParse, Search_FindsAMatchAnywhere) {
  const RegexOptions search = {true, TextForm::kUtf8};
  Expect("ab", {"ab", "xaby", "aab\n"}, {"", "ba", "a b"}, search);
  Expect("^ab", {"ab", "aby"}, {"xab"}, search);
  Expect("ab$", {"ab", "xab"}, {"abx", "ab\n"}, search);
  Expect("^ab$", {"ab"}, {"xab", "abx"}, search);
  Expect("(^a|b)c", {"ac", "acx", "xbc"}, {"xac"}, search);
  Expect("a(b|$)", {"xa", "xabx"}, {"xax"}, search);
  Expect("", {"", "x"}, {}, search);
  Expect("a^b", {}, {"ab", "a", "b"}, search);
  Expect("$^", {""}, {"a"}, search);
}

TEST_F(RegexParse, JsonStrings_AreMatchedInEveryForm) {
  const RegexOptions json = {false, TextForm::kJsonString};
  Expect("a", {"a", "\\u0061"}, {"\\u0062", "\\a"}, json);
  Expect("\"", {"\\\"", "\\u0022"}, {"\""}, json);
  Expect("\\\\", {"\\\\", "\\u005c", "\\u005C"}, {"\\"}, json);
  Expect("/", {"/", "\\/", "\\u002f"}, {}, json);
  Expect("\\n", {"\\n", "\\u000a", "\\u000A"}, {"\n"}, json);
  Expect("\\u{1F600}", {"\xF0\x9F\x98\x80", "\\ud83d\\ude00", "\\uD83D\\uDE00", "\\uD83d\\uDe00"},
         {"\\ud83d", "\\ude00\\ud83d"}, json);
  Expect("[^a]", {"b", "\\u0000", "\\t", "\xC3\xA9", "\\u00E9"}, {"a", "\\u0061", "\x01", "\""},
         json);
  Expect("^.{2}$", {"ab", "\\u0061\\ud83d\\ude00", "\\\"\\\\"}, {"a", "abc", "\\n\\n", "\\ud83dx"},
         {true, TextForm::kJsonString});
}

TEST_F(RegexParse, Errors_NameTheOffset) {
  const struct {
    const char* pattern;
    Status status;
    const char* text;
  } cases[] = {
      {"a(b", Status::kBadArgument, "regular expression, offset 1: unmatched '('"},
      {"ab)", Status::kBadArgument, "regular expression, offset 2: unmatched ')'"},
      {"[a", Status::kBadArgument, "regular expression, offset 0: unmatched '['"},
      {"a[z-a]", Status::kBadArgument, "regular expression, offset 2: the range is out of order"},
      {"*a", Status::kBadArgument, "regular expression, offset 0: nothing to repeat"},
      {"a**", Status::kBadArgument, "regular expression, offset 2: a count after a count"},
      {"a{3,2}", Status::kBadArgument, "regular expression, offset 1: the counts are out of order"},
      {"a{99999999999}", Status::kBadArgument,
       "regular expression, offset 1: the count is above 4294967294"},
      {"(?=a)", Status::kUnsupported, "regular expression, offset 0: look-around is not supported"},
      {"a(?<!b)", Status::kUnsupported,
       "regular expression, offset 1: look-around is not supported"},
      {"(a)\\1", Status::kUnsupported,
       "regular expression, offset 3: a back reference is not supported"},
      {"\\bfoo", Status::kUnsupported, "regular expression, offset 0: \\b is not supported"},
      {"(?i)a", Status::kUnsupported,
       "regular expression, offset 0: this kind of group is not supported"},
      {"(^a)*", Status::kUnsupported,
       "regular expression, offset 0: a repeated ^ or $ is not supported"},
      {"\\p{Greek}", Status::kUnsupported,
       "regular expression, offset 0: the property 'Greek' is not supported"},
      {"\\y", Status::kBadArgument, "regular expression, offset 0: an escape of unknown meaning"},
      {"a\\", Status::kBadArgument, "regular expression, offset 1: '\\' at the end"},
      {"a\xFF", Status::kBadArgument, "regular expression, offset 1: not UTF-8"},
      {"\\ud800", Status::kBadArgument,
       "regular expression, offset 0: \\u needs a character's code"},
  };
  for (const auto& c : cases) {
    Parse(c.pattern);
    EXPECT_EQ(c.status, status_) << c.pattern;
    EXPECT_STREQ(c.text, diag_.text()) << c.pattern;
  }
}

TEST_F(RegexParse, RandomExpressions_MatchWhatAPlainMatcherMatches) {
  const std::vector<std::string> texts = AllStrings("abc", 4);
  std::mt19937 rng(5);
  for (int i = 0; i < 1000; ++i) {
    const Expression expression = RandomExpression(&rng, 4, Extra::kNone);
    const std::string pattern = expression.Text();
    const Term term = Parse(pattern);
    ASSERT_EQ(Status::kOk, status_) << pattern << ": " << diag_.text();
    for (const std::string& text : texts) {
      ASSERT_EQ(test::Matches(expression, text), TermMatches(terms_, term, text))
          << pattern << " on " << text;
    }
  }
}

TEST_F(RegexParse, RandomAnchors_FindWhatAPlainMatcherFinds) {
  const std::vector<std::string> texts = AllStrings("abc", 4);
  std::mt19937 rng(6);
  int n_compared = 0;
  for (int i = 0; i < 3000; ++i) {
    const Expression expression = RandomExpression(&rng, 3, Extra::kAnchors);
    const std::string pattern = expression.Text();
    const Term term = Parse(pattern, {true, TextForm::kUtf8});
    if (status_ == Status::kUnsupported) continue;  // a repeated anchor
    ASSERT_EQ(Status::kOk, status_) << pattern << ": " << diag_.text();
    ++n_compared;
    for (const std::string& text : texts) {
      ASSERT_EQ(test::Finds(expression, text), TermMatches(terms_, term, text))
          << pattern << " on " << text;
    }
  }
  EXPECT_GT(n_compared, 1000);
}

// Every string of a term without repetitions.
void Enumerate(Terms* terms, Term term, std::string* text, std::vector<std::string>* out) {
  if (terms->IsNullable(term)) out->push_back(*text);
  const ByteSet first = terms->FirstBytes(term);
  for (uint32_t b = first.Next(0); b < 256; b = first.Next(b + 1)) {
    text->push_back(static_cast<char>(b));
    Enumerate(terms, terms->Derive(term, static_cast<uint8_t>(b)), text, out);
    text->pop_back();
  }
}

std::string Utf8(uint32_t c) {
  char bytes[4];
  return std::string(bytes, WriteUtf8(c, bytes));
}

TEST_F(RegexParse, CharacterTerm_IsTheSetInUtf8) {
  std::mt19937 rng(7);
  for (int i = 0; i < 60; ++i) {
    terms_ = Terms::Create(block_.span());
    CodePoints set(terms_);
    std::vector<bool> expected(kMaxCodePoint + 1);
    const uint32_t borders[] = {0,      0x7F,   0x80,   0x7FF,   0x800,
                                0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x10FFFF};
    for (uint32_t n = i == 0 ? 0 : 1 + rng() % 4; n > 0; --n) {
      const uint32_t first = std::min<uint32_t>(kMaxCodePoint, borders[rng() % 10] + rng() % 100);
      const uint32_t last =
          std::min<uint32_t>(kMaxCodePoint, first + (rng() % 2 ? rng() % 5000 : 0));
      set.Add(first, last);
      for (uint32_t c = first; c <= last; ++c) expected[c] = true;
    }
    if (i % 20 == 0) {
      set.Negate(set.mark());
      expected.flip();
    }
    const Term term = CharacterTerm(terms_, set.Ranges(), TextForm::kUtf8);
    std::vector<std::string> found, wanted;
    std::string text;
    Enumerate(terms_, term, &text, &found);
    for (uint32_t c = 0; c <= kMaxCodePoint; ++c) {
      if (expected[c] && (c < 0xD800 || c > 0xDFFF)) wanted.push_back(Utf8(c));
    }
    ASSERT_FALSE(terms_->failed());
    ASSERT_EQ(wanted, found);  // both in the order of bytes
  }
}

TEST_F(RegexParse, Categories_AreThoseOfEveryCodePoint) {
  terms_ = Terms::Create(block_.span());
  const Span<const uint32_t> runs = PushCategories(terms_);
  size_t run = 0;
  for (uint32_t c = 0; c <= kMaxCodePoint; ++c) {
    if (run + 1 < runs.size() && runs[run + 1] >> 8 == c) ++run;
    ASSERT_EQ(static_cast<uint32_t>(CategoryOf(c)), runs[run] & 0xFF) << c;
  }
  EXPECT_EQ(runs.size(), run + 1);
}

TEST_F(RegexParse, CharacterTerm_IsEveryFormInJson) {
  for (const uint32_t c : {0x00u, 0x0Au, 0x22u, 0x2Fu, 0x5Cu, 0x61u, 0x7Fu, 0x80u, 0xABCDu, 0xD7FFu,
                           0xE000u, 0xFFFFu, 0x10000u, 0x1F600u, 0x10FFFFu}) {
    terms_ = Terms::Create(block_.span());
    const CodePointRange range[] = {{c, c}};
    const Term term = CharacterTerm(terms_, range, TextForm::kJsonString);
    std::vector<std::string> found;
    std::string text;
    Enumerate(terms_, term, &text, &found);
    std::vector<std::string> wanted;
    if (c >= 0x20 && c != '"' && c != '\\') wanted.push_back(Utf8(c));
    const char* letters = "\"\\/bfnrt";
    const std::string characters = "\"\\/\b\f\n\r\t";
    for (size_t i = 0; i < 8; ++i) {
      if (c == static_cast<uint8_t>(characters[i]))
        wanted.push_back(std::string("\\") + letters[i]);
    }
    std::string escape;
    char buffer[16];
    if (c < 0x10000) {
      std::snprintf(buffer, sizeof buffer, "%04x", c);
      escape = std::string("\\u") + buffer;
    } else {
      std::snprintf(buffer, sizeof buffer, "%04x", 0xD800 + ((c - 0x10000) >> 10));
      escape = std::string("\\u") + buffer;
      std::snprintf(buffer, sizeof buffer, "%04x", 0xDC00 + ((c - 0x10000) & 0x3FF));
      escape += std::string("\\u") + buffer;
    }
    std::vector<std::string> cases = {""};
    for (const char e : escape) {
      const size_t n = cases.size();
      for (size_t i = 0; i < n; ++i) {
        if (e >= 'a' && e <= 'f') cases.push_back(cases[i] + static_cast<char>(e - 32));
        cases[i] += e;
      }
    }
    wanted.insert(wanted.end(), cases.begin(), cases.end());
    std::sort(wanted.begin(), wanted.end());
    std::sort(found.begin(), found.end());
    ASSERT_EQ(wanted, found) << c;
  }
}

// Each ends within the block and the time that its size allows, with a term or an error.
TEST_F(RegexParse, HostilePatterns_EndInTime) {
  const auto repeat = [](const std::string& text, int n) {
    std::string all;
    for (int i = 0; i < n; ++i) all += text;
    return all;
  };
  std::string alternatives = "x";
  for (int i = 0; i < 100000; ++i) alternatives += "|w" + std::to_string(i);
  const std::string patterns[] = {
      "(a*)*",
      "(a|a)*b",
      "(a|aa)*b",
      "((a{0,65536}){0,65536}){0,65536}",
      "(a{0,100}b{0,100}){0,100}c",
      "(x+x+)+y",
      ".*a.{100}b",
      repeat("(a?){20}", 20) + repeat("a{20}", 20),
      repeat("(", 100000) + repeat(")", 100000),
      repeat("(", 190) + "a" + repeat("|b)*", 190),
      repeat("[", 100000),
      repeat("a?", 10000) + repeat("a", 10000),
      repeat("(a|bc)?", 3000) + repeat("(a|bc)", 3000),
      repeat("(a|b|ab)*", 500),
      repeat("\\p{L}\\P{L}", 50),
      repeat("a|", 100000),
      alternatives,
      "(" + alternatives + "){1,1000}",
      repeat("((a|b)*c|(d|e)*f)*", 100),
  };
  constexpr int kBytes = 2000;
  for (const std::string& pattern : patterns) {
    for (const bool search : {false, true}) {
      const double start = test::ThreadSeconds();
      const Term term = Parse(pattern, {search, TextForm::kUtf8});
      const int n = status_ == Status::kOk ? test::RandomWalk(terms_, term, kBytes) : 0;
      const double ms = 1000.0 * (test::ThreadSeconds() - start);
      const double kilobytes = 1 + static_cast<double>(pattern.size() + kBytes) / 1024;
      EXPECT_LT(ms, 100 * kilobytes * test::kSlowdown)
          << pattern.substr(0, 60) << ": " << diag_.text();
      if (std::getenv("ARN_VERBOSE") != nullptr) {
        std::printf("%8.2f ms %5d bytes  %s %s %s\n", ms, n, pattern.substr(0, 40).c_str(),
                    diag_.text(), terms_->FailureText());
      }
    }
  }
}

}  // namespace
}  // namespace arn
