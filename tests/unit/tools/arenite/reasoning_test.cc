#include "tools/arenite/reasoning.h"

#include <gtest/gtest.h>

namespace arn::tool {
namespace {

// Returns the pieces joined, reasoning in parentheses.
std::string Split(const std::string& text, size_t piece, bool begins_inside) {
  std::string out;
  bool was_reasoning = false;
  const auto add = [&](std::string_view part, bool is_reasoning) {
    if (is_reasoning != was_reasoning) out += is_reasoning ? "(" : ")";
    was_reasoning = is_reasoning;
    out += part;
  };
  ReasoningSplitter splitter(begins_inside);
  for (size_t at = 0; at < text.size(); at += piece) splitter.Add(text.substr(at, piece), add);
  splitter.End(add);
  return out + (was_reasoning ? ")" : "");
}

TEST(ReasoningSplitterTest, FindsMarksInPiecesOfAnySize) {
  const std::string text = "a <b> <think>\nhm < 3\n</think>\n\nYes.";
  for (size_t piece = 1; piece <= text.size(); ++piece) {
    SCOPED_TRACE(piece);
    EXPECT_EQ("a <b> (<think>\nhm < 3\n</think>)\n\nYes.", Split(text, piece, false));
  }
}

TEST(ReasoningSplitterTest, BeginsInside_AndMayEndInside) {
  EXPECT_EQ("(hm</think>)Yes.", Split("hm</think>Yes.", 3, true));
  EXPECT_EQ("(hm</thi)", Split("hm</thi", 2, true));
  EXPECT_EQ("Yes <thin", Split("Yes <thin", 4, false));
}

TEST(EndsInsideReasoningTest, LooksAtTheEndOfThePrompt) {
  EXPECT_TRUE(EndsInsideReasoning("<|assistant|>\n<think>\n"));
  EXPECT_FALSE(EndsInsideReasoning("<think></think>\n"));
  EXPECT_FALSE(EndsInsideReasoning(""));
}

}  // namespace
}  // namespace arn::tool
