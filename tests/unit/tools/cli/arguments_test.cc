#include "tools/cli/arguments.h"

#include <gtest/gtest.h>

namespace arn::cli {
namespace {

// A program with two commands.
class ArgumentsTest : public testing::Test {
 protected:
  ArgumentsTest() {
    CLI::App* run = app_.add_subcommand("run", "Runs");
    run->add_option("BUNDLE", bundle_, "Bundle")->required();
    CLI::Option_group* prompt = run->add_option_group("prompt", "One of these");
    prompt->add_option("--prompt", text_, "Text");
    prompt->add_option("--prompt-file", file_, "File");
    prompt->require_option(0, 1);
    run->add_option("--temperature", temperature_, "Temperature");
    run->add_option("-n,--tokens", tokens_, "Tokens")->check(CLI::Range(1u, 64u));
    run->add_option("--kv", kv_, "Type")
        ->transform(CLI::IsMember(std::vector<std::string>{"f32", "int8"}, CLI::ignore_case));
    run->add_flag("--json", json_, "JSON");
    CLI::App* test = app_.add_subcommand("test", "Tests");
    test->require_subcommand(1);
    test->add_subcommand("speed", "Measures")->add_option("--seconds", tokens_, "Seconds");
    app_.add_subcommand("chat", "Chats")->add_option("--system", system_, "System prompt");
  }

  std::string Unknown(const std::vector<std::string>& words) {
    return FindUnknown(app_, words).value_or("");
  }

  // Returns the explanation of the parser's complaint; "" if there is none.
  std::string Complaint(std::vector<std::string> words) {
    std::vector<std::string> reversed(words.rbegin(), words.rend());
    try {
      app_.parse(reversed);
    } catch (const CLI::ParseError& error) {
      return Explain(app_, error);
    }
    return "";
  }

  CLI::App app_{"Program", "program"};
  std::string bundle_, text_, file_, kv_, system_;
  double temperature_ = 0;
  uint32_t tokens_ = 1;
  bool json_ = false;
};

TEST_F(ArgumentsTest, UnknownOption_IsNamedWithTheNearest) {
  EXPECT_EQ("unknown option --promt: did you mean --prompt?", Unknown({"run", "--promt", "x"}));
  EXPECT_EQ("unknown option --temp: did you mean --temperature?",
            Unknown({"run", "f.arn", "--temp=0.5"}));
  EXPECT_EQ("unknown option -prompt: did you mean --prompt?",
            Unknown({"run", "f.arn", "-prompt", "x"}));
  EXPECT_EQ("unknown option --zzzz", Unknown({"run", "f.arn", "--zzzz"}));
  EXPECT_EQ("unknown option --systm", Unknown({"run", "f.arn", "--systm", "x"}));
  EXPECT_EQ("unknown option --system of program run: chat has it",
            Unknown({"run", "f.arn", "--system", "x"}));
}

TEST_F(ArgumentsTest, UnknownCommand_IsNamedWithTheNearest) {
  EXPECT_EQ("unknown command 'rnu': did you mean run?", Unknown({"rnu", "f.arn"}));
  EXPECT_EQ("unknown command 'frobnicate': the commands are run, test or chat",
            Unknown({"frobnicate"}));
  EXPECT_EQ("unknown option --prompt: the command comes first: program run ... --prompt",
            Unknown({"--prompt", "x", "run"}));
}

TEST_F(ArgumentsTest, WordsThatAreValues_AreNotLookedAt) {
  EXPECT_EQ("", Unknown({"run", "f.arn", "--prompt", "--promt"}));
  EXPECT_EQ("", Unknown({"run", "f.arn", "-n5", "--json", "--temperature=-1"}));
  EXPECT_EQ("", Unknown({"run", "f.arn", "--temperature", "-1"}));
  EXPECT_EQ("", Unknown({}));
}

TEST_F(ArgumentsTest, CommandsBelowCommands_AreFound) {
  EXPECT_EQ("", Unknown({"test", "speed", "--seconds", "3"}));
  EXPECT_EQ("unknown command 'sped': did you mean speed?", Unknown({"test", "sped"}));
  EXPECT_EQ("unknown option --second: did you mean --seconds?",
            Unknown({"test", "speed", "--second", "3"}));
  EXPECT_EQ("unknown option --seconds of program run: test speed has it",
            Unknown({"run", "--seconds", "3"}));
  EXPECT_EQ("A subcommand is missing: program test COMMAND [options]", Complaint({"test"}));
}

TEST_F(ArgumentsTest, MissingValueAndExtraWord_AreNamed) {
  EXPECT_EQ("--kv needs a value: --kv f32|int8", Unknown({"run", "f.arn", "--kv"}));
  EXPECT_EQ(
      "unexpected argument 'upon': program run BUNDLE [options] takes no more; a text with spaces "
      "needs quotes",
      Unknown({"run", "f.arn", "--prompt", "Once", "upon"}));
}

TEST_F(ArgumentsTest, ParserComplaints_NameOptionValueAndWhatIsExpected) {
  EXPECT_EQ("--temperature hot: expected a number like 0.7",
            Complaint({"run", "f.arn", "--temperature", "hot"}));
  EXPECT_EQ("--tokens -3: expected 1 to 64", Complaint({"run", "f.arn", "--tokens", "-3"}));
  EXPECT_EQ("--tokens 65: expected 1 to 64", Complaint({"run", "f.arn", "--tokens", "65"}));
  EXPECT_EQ("--kv int3: expected f32 or int8", Complaint({"run", "f.arn", "--kv", "int3"}));
  EXPECT_EQ("--kv is given 2 times: give it once",
            Complaint({"run", "f.arn", "--kv", "f32", "--kv", "int8"}));
  EXPECT_EQ("BUNDLE is missing: program run BUNDLE [options]", Complaint({"run"}));
  EXPECT_EQ("give only one of --prompt or --prompt-file",
            Complaint({"run", "f.arn", "--prompt", "a", "--prompt-file", "b"}));
}

TEST_F(ArgumentsTest, ChoicesIgnoreLetterCase) {
  EXPECT_EQ("", Complaint({"run", "f.arn", "--kv", "INT8"}));
  EXPECT_EQ("int8", kv_);
}

}  // namespace
}  // namespace arn::cli
