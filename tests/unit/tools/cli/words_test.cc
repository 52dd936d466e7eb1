#include "tools/cli/words.h"

#include <gtest/gtest.h>

#include "tools/cli/progress.h"

namespace arn::cli {
namespace {

using Lines = std::vector<std::string>;

TEST(WrapTest, LinesHaveAtMostTheColumns) {
  EXPECT_EQ((Lines{"one two", "three", "four"}), Wrap("one two three four", 9));
  EXPECT_EQ((Lines{"one", "unbreakable", "two"}), Wrap("one unbreakable two", 5));
  EXPECT_EQ((Lines{""}), Wrap("", 5));
}

TEST(WrapTest, LineBreaksAndIndentationStay) {
  EXPECT_EQ((Lines{"one", "  two", "  three"}), Wrap("one\n  two three", 8));
}

TEST(NearestTest, FindsTypos) {
  const Lines names = {"--prompt", "--prompt-ids", "--temperature", "--kv", "--kv-values"};
  EXPECT_EQ("--prompt", Nearest("--promt", names));
  EXPECT_EQ("--prompt", Nearest("--PROMPT", names));
  EXPECT_EQ("--prompt", Nearest("--rpompt", names));
  EXPECT_EQ("--temperature", Nearest("--temp", names));
  EXPECT_EQ("--kv-values", Nearest("--kv-value", names));
}

TEST(NearestTest, FindsNothingFarAway) {
  EXPECT_EQ("", Nearest("--zzz", {"--prompt", "--kv"}));
  EXPECT_EQ("", Nearest("x", {"run", "chat"}));
  EXPECT_EQ("", Nearest("run", {}));
}

TEST(OneOfTest, ReadsAsASentence) {
  EXPECT_EQ("a", OneOf({"a"}));
  EXPECT_EQ("a or b", OneOf({"a", "b"}));
  EXPECT_EQ("a, b or c", OneOf({"a", "b", "c"}));
}

TEST(DurationTest, HasTwoUnitsAtMost) {
  EXPECT_EQ("0 s", Duration(-1));
  EXPECT_EQ("59 s", Duration(59.2));
  EXPECT_EQ("1 min 0 s", Duration(59.6));
  EXPECT_EQ("3 min 20 s", Duration(200));
  EXPECT_EQ("2 h 5 min", Duration(2 * 3600 + 5 * 60 + 59));
}

}  // namespace
}  // namespace arn::cli
