// Expressions and grammars with random edits, and texts that follow them.
#include <gtest/gtest.h>

#include <chrono>
#include <random>

#include "tests/fuzz/exercise_constraint.h"

namespace arn::test {
namespace {

// Replaces, inserts or removes a few bytes, mostly by ones that mean something.
std::string Edited(const std::string& text, std::mt19937* rng) {
  constexpr char kTelling[] = "()[]{}|*+?.\\^$-,:=\"#\nabw019pdux \xC3\xFF";
  std::string edited = text;
  for (uint32_t n = (*rng)() % 4; n > 0; --n) {
    const size_t at = (*rng)() % (edited.size() + 1);
    const char byte = kTelling[(*rng)() % (sizeof kTelling - 1)];
    const uint32_t what = (*rng)() % 4;
    if (what == 0) {
      edited.insert(at, 1, byte);
    } else if (what == 1 && at < edited.size()) {
      edited[at] = byte;
    } else if (what == 2 && at < edited.size()) {
      edited.erase(at, 1 + (*rng)() % 3);
    } else {
      edited.insert(at, edited.substr((*rng)() % (edited.size() + 1), (*rng)() % 8));
    }
  }
  return edited;
}

void Exercise(ConstraintKind kind, const std::vector<std::string>& sources,
              const std::vector<std::string>& texts) {
  std::mt19937 rng(13);
  int n_compiled = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  for (int i = 0; i < 4000 && std::chrono::steady_clock::now() < end; ++i) {
    std::string input = Edited(sources[rng() % sources.size()], &rng);
    input += '\0' + Edited(texts[rng() % texts.size()], &rng);
    std::string problem;
    n_compiled += ExerciseConstraint(kind, reinterpret_cast<const uint8_t*>(input.data()),
                                     input.size(), &problem)
                      ? 1
                      : 0;
    ASSERT_EQ("", problem) << input;
  }
  EXPECT_GT(n_compiled, 50);
}

TEST(ConstraintFuzz, EditedExpressions) {
  Exercise(ConstraintKind::kRegex,
           {"a{2,3}(b|cd?)*[^a-c]\\d+", "^(?:\\w+\\s){0,20}\\.$", "[\\u00e9-\\u{1F600}x-z]*\\p{L}",
            "((a*)*b{0,65536}){1,9}|x", "(^a|b$)c?"},
           {"aabcd9", "w w w.", "\xC3\xA9xyz", "aaabbb", "ac"});
}

TEST(ConstraintFuzz, EditedGrammars) {
  Exercise(ConstraintKind::kGrammar,
           {"root ::= \"a\" x{0,3} | [b-d]+ \"\\u00e9\"\nx ::= \"(\" root? \")\" # c\n",
            "root ::= root \"+\" t | t\nt ::= [0-9]{1,4} | \"(\" root \")\"",
            "root ::= a*\na ::= . | \"x\" a | \"\""},
           {"a((a))", "bcd\xC3\xA9", "1+(23+4)", "xx\xE2\x82\xAC"});
}

TEST(ConstraintFuzz, EditedSchemas) {
  Exercise(ConstraintKind::kJsonSchema,
           {R"({"type":"object","properties":{"a":{"type":"integer","minimum":0},)"
            R"("b":{"$ref":"#"}}})",
            R"({"oneOf":[{"enum":["a",1.5,[]]},{"not":{"type":"string"},"maxItems":2}]})",
            R"({"items":{"anyOf":[{"const":19},{"pattern":"^a{2}"}]},"contains":{"minLength":1}})",
            R"({"patternProperties":{"^a":false},"required":["b"],"if":{"minProperties":2}})"},
           {R"({"a":10,"b":{}})", R"(["a",[]])", R"([19,"aab"])", "1.5",
            R"({"b":null,)"
            R"("c":"\u0061"})"});
}

TEST(ConstraintFuzz, EditedTools) {
  const std::string tools =
      R"([{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":)"
      R"({"a":{"type":"string"},"b":{"type":["integer","null"]}},"required":["a"]}}},)"
      R"({"name":"g"}])";
  // Each syntax, and each choice.
  Exercise(ConstraintKind::kToolCalls,
           {"\x01" + tools, "\x02" + tools, "\x12" + tools, "\x13" + tools, "\x4C" + tools},
           {R"(<call>f({"a": "x", "b": 1})</call>)", "<call>f(a=\"x\")</call>",
            "<call>f({a:<|q|>x<|q|>})</call>", "<call>f(<p a>\nx\n</p>)</call>",
            "Hello <call <think>\nx\n</think>\n"});
}

}  // namespace
}  // namespace arn::test
