// arenite chat through a pipe: every answer equals that of `arenite run` on the tokens of the whole
// conversation, and no token is run twice.
#include <signal.h>

#include <cstdio>
#include <filesystem>

#include "nlohmann/json.hpp"
#include "tests/harness/bundles.h"
#include "tests/harness/process.h"
#include "tests/support/tiny_checkpoint.h"

namespace arn::test {
namespace {

using Ids = std::vector<int32_t>;

struct TurnStats {
  unsigned kept = 0, computed = 0, generated = 0;
  std::string finish;
};

// Returns the values of each /stats.
std::vector<TurnStats> StatsIn(const std::string& err) {
  std::vector<TurnStats> all;
  for (size_t at = 0; (at = err.find("last turn", at)) != std::string::npos; ++at) {
    TurnStats stats;
    char finish[32] = "";
    const int n =
        std::sscanf(err.c_str() + at,
                    "last turn %u tokens reused, %u computed (%*f tokens/s), %u generated "
                    "(%*f tokens/s), finished by: %31s",
                    &stats.kept, &stats.computed, &stats.generated, finish);
    EXPECT_EQ(4, n) << err.substr(at);
    stats.finish = finish;
    all.push_back(stats);
  }
  return all;
}

// A model of scans alone, with the tokenizer of another checkpoint.
void WriteScans(const std::filesystem::path& folder) {
  TinyCheckpoint base;
  base.vocab = 1024;
  WriteTinyCheckpoint(folder, base, [](TinyTensors& tensors) {
    tensors.clear();
    const auto add = [&](const std::string& name, const std::vector<uint64_t>& shape) {
      uint64_t count = 1;
      for (const uint64_t n : shape) count *= n;
      tensors["backbone." + name] = {"F32", shape,
                                     EncodeFloats(TinyValues(name, count, 3, 0.3f), "F32")};
    };
    add("embeddings.weight", {1024, 32});
    add("norm_f.weight", {32});
    for (const char* layer : {"layers.0.", "layers.1."}) {
      const std::string mixer = std::string(layer) + "mixer.";
      add(std::string(layer) + "norm.weight", {32});
      add(mixer + "in_proj.weight", {128, 32});
      add(mixer + "conv1d.weight", {64, 1, 4});
      add(mixer + "conv1d.bias", {64});
      add(mixer + "x_proj.weight", {2 + 2 * 16, 64});
      add(mixer + "dt_proj.weight", {64, 2});
      add(mixer + "dt_proj.bias", {64});
      add(mixer + "A_log", {64, 16});
      add(mixer + "D", {64});
      add(mixer + "out_proj.weight", {32, 64});
    }
  });
  WriteFile(folder / "config.json", nlohmann::json({{"architectures", {"MambaForCausalLM"}},
                                                    {"model_type", "mamba"},
                                                    {"vocab_size", 1024},
                                                    {"hidden_size", 32},
                                                    {"num_hidden_layers", 2}})
                                        .dump());
  std::filesystem::remove(folder / "generation_config.json");
  for (const char* file : {"tokenizer.json", "tokenizer_config.json"}) {
    std::filesystem::copy_file(SourcePath("models/fable/fable-2m/" + std::string(file)),
                               folder / file);
  }
}

class ChatTest : public testing::Test {
 protected:
  void SetUp() override {
    ARN_NEEDS_CONVERTER();
    bundle_ = (folder_ / "fable.arn").string();
    ASSERT_TRUE(Convert(SourcePath("models/fable/fable-2m"), bundle_, {"--weights", "f32"}));
    model_ = OpenModel(bundle_);
    ASSERT_NE(nullptr, model_);
  }
  ProcessResult Chat(const std::string& input, std::vector<std::string> arguments,
                     const std::function<void(int)>& while_running = {}) {
    arguments.insert(arguments.begin(), {"chat", bundle_, "--kv", "f32", "--plain"});
    return RunArenite(arguments, while_running, input);
  }
  // Returns the answer to these tokens, computed without a cache.
  nlohmann::json Answer(const Ids& ids, std::vector<std::string> arguments) {
    std::string text;
    for (int32_t id : ids) text += (text.empty() ? "" : ",") + std::to_string(id);
    arguments.insert(arguments.begin(),
                     {"run", bundle_, "--kv", "f32", "--no-cache", "--prompt-ids", text, "--json"});
    const ProcessResult result = RunArenite(arguments);
    EXPECT_EQ(0, result.exit_code) << result.err;
    return nlohmann::json::parse(result.out, nullptr, /*allow_exceptions=*/false);
  }
  void AddText(const std::string& text, Ids* ids) const {
    const Ids more =
        Tokenize(model_.get(), text, ids->empty() ? ARN_TOKENIZE_DEFAULT : ARN_TOKENIZE_NO_SPECIAL);
    ids->insert(ids->end(), more.begin(), more.end());
  }
  static void AddAnswer(const nlohmann::json& answer, Ids* ids) {
    const Ids more = answer["ids"].get<Ids>();
    ids->insert(ids->end(), more.begin(), more.end());
  }

  TempFolder folder_;
  std::string bundle_;
  ModelPtr model_;
  const std::vector<std::string> lines_ = {"Tell me about the fox.", "And then?", "Was it cold?"};
};

TEST_F(ChatTest, ThreeTurns_AnswerAsRunDoes_AndComputeOnlyWhatIsNew) {
  const std::vector<std::string> length = {"--max-tokens", "24", "--ignore-eos", "--temperature",
                                           "0"};
  Ids ids;
  std::string expected_out, input;
  std::vector<TurnStats> expected;
  for (const std::string& line : lines_) {
    TurnStats stats;
    stats.kept = static_cast<unsigned>(ids.size());
    AddText((ids.empty() ? "" : "\n") + ("User: " + line) + "\nAssistant:", &ids);
    stats.computed = static_cast<unsigned>(ids.size()) - stats.kept;
    const nlohmann::json answer = Answer(ids, length);
    // The chat's stop text does not occur here.
    ASSERT_EQ(std::string::npos, answer["text"].get<std::string>().find("\nUser:"));
    AddAnswer(answer, &ids);
    stats.generated = 24;
    expected.push_back(stats);
    expected_out += answer["text"].get<std::string>() + "\n";
    input += line + "\n/stats\n";
  }
  const ProcessResult result = Chat(input, length);
  EXPECT_EQ(0, result.exit_code);
  EXPECT_EQ(expected_out, result.out);
  const std::vector<TurnStats> found = StatsIn(result.err);
  ASSERT_EQ(3u, found.size());
  for (size_t i = 0; i < 3; ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(expected[i].kept, found[i].kept);
    EXPECT_EQ(expected[i].computed, found[i].computed);
    EXPECT_EQ(expected[i].generated, found[i].generated);
    EXPECT_EQ("length", found[i].finish);
  }
  // CRLF line ends and a missing final newline make no difference.
  EXPECT_EQ(expected_out,
            Chat(lines_[0] + "\r\n" + lines_[1] + "\r\n\r\n" + lines_[2], length).out);
}

// Flags for message prefixes and suffixes, a system prompt, and sampling.
TEST_F(ChatTest, Format_IsWhatTheFlagsSay) {
  const std::vector<std::string> length = {"--max-tokens", "12",     "--temperature",
                                           "0.7",          "--seed", "4"};
  Ids ids;
  AddText("Be kind.\n[Fox\\n]\t<A>", &ids);
  const nlohmann::json answer = Answer(ids, length);
  std::vector<std::string> arguments = length;
  arguments.insert(arguments.end(), {"--system", "Be kind.", "--user-prefix", "[", "--user-suffix",
                                     "]\\t", "--answer-prefix", "<A>", "--answer-suffix", "\\\\"});
  const ProcessResult result = Chat("Fox\\n\n", arguments);
  EXPECT_EQ(answer["text"].get<std::string>() + "\n", result.out);
  const ProcessResult bad = Chat("", {"--user-suffix", "\\x"});
  EXPECT_EQ(1, bad.exit_code);
  EXPECT_NE(std::string::npos, bad.err.find("--user-suffix")) << bad.err;
}

// The tokens of the stop text are not part of the conversation, although they were run.
TEST_F(ChatTest, StopText_IsForgotten) {
  const std::vector<std::string> length = {"--max-tokens", "40", "--ignore-eos", "--temperature",
                                           "0"};
  Ids ids;
  AddText("User: " + lines_[0] + "\nAssistant:", &ids);
  const nlohmann::json whole = Answer(ids, length);
  const std::string text = whole["text"];
  // A stop text in the middle of a word, within a token that continues after it.
  const size_t at = text.find(' ', text.size() / 2);
  ASSERT_NE(std::string::npos, at);
  const std::string stop = text.substr(at + 2, 6);
  const std::string shown = text.substr(0, text.find(stop));
  // As in the chat: the generated tokens that are shown in full, then the rest of the text.
  Ids kept = whole["ids"].get<Ids>();
  std::string held;
  for (;; kept.pop_back()) {
    held = Detokenize(model_.get(), kept, ARN_DETOKENIZE_SKIP_SPECIAL);
    if (shown.compare(0, held.size(), held) == 0 && held.size() <= shown.size()) break;
  }
  ids.insert(ids.end(), kept.begin(), kept.end());
  if (held != shown) AddText(shown.substr(held.size()), &ids);
  AddText("\nUser: " + lines_[1] + "\nAssistant:", &ids);
  const nlohmann::json second = Answer(ids, length);
  std::vector<std::string> arguments = length;
  arguments.insert(arguments.end(), {"--stop", stop});
  const ProcessResult result = Chat(lines_[0] + "\n/stats\n" + lines_[1] + "\n/stats\n", arguments);
  const std::vector<TurnStats> stats = StatsIn(result.err);
  ASSERT_EQ(2u, stats.size());
  EXPECT_EQ("stop", stats[0].finish);
  EXPECT_GE(stats[1].kept, stats[0].computed + kept.size());
  EXPECT_EQ(ids.size(), stats[1].kept + stats[1].computed);
  const std::string answer = second["text"];
  EXPECT_EQ(shown + "\n" + answer.substr(0, answer.find(stop)) + "\n", result.out);
}

// Recurrent states return to the border of the turn: a message that is taken back, changed or
// answered again is all that is computed.
TEST_F(ChatTest, RecurrentModel_TakesTurnsBack) {
  WriteScans(folder_ / "scans");
  bundle_ = (folder_ / "scans.arn").string();
  ASSERT_TRUE(Convert((folder_ / "scans").string(), bundle_, {"--weights", "f32"}));
  model_ = OpenModel(bundle_);
  ASSERT_NE(nullptr, model_);
  const std::vector<std::string> length = {"--max-tokens", "20", "--ignore-eos", "--temperature",
                                           "0"};
  Ids first, second, changed;
  AddText("User: " + lines_[0] + "\nAssistant:", &first);
  const nlohmann::json answer = Answer(first, length);
  AddAnswer(answer, &first);
  second = changed = first;
  AddText("\nUser: " + lines_[1] + "\nAssistant:", &second);
  AddText("\nUser: " + lines_[2] + "\nAssistant:", &changed);
  const std::string again = Answer(second, length)["text"].get<std::string>() + "\n";
  const std::string other = Answer(changed, length)["text"].get<std::string>() + "\n";
  const ProcessResult result = Chat(lines_[0] + "\n" + lines_[1] + "\n/regenerate\n/stats\n/edit " +
                                        lines_[2] + "\n/stats\n/undo\n" + lines_[1] + "\n/stats\n",
                                    length);
  EXPECT_EQ(0, result.exit_code) << result.err;
  EXPECT_EQ(answer["text"].get<std::string>() + "\n" + again + again + other + again, result.out);
  const std::vector<TurnStats> stats = StatsIn(result.err);
  ASSERT_EQ(3u, stats.size());
  for (size_t i = 0; i < 3; ++i) {
    // The last message also shares its first words with the one before.
    EXPECT_TRUE(i == 2 ? first.size() < stats[i].kept : first.size() == stats[i].kept) << i;
    EXPECT_EQ((i == 1 ? changed : second).size(), stats[i].kept + stats[i].computed) << i;
  }
  // 2 layers of 64 channels with 3 inputs and 16 states each.
  const ProcessResult plan =
      RunArenite({"plan", bundle_, "--state-snapshots", "8", "--snapshot-every", "32", "--json"});
  const nlohmann::json json = nlohmann::json::parse(plan.out, nullptr, /*allow_exceptions=*/false);
  EXPECT_EQ(8 * 2 * 64 * (3 + 16) * 4, json["snapshots"]);
  EXPECT_EQ(8, json["state_snapshots"]);
  EXPECT_EQ(32, json["snapshot_every"]);
}

TEST_F(ChatTest, WithoutATokenizer_IsRefused) {
  const std::string plain = (folder_ / "plain.arn").string();
  WriteTinyCheckpoint(folder_ / "plain", TinyCheckpoint());
  ASSERT_TRUE(Convert(folder_ / "plain", plain, {}));
  const ProcessResult result = RunArenite({"chat", plain}, {}, "Hello\n");
  EXPECT_EQ(1, result.exit_code);
  EXPECT_NE(std::string::npos, result.err.find("no tokenizer")) << result.err;
}

TEST_F(ChatTest, SavedAndLoadedElsewhere_GoesOnTheSame) {
  const std::string file = (folder_ / "talk").string();
  const std::vector<std::string> flags = {"--max-tokens", "20",     "--temperature",
                                          "0.8",          "--seed", "4"};
  const ProcessResult whole = Chat(
      lines_[0] + "\n" + lines_[1] + "\n/save " + file + "\n" + lines_[2] + "\n/stats\n", flags);
  ASSERT_EQ(0, whole.exit_code) << whole.err;
  ASSERT_TRUE(std::filesystem::exists(file));
  // The state includes the random numbers, so no sampling flag is needed.
  const ProcessResult rest =
      Chat("/load " + file + "\n" + lines_[2] + "\n/stats\n", {"--max-tokens", "20"});
  EXPECT_EQ(0, rest.exit_code);
  ASSERT_GT(rest.out.size(), 5u);
  EXPECT_EQ(rest.out, whole.out.substr(whole.out.size() - rest.out.size()));
  const std::vector<TurnStats> a = StatsIn(whole.err), b = StatsIn(rest.err);
  ASSERT_EQ(1u, a.size());
  ASSERT_EQ(1u, b.size());
  EXPECT_EQ(a[0].kept, b[0].kept);
  EXPECT_EQ(a[0].computed, b[0].computed);
  // An invalid command prints one sentence and the chat continues.
  const ProcessResult none = Chat(
      "/load " + file + ".none\n/save\n/load " + bundle_ + "\n/what\n" + lines_[0] + "\n", flags);
  EXPECT_EQ(0, none.exit_code);
  for (const char* word :
       {".none", "needs a file name", "ARNSTATE", "unknown command /what", "/help lists them"}) {
    EXPECT_NE(std::string::npos, none.err.find(word)) << none.err;
  }
  EXPECT_EQ(0u, whole.out.find(none.out));
}

TEST_F(ChatTest, Reset_BeginsAnew) {
  const std::vector<std::string> flags = {"--max-tokens", "15", "--seed", "4"};
  const std::string once = Chat(lines_[0] + "\n", flags).out;
  const ProcessResult twice =
      Chat(lines_[0] + "\n/reset\n" + lines_[0] + "\n/quit\n" + lines_[1] + "\n", flags);
  EXPECT_EQ(0, twice.exit_code);
  EXPECT_EQ(once + once, twice.out);
  EXPECT_EQ("", Chat("", flags).out);
  EXPECT_NE(std::string::npos, Chat("/help\n", flags).err.find("/load FILE"));
}

// A message that does not fit is not prefilled; the conversation stays unchanged.
TEST_F(ChatTest, FullContext_SaysSo_OrShifts) {
  const std::vector<std::string> small = {"--max-tokens", "30", "--context", "64", "--ignore-eos"};
  std::string input;
  for (int i = 0; i < 3; ++i) {
    for (const std::string& line : lines_) input += line + "\n";
  }
  const ProcessResult full = Chat(input + "/stats\n", small);
  EXPECT_EQ(0, full.exit_code);
  EXPECT_NE(std::string::npos, full.err.find("the context of 64 tokens is full")) << full.err;
  EXPECT_NE(std::string::npos, full.err.find("it was not read")) << full.err;
  EXPECT_NE(std::string::npos, full.err.find("context    64 of 64 tokens")) << full.err;
  const std::vector<std::string> shifting = {"--max-tokens", "30",           "--context",
                                             "128",          "--ignore-eos", "--overflow",
                                             "shift",        "--pinned",     "32"};
  const ProcessResult shifts = Chat(input + "/stats\n", shifting);
  EXPECT_EQ(0, shifts.exit_code);
  EXPECT_EQ(std::string::npos, shifts.err.find("full")) << shifts.err;
  const std::vector<TurnStats> stats = StatsIn(shifts.err);
  ASSERT_EQ(1u, stats.size());
  EXPECT_EQ(30u, stats[0].generated);
  EXPECT_LT(stats[0].computed, 30u);
}

// Ctrl-C during an endless answer: the text so far stays, and the program continues with the next
// line.
TEST_F(ChatTest, Interrupt_StopsTheAnswerAndNotTheProgram) {
  const ProcessResult result =
      Chat(lines_[0] + "\n/stats\n/help\n/quit\n",
           {"--max-tokens", "0", "--ignore-eos", "--overflow", "shift", "--context", "128"},
           [](int pid) { kill(pid, SIGINT); });
  EXPECT_EQ(0, result.exit_code);
  EXPECT_NE(std::string::npos, result.err.find("(stopped)")) << result.err;
  EXPECT_NE(std::string::npos, result.err.find("/load FILE")) << result.err;
  const std::vector<TurnStats> stats = StatsIn(result.err);
  ASSERT_EQ(1u, stats.size());
  EXPECT_EQ("cancelled", stats[0].finish);
  EXPECT_GT(result.out.size(), 1u);
}

}  // namespace
}  // namespace arn::test
