#include "tools/arenite/terminal_input.h"

#include <gtest/gtest.h>

namespace arn::tool {
namespace {

std::string Pass(const std::string& bytes) {
  PasteFilter filter;
  std::string out;
  for (const char c : bytes) {
    const int passed = filter.Next(static_cast<unsigned char>(c));
    if (passed >= 0) out += static_cast<char>(passed);
  }
  return out;
}

const std::string kBegin = "\033[200~", kEnd = "\033[201~";

TEST(PasteFilterTest, TypedBytesPass) {
  EXPECT_EQ("a\r\tb\033[A\033[20~\n", Pass("a\r\tb\033[A\033[20~\n"));
}

TEST(PasteFilterTest, PastedLineEnds_StayInTheMessage) {
  EXPECT_EQ(kBegin + "a\nb\nc\n" + kEnd + "\r", Pass(kBegin + "a\rb\r\nc\n" + kEnd + "\r"));
}

TEST(PasteFilterTest, PastedTabs_AskForNoCompletion) {
  EXPECT_EQ(kBegin + "a b" + kEnd, Pass(kBegin + "a\tb" + kEnd));
}

TEST(PasteFilterTest, PastedBeginning_OfAMark_IsText) {
  EXPECT_EQ(kBegin + "\033[2\033[20\n" + kEnd + "\r",
            Pass(kBegin + "\033[2\033[20\r" + kEnd + "\r"));
}

}  // namespace
}  // namespace arn::tool
