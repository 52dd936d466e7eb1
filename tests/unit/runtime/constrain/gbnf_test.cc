// Grammars in GBNF: cases, errors, and random grammars against an Earley recogniser.
#include "runtime/constrain/gbnf.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "constrain_fixture.h"
#include "tests/support/test_time.h"

namespace arn {
namespace {

using test::AllStrings;
using test::Block;
using test::TermMatches;

class Gbnf : public ::testing::Test {
 protected:
  Status Parse(const std::string& grammar) {
    text_ = grammar;
    terms_ = Terms::Create(block_.span());
    diag_.Clear();
    root_ = kNothing;
    const Status status = ParseGbnf(terms_, {text_.data(), text_.size()}, &root_, &diag_);
    return status == Status::kOk ? terms_->Resolve(root_, &diag_) : status;
  }
  void Expect(const std::string& grammar, const std::vector<std::string>& matched,
              const std::vector<std::string>& others) {
    ASSERT_EQ(Status::kOk, Parse(grammar)) << grammar << ": " << diag_.text();
    for (const std::string& text : matched) {
      EXPECT_TRUE(TermMatches(terms_, root_, text)) << grammar << " on " << text;
    }
    for (const std::string& text : others) {
      EXPECT_FALSE(TermMatches(terms_, root_, text)) << grammar << " on " << text;
    }
    EXPECT_FALSE(terms_->failed());
  }

  Block block_{4 << 20};
  std::string text_;
  Terms* terms_ = nullptr;
  Term root_ = kNothing;
  Diag diag_;
};

// Written for this test, in the style of the grammars that come with llama.cpp.
constexpr const char* kJson = R"(# JSON
root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws

object ::=
  "{" ws (
            string ":" ws value
    ("," ws string ":" ws value)*
  )? "}" ws

array  ::=
  "[" ws (
            value
    ("," ws value)*
  )? "]" ws

string ::=
  "\"" (
    [^"\\\x7F\x00-\x1F] |
    "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) # escapes
  )* "\"" ws

number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws

ws ::= | " " | "\n" [ \t]{0,20}
)";

TEST_F(Gbnf, Json_MatchesObjects) {
  Expect(kJson,
         {"{}", "{ }", R"({"a":1})", R"({"a": [1, 2.5e+1, {"b": "x\u00e9\n"}], "c": null})",
          R"({"é": true})"},
         {"", "[]", "{", R"({"a"})", R"({"a":01})", R"({"a":1,})", "{\"a\":\"\n\"}", "{}x"});
}

TEST_F(Gbnf, Cases) {
  Expect("root ::= \"a\" b\nb ::= \"b\" | \"c\"", {"ab", "ac"}, {"a", "b", "abc"});
  Expect("root ::= (\"a\"\n  \"b\")\n# end", {"ab"}, {"a"});
  Expect("root ::= \"a\" |\n  \"b\"\r\nx-1 ::= \"c\"", {"a", "b"}, {"c"});
  Expect("root ::= \"ab\"* \"c\"", {"c", "ababc"}, {"abbc"});
  Expect("root ::= \"a\"{2} [b]{1,2} [c]{2,} [d]{,1}", {"aabcc", "aabbcccd"}, {"abcc", "aabcd"});
  Expect("root ::= \"a\"+ \"b\"?", {"a", "aab"}, {"", "b"});
  Expect("root ::= [^a-c] [\\]\\x41-] .", {"d]\n", "\xC3\xA9-\xE2\x82\xAC", "dAx"}, {"a]x", "dBx"});
  Expect("root ::= \"\\u00e9\\U0001F600\\\"\\\\\\t\"", {"\xC3\xA9\xF0\x9F\x98\x80\"\\\t"}, {""});
  Expect("root ::= \"\"", {""}, {"a"});
  Expect("root ::= | \"a\"", {"", "a"}, {"b"});
  Expect("root ::= \"a\" root | \"b\"", {"b", "aab"}, {"a"});
  Expect("root ::= root \"+\" [0-9] | [0-9]", {"1", "1+2+3"}, {"+1", "1+"});
  Expect("root ::= [0-9]{1,3}{2}", {"12", "123456"}, {"1", "1234567"});
}

TEST_F(Gbnf, Errors_NameThePlace) {
  const struct {
    const char* grammar;
    const char* text;
  } cases[] = {
      {"a ::= \"x\"", "grammar: there is no rule 'root'"},
      {"root ::= \"x\" b", "rule 'b' is used but not defined"},
      {"root ::= a b c d\na ::= \"x\"", "grammar: rule 'b' is used but not defined"},
      {"root ::= a\na ::= b | \"x\"\nb ::= a \"y\"",
       "rule 'a' begins with itself through other rules (left recursion)"},
      {"root ::= \"x\" root", "rule 'root' matches no text: it never ends"},
      {"root ::= \"x\"\nroot ::= \"y\"", "grammar, line 2: rule 'root' is defined twice"},
      {"root = \"x\"", "grammar, line 1, offset 5: '::=' is missing"},
      {"root ::= (\"x\"", "grammar, line 1, offset 9: unmatched '('"},
      {"root ::= \"x", "grammar, line 1, offset 11: the grammar ends inside a literal or class"},
      {"root ::= \"\\q\"", "grammar, line 1, offset 10: an unknown escape"},
      {"root ::= [b-a]", "grammar, line 1, offset 10: the range is out of order"},
      {"root ::= []", "grammar, line 1, offset 9: an empty class"},
      {"root ::= * \"a\"", "grammar, line 1, offset 9: nothing to repeat"},
      {"root ::= \"a\"{2,1}", "grammar, line 1, offset 12: the counts are out of order"},
      {"root ::= \"a\"{x}", "grammar, line 1, offset 12: a count is {n}, {n,}, {n,m} or {,m}"},
      {"root ::= \"a\" ; \"b\"", "grammar, line 1, offset 13: the rule should end here"},
      {"root ::= \"\\ud800\"", "grammar, line 1, offset 10: the escape is no character"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(Status::kBadArgument, Parse(c.grammar)) << c.grammar;
    EXPECT_STREQ(c.text, diag_.text()) << c.grammar;
  }
}

// A random grammar: rules of alternatives of symbols, where a capital letter is a rule.
struct Grammar {
  std::vector<std::vector<std::string>> rules;  // of 'A', 'B', ...

  std::string Text() const {
    std::string text;
    for (size_t r = 0; r < rules.size(); ++r) {
      text += Name(r) + " ::=";
      for (size_t a = 0; a < rules[r].size(); ++a) {
        text += a == 0 ? "" : " |";
        for (const char c : rules[r][a]) {
          text +=
              c >= 'a' ? std::string(" \"") + c + "\"" : " " + Name(static_cast<size_t>(c - 'A'));
        }
      }
      text += "\n";
    }
    return text;
  }
  static std::string Name(size_t r) { return r == 0 ? "root" : "r" + std::to_string(r); }

  // Earley 1970, with completion repeated until nothing is added (nullable rules).
  bool Recognises(const std::string& text) const {
    using Item = std::tuple<size_t, size_t, size_t, size_t>;  // rule, alternative, dot, start
    std::vector<std::set<Item>> sets(text.size() + 1);
    const auto add_rule = [&](size_t r, size_t at) {
      bool added = false;
      for (size_t a = 0; a < rules[r].size(); ++a) added |= sets[at].insert({r, a, 0, at}).second;
      return added;
    };
    add_rule(0, 0);
    for (size_t at = 0; at <= text.size(); ++at) {
      for (bool changed = true; changed;) {
        changed = false;
        const std::set<Item> now = sets[at];
        for (const auto& [r, a, dot, start] : now) {
          const std::string& symbols = rules[r][a];
          if (dot == symbols.size()) {
            const std::set<Item> waiting = sets[start];
            for (const auto& [r2, a2, dot2, start2] : waiting) {
              const std::string& other = rules[r2][a2];
              if (dot2 < other.size() && other[dot2] == static_cast<char>('A' + r)) {
                changed |= sets[at].insert({r2, a2, dot2 + 1, start2}).second;
              }
            }
          } else if (symbols[dot] < 'a') {
            changed |= add_rule(static_cast<size_t>(symbols[dot] - 'A'), at);
          } else if (at < text.size() && text[at] == symbols[dot]) {
            sets[at + 1].insert({r, a, dot + 1, start});
          }
        }
      }
    }
    for (const auto& [r, a, dot, start] : sets[text.size()]) {
      if (r == 0 && start == 0 && dot == rules[r][a].size()) return true;
    }
    return false;
  }
};

TEST_F(Gbnf, RandomGrammars_MatchWhatEarleyRecognises) {
  const std::vector<std::string> texts = AllStrings("ab", 6);
  std::mt19937 rng(8);
  int n_compared = 0, n_matched = 0;
  for (int i = 0; i < 3000; ++i) {
    Grammar grammar;
    grammar.rules.resize(1 + rng() % 4);
    for (auto& rule : grammar.rules) {
      for (uint32_t n = 1 + rng() % 3; n > 0; --n) {
        std::string symbols;
        for (uint32_t k = rng() % 4; k > 0; --k) {
          symbols += rng() % 2 == 0 ? static_cast<char>('a' + rng() % 2)
                                    : static_cast<char>('A' + rng() % grammar.rules.size());
        }
        rule.push_back(symbols);
      }
    }
    if (Parse(grammar.Text()) != Status::kOk) continue;  // left recursion, or endless
    ++n_compared;
    for (const std::string& text : texts) {
      const bool expected = grammar.Recognises(text);
      n_matched += expected ? 1 : 0;
      ASSERT_EQ(expected, TermMatches(terms_, root_, text)) << grammar.Text() << " on " << text;
    }
    ASSERT_FALSE(terms_->failed()) << grammar.Text();
  }
  EXPECT_GT(n_compared, 1000);
  EXPECT_GT(n_matched, 5000);
}

TEST_F(Gbnf, HostileGrammars_EndInTime) {
  const auto repeat = [](const std::string& text, int n) {
    std::string all;
    for (int i = 0; i < n; ++i) all += text;
    return all;
  };
  std::string chain, names, many;
  for (int i = 0; i < 5000; ++i) {
    const std::string next = "r" + std::to_string(i + 1);
    chain += (i == 0 ? "root" : "r" + std::to_string(i)) + " ::= " + next + "\n";
    names += " n" + std::to_string(i);
    many += "| \"" + std::to_string(i) + "\" root ";
  }
  const std::string grammars[] = {
      chain + "r5000 ::= \"a\"",
      "root ::= \"a\"" + names,
      "root ::= " + repeat("(", 50000) + repeat(")", 50000),
      "root ::= \"a\" root root | \"b\" root | \"a\"",
      "root ::= a* b*\na ::= \"a\" b | \"a\"\nb ::= \"a\" a | \"a\"",
      "root ::= \"a\" x | \"a\" y | \"\"\nx ::= root \"x\"\ny ::= root \"y\"",
      "root ::= \"e\" " + many,
      "root ::= ((\"a\"{0,65536}){0,65536} \"b\"?){0,65536}",
      "root ::= " + repeat("\"a\"? ", 3000),
      repeat("x ::= \"a\"\n", 3000),
  };
  constexpr int kBytes = 500;
  for (const std::string& grammar : grammars) {
    const double start = test::ThreadSeconds();
    const Status status = Parse(grammar);
    const int n = status == Status::kOk ? test::RandomWalk(terms_, root_, kBytes) : 0;
    const double ms = 1000.0 * (test::ThreadSeconds() - start);
    const double kilobytes = 1 + static_cast<double>(grammar.size() + kBytes) / 1024;
    EXPECT_LT(ms, 100 * kilobytes * test::kSlowdown)
        << grammar.substr(0, 60) << ": " << diag_.text();
    if (std::getenv("ARN_VERBOSE") != nullptr) {
      std::printf("%8.2f ms %5d bytes  %.40s %s %s\n", ms, n, grammar.c_str(), diag_.text(),
                  terms_->FailureText());
    }
  }
}

}  // namespace
}  // namespace arn
