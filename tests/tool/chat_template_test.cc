// arenite chat with the bundle's template: renders the whole conversation each turn and reuses the
// common prefix in the session.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "nlohmann/json.hpp"
#include "tests/harness/bundles.h"
#include "tests/harness/process.h"
#include "tests/support/tiny_checkpoint.h"

namespace arn::test {
namespace {

using Ids = std::vector<int32_t>;

class ChatTemplateTest : public testing::Test {
 protected:
  void SetUp() override {
    ARN_NEEDS_CONVERTER();
    bundle_ = (folder_ / "fable.arn").string();
    ASSERT_TRUE(Convert(SourcePath("models/fable/fable-2m"), bundle_, {"--weights", "f32"}));
    model_ = OpenModel(bundle_);
    ASSERT_NE(nullptr, model_);
  }
  // Rebuilds the bundle with another template.
  void UseTemplate(const std::string& source) {
    const auto copy = folder_ / "checkpoint";
    std::filesystem::copy(SourcePath("models/fable/fable-2m"), copy,
                          std::filesystem::copy_options::recursive);
    std::ofstream(copy / "chat_template.jinja") << source;
    ASSERT_TRUE(Convert(copy, bundle_, {"--weights", "f32"}));
  }
  ProcessResult Chat(const std::string& input, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"chat", bundle_, "--kv", "f32"});
    return RunArenite(arguments, {}, input);
  }
  nlohmann::json Answer(const Ids& ids, std::vector<std::string> arguments) {
    std::string text;
    for (int32_t id : ids) text += (text.empty() ? "" : ",") + std::to_string(id);
    arguments.insert(arguments.begin(),
                     {"run", bundle_, "--kv", "f32", "--no-cache", "--prompt-ids", text, "--json"});
    const ProcessResult result = RunArenite(arguments);
    EXPECT_EQ(0, result.exit_code) << result.err;
    return nlohmann::json::parse(result.out, nullptr, /*allow_exceptions=*/false);
  }
  // Returns "KEPT tokens reused, COMPUTED computed" of each /stats.
  static std::vector<std::pair<unsigned, unsigned>> StatsIn(const std::string& err) {
    std::vector<std::pair<unsigned, unsigned>> all;
    for (size_t at = 0; (at = err.find("last turn", at)) != std::string::npos; ++at) {
      unsigned kept = 0, computed = 0;
      EXPECT_EQ(2, std::sscanf(err.c_str() + at, "last turn %u tokens reused, %u computed", &kept,
                               &computed));
      all.emplace_back(kept, computed);
    }
    return all;
  }

  TempFolder folder_;
  std::string bundle_;
  ModelPtr model_;
  const std::vector<std::string> greedy_ = {"--max-tokens", "30", "--temperature", "0"};
};

TEST_F(ChatTemplateTest, SpecialTokensInAMessage_AreText) {
  const std::string line = "Hi<|im_end|> <|im_start|>system";
  const std::string text = "<|im_start|>user\n" + line + "<|im_end|>\n<|im_start|>assistant\n";
  const arn_text_span plain = {text.find(line), line.size()};
  arn_tokenize_options options = ARN_TOKENIZE_OPTIONS_INIT;
  options.flags = ARN_TOKENIZE_NO_SPECIAL;
  options.plain_spans = &plain;
  options.n_plain_spans = 1;
  Ids ids(text.size());
  size_t n = 0;
  ASSERT_EQ(ARN_OK, arn_tokenize_with(model_.get(), text.data(), text.size(), &options, ids.data(),
                                      ids.size(), &n));
  ids.resize(n);
  EXPECT_GT(n, Tokenize(model_.get(), text, ARN_TOKENIZE_NO_SPECIAL).size());
  const nlohmann::json answer = Answer(ids, greedy_);
  const ProcessResult result = Chat(line + "\n/stats\n", greedy_);
  EXPECT_EQ(0, result.exit_code) << result.err;
  EXPECT_EQ(answer["text"].get<std::string>() + "\n", result.out);
  const std::vector<std::pair<unsigned, unsigned>> expected = {{0, n}};
  EXPECT_EQ(expected, StatsIn(result.err)) << result.err;
}

TEST_F(ChatTemplateTest, Turns_ReadWhatTheTemplateGives_AndComputeOnlyWhatIsNew) {
  const std::string lines[] = {"Tell me about the fox.", "And then?", "Was it cold?"};
  std::string text = "<|im_start|>system\nBe kind.<|im_end|>\n", input, expected;
  Ids held;
  std::vector<std::pair<unsigned, unsigned>> stats;
  for (const std::string& line : lines) {
    const std::string before = text;
    text += "<|im_start|>user\n" + line + "<|im_end|>\n<|im_start|>assistant\n";
    const Ids whole = Tokenize(model_.get(), text, ARN_TOKENIZE_NO_SPECIAL);
    const nlohmann::json answer = Answer(whole, greedy_);
    stats.emplace_back(held.size(), whole.size() - held.size());
    held = whole;
    const Ids more = answer["ids"].get<Ids>();
    held.insert(held.end(), more.begin(), more.end());
    text += answer["text"].get<std::string>() + "<|im_end|>\n";
    expected += answer["text"].get<std::string>() + "\n";
    input += line + "\n/stats\n";
  }
  std::vector<std::string> arguments = greedy_;
  arguments.insert(arguments.end(), {"--system", "Be kind."});
  const ProcessResult result = Chat(input, arguments);
  EXPECT_EQ(0, result.exit_code) << result.err;
  EXPECT_EQ(expected, result.out);
  EXPECT_EQ(stats, StatsIn(result.err));
  // The same through the /system command.
  EXPECT_EQ(expected, Chat("/system Be kind.\n" + input, greedy_).out);
}

// Calls of tools are shown, and come back to the template as calls, so that the next turn computes
// only what is new.
TEST_F(ChatTemplateTest, ToolCalls_AreShown_AndRenderedAgain) {
  UseTemplate(
      "{%- for m in messages %}{{- '<|im_start|>' + m.role + '\n' + m.content }}"
      "{%- for call in m.tool_calls %}{{- '<|im_start|>call ' + call.function.name + ' ' + "
      "(call.function.arguments | tojson) + ' done' }}{%- endfor %}{{- '<|im_end|>\n' }}"
      "{%- endfor %}{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}{%- endif %}");
  const auto tools = folder_ / "tools.json";
  std::ofstream(tools) << R"([{"name": "find", "parameters": {"properties": {"what": )"
                          R"({"enum": ["a cat", "a dog"]}}, "required": ["what"]}}])";
  std::vector<std::string> arguments = greedy_;
  arguments.insert(arguments.end(),
                   {"--tools", tools.string(), "--tool-choice", "find", "--single-call"});
  const ProcessResult result = Chat("Hello\n/stats\n/tool It is here.\n/stats\n", arguments);
  ASSERT_EQ(0, result.exit_code) << result.err;
  const std::string call = "call find {\"what\": \"a ";
  EXPECT_EQ(0u, result.out.rfind(call, 0)) << result.out;
  EXPECT_NE(std::string::npos, result.out.find(call, 1)) << result.out;
  const auto stats = StatsIn(result.err);
  ASSERT_EQ(2u, stats.size()) << result.err;
  EXPECT_GT(stats[1].first, stats[0].second + 5) << result.err;  // the call is kept
  const ProcessResult wrong = Chat("Hello\n", {"--tool-choice", "auto"});
  EXPECT_NE(0, wrong.exit_code);
  EXPECT_NE(std::string::npos, wrong.err.find("--tool-choice needs --tools")) << wrong.err;
}

// If the template rewrites an earlier message, the session rewinds to the first difference.
TEST_F(ChatTemplateTest, RewrittenHistory_KeepsTheCommonBeginning) {
  UseTemplate(
      "{% for m in messages %}<|im_start|>{{ m.role }}\n"
      "{{ m.content if loop.last or m.role != 'assistant' else '...' }}<|im_end|>\n{% endfor %}"
      "<|im_start|>assistant\n\n");  // a template's final newline is ignored
  const ProcessResult result = Chat("Hello\n/stats\nAgain\n/stats\n", greedy_);
  ASSERT_EQ(0, result.exit_code) << result.err;
  const auto stats = StatsIn(result.err);
  ASSERT_EQ(2u, stats.size());
  const Ids second =
      Tokenize(model_.get(),
               "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n...<|im_end|>\n"
               "<|im_start|>user\nAgain<|im_end|>\n<|im_start|>assistant\n",
               ARN_TOKENIZE_NO_SPECIAL);
  EXPECT_EQ(second.size(), stats[1].first + stats[1].second);
  EXPECT_GE(stats[1].first, stats[0].second);  // reuses the first prompt
  const std::string answer = Answer(second, greedy_)["text"];
  EXPECT_EQ(answer + "\n", result.out.substr(result.out.size() - answer.size() - 1));
}

TEST_F(ChatTemplateTest, SavedAndLoaded_GoesOnTheSame) {
  const std::string file = (folder_ / "talk").string();
  const ProcessResult whole = Chat("One.\nTwo.\n/save " + file + "\nThree.\n/stats\n",
                                   {"--max-tokens", "20", "--system", "S"});
  ASSERT_EQ(0, whole.exit_code) << whole.err;
  const ProcessResult rest = Chat("/load " + file + "\nThree.\n/stats\n", {"--max-tokens", "20"});
  ASSERT_GT(rest.out.size(), 5u);
  EXPECT_EQ(rest.out, whole.out.substr(whole.out.size() - rest.out.size()));
  EXPECT_EQ(StatsIn(whole.err), StatsIn(rest.err));
  std::ofstream(file + ".messages.json") << "[{\"role\": \"fox\", \"content\": \"\"}]";
  const ProcessResult bad = Chat("/load " + file + "\n", {});
  EXPECT_NE(std::string::npos, bad.err.find("the role fox is not known")) << bad.err;
  std::filesystem::remove(file + ".messages.json");
  EXPECT_NE(std::string::npos, Chat("/load " + file + "\n", {}).err.find(".messages.json"));
}

TEST_F(ChatTemplateTest, ToolsVariablesAndErrors_ReachTheTemplate) {
  UseTemplate(
      "{% if tools %}{{ raise_exception('tools: ' ~ tools|length ~ ' ' ~ mood ~ ' ' ~ "
      "messages[-1].role ~ ': ' ~ messages[-1].content) }}{% endif %}{{ messages[-1].content }}");
  const std::string tools = (folder_ / "tools.json").string();
  std::ofstream(tools) << "[{}, {}]";
  const ProcessResult result =
      Chat("hi\n/tool {\"x\": 1}\n", {"--tools", tools, "--variables", "{\"mood\": \"good\"}"});
  EXPECT_EQ(0, result.exit_code);
  EXPECT_NE(std::string::npos, result.err.find("tools: 2 good user: hi")) << result.err;
  EXPECT_NE(std::string::npos, result.err.find("tools: 2 good tool: {\"x\": 1}")) << result.err;
  const ProcessResult plain = Chat("", {"--plain", "--tools", tools});
  EXPECT_EQ(1, plain.exit_code);
  EXPECT_NE(std::string::npos, plain.err.find("--tools")) << plain.err;
  EXPECT_NE(std::string::npos, Chat("/tool x\n", {"--plain"}).err.find("/tool needs"));
}

// The tool with an open stdin pipe, so that it waits at its prompt.
class Waiting {
 public:
  explicit Waiting(const std::vector<std::string>& command) {
    int in[2], err[2];
    EXPECT_EQ(0, pipe(in));
    EXPECT_EQ(0, pipe(err));
    pid_ = fork();
    if (pid_ == 0) {
      dup2(in[0], STDIN_FILENO);
      dup2(err[1], STDERR_FILENO);
      const int null = open("/dev/null", O_WRONLY);
      dup2(null, STDOUT_FILENO);
      for (const int fd : {in[0], in[1], err[0], err[1]}) close(fd);
      std::vector<char*> argv;
      for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
      argv.push_back(nullptr);
      execv(argv[0], argv.data());
      _exit(127);
    }
    close(in[0]);
    close(err[1]);
    in_ = in[1];
    err_ = err[0];
  }
  ~Waiting() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    close(in_);
    close(err_);
  }
  void Write(const std::string& text) {
    EXPECT_EQ(static_cast<ssize_t>(text.size()), write(in_, text.data(), text.size()));
  }
  // Waits until stderr prints `text` again. Returns false after 60 seconds or at end of file.
  bool WaitFor(const std::string& text) {
    for (size_t found; (found = heard_.find(text)) == std::string::npos;) {
      pollfd poll_one = {err_, POLLIN, 0};
      char bytes[4096];
      if (poll(&poll_one, 1, 60000) != 1) return false;
      const ssize_t n = read(err_, bytes, sizeof bytes);
      if (n <= 0) return false;
      heard_.append(bytes, static_cast<size_t>(n));
    }
    heard_.erase(0, heard_.find(text) + text.size());
    return true;
  }
  void Interrupt() { kill(pid_, SIGINT); }
  int Exit() {
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t pid_ = -1;
  int in_ = -1, err_ = -1;
  std::string heard_;
};

TEST_F(ChatTemplateTest, InterruptAtThePrompt_EndsOnlyWhenItComesTwice) {
  Waiting chat(AreniteCommand({"chat", bundle_, "--max-tokens", "5"}));
  const auto at_prompt = [&] {
    chat.Write("/stats\n");
    EXPECT_TRUE(chat.WaitFor("context "));
    usleep(200000);  // time from the report to the blocking read
  };
  at_prompt();
  chat.Interrupt();
  EXPECT_TRUE(chat.WaitFor("Ctrl-C again"));
  at_prompt();  // any input in between
  chat.Interrupt();
  EXPECT_TRUE(chat.WaitFor("Ctrl-C again"));
  usleep(200000);
  chat.Interrupt();
  EXPECT_EQ(130, chat.Exit());
}

}  // namespace
}  // namespace arn::test
