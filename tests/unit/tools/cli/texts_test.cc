// Help, completions and manual page of one small program.
#include <gtest/gtest.h>

#include <cstdio>

#include "tools/cli/completion.h"
#include "tools/cli/help.h"
#include "tools/cli/man_page.h"
#include "tools/cli/option_table.h"
#include "tools/cli/words.h"

namespace arn::cli {
namespace {

class TextsTest : public testing::Test {
 protected:
  TextsTest() {
    CLI::App* run = app_.add_subcommand("run", "Runs a model");
    run->add_option("BUNDLE", text_, "Bundle to run")->required();
    run->add_option("--out", text_, "File to write; a long text that does not fit one line");
    run->add_option("-n,--tokens", number_, "Number of tokens")->check(CLI::Range(1u, 64u));
    run->add_option("--kv", text_, "Type")
        ->transform(CLI::IsMember(std::vector<std::string>{"f32", "int8"}, CLI::ignore_case));
    run->footer("Example:\n  program run a.arn");
    ApplyWords({{"--out", "FILE", ""}, {"--kv", "", "Advanced: cache"}}, &app_);
  }

  const CLI::App& Run() const { return *Subcommands(app_).at(0); }

  CLI::App app_{"A program", "program"};
  std::string text_;
  uint32_t number_ = 0;
};

TEST_F(TextsTest, Help_HasBasicThenAdvancedGroups_WithinTheColumns) {
  const std::string help = Help(Run(), false, 60);
  EXPECT_NE(std::string::npos, help.find("Usage: program run BUNDLE [options]\n"));
  EXPECT_NE(std::string::npos, help.find("\nOptions\n"));
  EXPECT_NE(std::string::npos, help.find("  --out FILE"));
  EXPECT_NE(std::string::npos, help.find("  -n, --tokens N"));
  EXPECT_NE(std::string::npos, help.find("(1 to 64)"));
  EXPECT_NE(std::string::npos, help.find("  --kv f32|int8"));
  EXPECT_LT(help.find("\nOptions\n"), help.find("\nAdvanced: cache\n"));
  EXPECT_NE(std::string::npos, help.find("\n  program run a.arn\n"));
  for (const std::string& line : SplitAt(help, '\n')) EXPECT_GE(60u, line.size()) << line;
}

TEST_F(TextsTest, ShortHelp_CountsWhatItLeavesOut) {
  const std::string help = Help(Run(), true, 80);
  EXPECT_EQ(std::string::npos, help.find("--kv"));
  EXPECT_NE(std::string::npos, help.find("--help shows 1 advanced options too."));
}

TEST_F(TextsTest, RootHelp_ListsCommands) {
  const std::string help = Help(app_, false, 80);
  EXPECT_NE(std::string::npos, help.find("Usage: program COMMAND [options]"));
  EXPECT_NE(std::string::npos, help.find("  run                      Runs a model\n"));
}

TEST_F(TextsTest, Completions_NameCommandsOptionsAndChoices) {
  for (const std::string& shell : Shells()) {
    SCOPED_TRACE(shell);
    const std::string script = Completion(app_, shell);
    for (const char* word : {"run", "tokens", "kv", "f32 int8"}) {
      EXPECT_NE(std::string::npos, script.find(word)) << word;
    }
  }
}

TEST_F(TextsTest, BashCompletion_IsAScript_ThatOffersChoices) {
  const std::string script = Completion(app_, "bash") +
                             "COMP_WORDS=(program run --kv i); COMP_CWORD=3; _program; "
                             "[[ ${COMPREPLY[*]} == int8 ]] || exit 3\n"
                             "COMP_WORDS=(program r); COMP_CWORD=1; _program; "
                             "[[ ${COMPREPLY[*]} == run ]] || exit 4\n";
  std::FILE* bash = popen("bash 2>/dev/null", "w");
  ASSERT_NE(nullptr, bash);
  std::fputs(script.c_str(), bash);
  EXPECT_EQ(0, pclose(bash));
}

TEST_F(TextsTest, ManPage_HasASectionForEachCommand) {
  const std::string page = ManPage(app_, "0.1.0");
  EXPECT_EQ(0u, page.find(".TH PROGRAM 1 \"\" \"0.1.0\" \"Arenite\"\n"));
  EXPECT_NE(std::string::npos, page.find("\n.SH RUN\n"));
  EXPECT_NE(std::string::npos, page.find("\\fB\\-n, \\-\\-tokens N\\fR"));
  EXPECT_NE(std::string::npos, page.find(".nf\n  program run a.arn\n.fi\n"));
}

}  // namespace
}  // namespace arn::cli
