// The subcommands on the model in models/, against transformers.
#include <signal.h>

#include <cstring>
#include <set>

#include "nlohmann/json.hpp"
#include "tests/harness/bundles.h"
#include "tests/harness/process.h"
#include "tests/support/tiny_checkpoint.h"

namespace arn::test {
namespace {

constexpr const char* kPrompt = "Once upon a time, there was";

class ToolTest : public testing::Test {
 protected:
  void SetUp() override {
    ARN_NEEDS_CONVERTER();
    bundle_ = (folder_ / "fable.arn").string();
    ASSERT_TRUE(Convert(SourcePath("models/fable/fable-2m"), bundle_, {"--weights", "f32"}));
    expected_ = nlohmann::json::parse(ReadText(SourcePath("models/fable/expected.json")));
  }

  // Runs `arenite COMMAND BUNDLE arguments...`, expects success and returns its stdout.
  std::string Run(const std::string& command, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {command, bundle_});
    const ProcessResult result = RunArenite(arguments);
    EXPECT_EQ(0, result.exit_code) << result.err;
    return result.out;
  }
  nlohmann::json RunJson(const std::string& command, std::vector<std::string> arguments) {
    const std::string out = Run(command, std::move(arguments));
    const auto json = nlohmann::json::parse(out, nullptr, /*allow_exceptions=*/false);
    EXPECT_FALSE(json.is_discarded()) << out;
    return json;
  }

  TempFolder folder_;
  std::string bundle_;
  nlohmann::json expected_;
};

TEST_F(ToolTest, Run_Json_HasTheExpectedTokensAndAllFields) {
  const nlohmann::json& wanted = expected_["prompts"][0];
  const nlohmann::json json = RunJson("run", {"--prompt", kPrompt, "--max-tokens", "64",
                                              "--temperature", "0", "--kv", "f32", "--json"});
  EXPECT_EQ(wanted["ids_plain"], json["prompt_ids"]);
  EXPECT_EQ(wanted["greedy_ids"], json["ids"]);
  EXPECT_EQ(wanted["greedy_text"], json["text"]);
  EXPECT_EQ("length", json["finish"]);
  EXPECT_EQ(wanted["ids_plain"].size(), json["prefill_tokens"]);
  for (const char* key : {"prefill_tokens_per_s", "decode_tokens_per_s", "load_ms"}) {
    EXPECT_GT(json[key].get<double>(), 0) << key;
  }
  const nlohmann::json& memory = json["memory"];
  EXPECT_EQ(memory["total"].get<uint64_t>(),
            memory["constants"].get<uint64_t>() + memory["kv"].get<uint64_t>() +
                memory["activations"].get<uint64_t>() + memory["io"].get<uint64_t>());
  EXPECT_GT(memory["weights"], 10000000u);
  EXPECT_GT(memory["kv_used"], 0u);
  EXPECT_LE(memory["kv_used"], memory["kv"]);
  EXPECT_GT(memory["peak_rss"], 0u);
}

TEST_F(ToolTest, Run_Streams_TheSameTextAndReportsOnStderr) {
  const std::vector<std::string> arguments = {"run",           bundle_, "--prompt", kPrompt,
                                              "--temperature", "0",     "--kv",     "f32",
                                              "--max-tokens",  "64"};
  const ProcessResult result = RunArenite(arguments);
  EXPECT_EQ(0, result.exit_code);
  EXPECT_EQ(expected_["prompts"][0]["greedy_text"].get<std::string>() + "\n", result.out);
  for (const char* word : {"decode", "tokens/s", "memory", "kv", "peak RSS"}) {
    EXPECT_NE(std::string::npos, result.err.find(word)) << result.err;
  }
  std::vector<std::string> quiet = arguments;
  quiet.push_back("--quiet");
  const ProcessResult silent = RunArenite(quiet);
  EXPECT_EQ(result.out, silent.out);
  EXPECT_EQ("", silent.err);
}

TEST_F(ToolTest, Residency_OfEachKind_GivesTheTokensAndIsCounted) {
  for (const char* residency : {"mapped", "copied", "huge"}) {
    const nlohmann::json json =
        RunJson("run", {"--prompt", kPrompt, "--max-tokens", "8", "--temperature", "0", "--kv",
                        "f32", "--json", "--stats", "--residency", residency});
    EXPECT_EQ(expected_["prompts"][0]["greedy_ids"][7], json["ids"][7]) << residency;
    const nlohmann::json& bundle = json["device"]["bundle"];
    const bool is_copy = std::string(residency) == "copied";
    EXPECT_EQ(is_copy, bundle["copied"].get<uint64_t>() != 0);
    EXPECT_EQ(is_copy, bundle["mapped"].get<uint64_t>() == 0);
    EXPECT_EQ(bundle["copied"], json["memory"]["copied"]);
    EXPECT_GT(bundle["resident"].get<uint64_t>(), 0u);
  }
  const std::string plan = Run("plan", {"--residency", "copied"});
  EXPECT_NE(std::string::npos, plan.find("copy ")) << plan;
  EXPECT_EQ(std::string::npos, Run("plan", {}).find("copy "));
  const ProcessResult text = RunArenite({"run", bundle_, "--prompt", kPrompt, "--max-tokens", "2",
                                         "--residency", "copied", "--stats"});
  EXPECT_NE(std::string::npos, text.err.find("in huge pages")) << text.err;
}

TEST_F(ToolTest, Run_ReadsAPromptFromAPipe) {
  const std::string wanted = expected_["prompts"][0]["greedy_text"].get<std::string>() + "\n";
  const std::vector<std::string> flags = {"--temperature", "0",  "--kv",   "f32",
                                          "--max-tokens",  "64", "--quiet"};
  for (const std::vector<std::string>& prompt :
       {std::vector<std::string>{}, {"--prompt", "-"}, {"--prompt-file", "-"}}) {
    SCOPED_TRACE(testing::PrintToString(prompt));
    std::vector<std::string> arguments = {"run", bundle_};
    arguments.insert(arguments.end(), prompt.begin(), prompt.end());
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    // A file is read byte for byte; from a pipe the last line feed is left out.
    const bool is_file = !prompt.empty() && prompt[0] == "--prompt-file";
    const ProcessResult result =
        RunArenite(arguments, {}, std::string(kPrompt) + (is_file ? "" : "\n"));
    EXPECT_EQ(0, result.exit_code) << result.err;
    EXPECT_EQ(wanted, result.out);
  }
}

TEST_F(ToolTest, Run_PromptsOfEachKind_AreTheSame) {
  const nlohmann::json& wanted = expected_["prompts"][0];
  std::string ids;
  for (const int id : wanted["ids_plain"]) ids += std::to_string(id) + ",";
  ids.pop_back();
  WriteFile(folder_ / "prompt.txt", kPrompt);
  for (const std::vector<std::string>& prompt :
       {std::vector<std::string>{"--prompt-ids", ids},
        std::vector<std::string>{"--prompt-file", (folder_ / "prompt.txt").string()}}) {
    std::vector<std::string> arguments = prompt;
    arguments.insert(arguments.end(),
                     {"--max-tokens", "8", "--temperature", "0", "--kv", "f32", "--json"});
    const nlohmann::json json = RunJson("run", arguments);
    EXPECT_EQ(wanted["ids_plain"], json["prompt_ids"]);
    EXPECT_EQ(wanted["greedy_ids"][7], json["ids"][7]);
  }
}

TEST_F(ToolTest, Run_Ends_AsAsked) {
  // A chat prompt whose answer has a stop token.
  const nlohmann::json& question = expected_["prompts"][5];
  const std::string text = question["text"];
  const std::vector<std::string> common = {"--prompt", text,  "--temperature", "0",
                                           "--kv",     "f32", "--json",        "--max-tokens"};
  const auto run = [&](std::vector<std::string> more) {
    more.insert(more.begin(), common.begin(), common.end());
    return RunJson("run", more);
  };
  const nlohmann::json ended = run({"64"});
  EXPECT_EQ("eos", ended["finish"]);
  EXPECT_EQ(question["greedy_text"], ended["text"]);
  EXPECT_EQ(question["greedy_stops_after"].get<size_t>() - 1, ended["ids"].size());
  const nlohmann::json ignoring = run({"64", "--ignore-eos"});
  EXPECT_EQ("length", ignoring["finish"]);
  EXPECT_EQ(question["greedy_ids"], ignoring["ids"]);
  const nlohmann::json stopped = run({"64", "--stop", "no such text", "--stop", "comes"});
  EXPECT_EQ("stop", stopped["finish"]);
  const std::string whole = question["greedy_text"];
  EXPECT_EQ(whole.substr(0, whole.find("comes")), stopped["text"]);
  const nlohmann::json full = run({"64", "--ignore-eos", "--context", "40"});
  EXPECT_EQ("context", full["finish"]);
  // The token after a full context is generated too, as in transformers.
  EXPECT_EQ(40u, full["ids"].size() + full["prompt_ids"].size() - 1);
  EXPECT_EQ(
      std::vector<int32_t>(ignoring["ids"].begin(),
                           ignoring["ids"].begin() + static_cast<ptrdiff_t>(full["ids"].size())),
      full["ids"].get<std::vector<int32_t>>());
}

TEST_F(ToolTest, Run_StopsThatLookLikeLists_AreTakenAsTheyAre) {
  for (const char* stop : {"[a,b]", "{}", "%%", "--x", "a,b"}) {
    const nlohmann::json json =
        RunJson("run", {"--prompt", kPrompt, "--max-tokens", "20", "--stop", stop, "--temperature",
                        "0", "--kv", "f32", "--json"});
    EXPECT_EQ("length", json["finish"]) << stop;
  }
}

TEST_F(ToolTest, Run_Sampling_FollowsTheSeedAndTheCheckpoint) {
  const auto ids = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"--prompt", kPrompt, "--max-tokens", "30", "--json"});
    return RunJson("run", more)["ids"];
  };
  // generation_config.json has temperature 0.7, top-k 40, top-p 0.95.
  const nlohmann::json own = ids({"--seed", "5"});
  EXPECT_EQ(own, ids({"--seed", "5", "--temperature", "0.7", "--top-k", "40", "--top-p", "0.95"}));
  EXPECT_EQ(own, ids({"--seed", "5", "--threads", "1"}));
  EXPECT_NE(own, ids({"--seed", "6"}));
  EXPECT_EQ(ids({"--temperature", "0"}), ids({"--temperature", "5", "--top-k", "1"}));
  // A flag overrides one value of the checkpoint and keeps the others.
  EXPECT_EQ(ids({"--seed", "5", "--top-k", "3"}),
            ids({"--seed", "5", "--temperature", "0.7", "--top-k", "3", "--top-p", "0.95"}));
}

// Without a seed the text differs each time. The report and the JSON print the seed to repeat it.
TEST_F(ToolTest, Run_WithoutASeed_DrawsOneAndSaysWhich) {
  const std::vector<std::string> common = {"--prompt", kPrompt, "--max-tokens", "30", "--json"};
  const nlohmann::json one = RunJson("run", common), other = RunJson("run", common);
  EXPECT_NE(one["seed"], other["seed"]);
  EXPECT_NE(one["ids"], other["ids"]);
  std::vector<std::string> again = common;
  again.insert(again.end(), {"--seed", std::to_string(one["seed"].get<uint64_t>())});
  EXPECT_EQ(one["ids"], RunJson("run", again)["ids"]);
  const ProcessResult report = RunArenite(
      {"run", bundle_, "--prompt", kPrompt, "--max-tokens", "1", "--seed", "7", "--min-p", "0.1"});
  EXPECT_NE(std::string::npos,
            report.err.find("sampling  temperature 0.7, top-k 40, top-p 0.95, min-p 0.1, seed 7\n"))
      << report.err;
  std::vector<std::string> greedy = common;
  greedy.insert(greedy.end(), {"--temperature", "0"});
  EXPECT_FALSE(RunJson("run", greedy).contains("seed"));
}

// A generation_config.json with other sampling settings than the checkpoint's.
TEST_F(ToolTest, Run_CheckpointThatDoesNotSample_IsGreedyUntilAsked) {
  const std::filesystem::path copy = folder_ / "copy";
  std::filesystem::copy(SourcePath("models/fable/fable-2m"), copy);
  WriteFile(copy / "generation_config.json",
            R"({"do_sample": false, "temperature": 0.6, "top_k": 7, "bos_token_id": [3, 4],)"
            R"( "eos_token_id": 1023})");
  ASSERT_TRUE(Convert(copy, folder_ / "greedy.arn", {"--weights", "f32"}));
  const auto ids = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments = {
        "run",   (folder_ / "greedy.arn").string(), "--prompt", kPrompt, "--max-tokens", "30",
        "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProcessResult result = RunArenite(arguments);
    EXPECT_EQ(0, result.exit_code) << result.err;
    return nlohmann::json::parse(result.out)["ids"];
  };
  const nlohmann::json greedy = ids({"--temperature", "0"});
  EXPECT_EQ(greedy, ids({}));
  EXPECT_EQ(greedy, ids({"--seed", "9"}));
  EXPECT_NE(greedy, ids({"--seed", "9", "--top-p", "0.99"}));
  EXPECT_EQ(ids({"--seed", "9", "--top-p", "0.99"}),
            ids({"--seed", "9", "--top-p", "0.99", "--temperature", "0.6", "--top-k", "7"}));
  const std::string text = RunArenite({"inspect", (folder_ / "greedy.arn").string()}).out;
  EXPECT_NE(std::string::npos, text.find("begin 3,4, end 1023, padding ")) << text;
  EXPECT_NE(std::string::npos,
            text.find("greedy; if sampling is requested: temperature 0.6, top-k 7\n"))
      << text;
}

// Penalties apply to greedy decoding too.
TEST_F(ToolTest, Run_ProcessorsOfTheCheckpointAndOfFlags_Apply) {
  const std::filesystem::path copy = folder_ / "penalties";
  std::filesystem::copy(SourcePath("models/fable/fable-2m"), copy);
  WriteFile(copy / "generation_config.json",
            R"({"repetition_penalty": 1.5, "suppress_tokens": [20, 21], "bos_token_id": [3, 4],)"
            R"( "eos_token_id": 1023})");
  const std::string bundle = (folder_ / "penalties.arn").string();
  ASSERT_TRUE(Convert(copy, bundle, {"--weights", "int8"}));
  const auto run = [&](const std::string& file, std::vector<std::string> more) {
    more.insert(more.begin(), {"run", file, "--prompt", kPrompt, "--max-tokens", "40", "--json"});
    const ProcessResult result = RunArenite(more);
    EXPECT_EQ(0, result.exit_code) << result.err;
    return nlohmann::json::parse(result.out);
  };
  const std::vector<std::string> greedy = {"--temperature", "0"};
  const std::vector<std::string> flags = {
      "--temperature", "0", "--repetition-penalty", "1.5", "--suppress-tokens", "20,21"};
  const nlohmann::json own = run(bundle, {});
  EXPECT_EQ(own["ids"], run(bundle_, flags)["ids"]);
  EXPECT_NE(own["ids"], run(bundle_, greedy)["ids"]);
  EXPECT_EQ(1.5, own["sampling"]["repetition_penalty"]);
  EXPECT_EQ(nlohmann::json({20, 21}), own["sampling"]["suppress_tokens"]);
  EXPECT_EQ(run(bundle_, greedy)["ids"],
            run(bundle, {"--repetition-penalty", "1", "--suppress-tokens", ""})["ids"]);
  const std::string text = RunArenite({"inspect", bundle}).out;
  EXPECT_NE(std::string::npos,
            text.find("greedy, repetition-penalty 1.5, suppress-tokens (2); if sampling is "
                      "requested: temperature 1, repetition-penalty 1.5, suppress-tokens (2)\n"))
      << text;
}

TEST_F(ToolTest, Run_BadWords_DoNotCome) {
  const std::vector<std::string> greedy = {"--prompt",      kPrompt, "--max-tokens", "40",
                                           "--temperature", "0",     "--json"};
  const std::string text = RunJson("run", greedy)["text"];
  // The first whole words.
  const size_t first = text.find(' ') + 1, second = text.find(' ', first) + 1;
  ASSERT_NE(0u, second) << text;
  const std::string one = text.substr(first, second - 1 - first);
  const std::string two = text.substr(second, text.find(' ', second) - second);
  std::vector<std::string> arguments = greedy;
  arguments.insert(arguments.end(), {"--bad-word", one, "--bad-word", two});
  const std::string without = " " + RunJson("run", arguments)["text"].get<std::string>() + " ";
  EXPECT_EQ(std::string::npos, without.find(" " + one + " ")) << without;
  EXPECT_EQ(std::string::npos, without.find(" " + two + " ")) << without;
}

TEST_F(ToolTest, Run_DryBreakers_AreTokensAndSequences) {
  const std::string text = "the fox";
  const auto sampling = RunJson(
      "run", {"--prompt", kPrompt, "--max-tokens", "2", "--temperature", "0", "--json",
              "--dry-multiplier", "1", "--dry-breaker", text, "--dry-breaker", "."})["sampling"];
  const auto text_of = [&](const std::vector<int32_t>& ids) {
    std::string list;
    for (const int32_t id : ids) list += (list.empty() ? "" : ",") + std::to_string(id);
    return RunJson("detokenize", {"--ids", list})["text"].get<std::string>();
  };
  // Tokens with a stop in them; sequences for the text.
  const std::vector<int32_t> ids = sampling["dry_breakers"];
  ASSERT_FALSE(ids.empty());
  EXPECT_NE(std::string::npos, text_of({ids.front()}).find('.'));
  EXPECT_NE(std::string::npos, text_of({ids.back()}).find('.'));
  const std::vector<int32_t> sequences = sampling["dry_breaker_sequences"];
  const auto first_end = std::find(sequences.begin(), sequences.end(), -1);
  ASSERT_NE(sequences.end(), first_end);  // several
  const auto last = std::find(sequences.rbegin(), sequences.rend(), -1).base();
  for (const std::string& found :
       {text_of({sequences.begin(), first_end}), text_of({last, sequences.end()})}) {
    EXPECT_NE(std::string::npos, found.find(text)) << found;
  }
}

TEST_F(ToolTest, Run_BadSamplingValues_AreNamed) {
  const auto error = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"run", bundle_, "--prompt", kPrompt});
    const ProcessResult result = RunArenite(more);
    EXPECT_NE(0, result.exit_code);
    return result.err;
  };
  EXPECT_NE(std::string::npos, error({"--top-k", "many"}).find("--top-k"));
  EXPECT_NE(std::string::npos, error({"--suppress-tokens", "1,x"}).find("--suppress-tokens"));
  EXPECT_NE(std::string::npos,
            error({"--suppress-tokens", "5000"}).find("suppress_tokens[0] is token 5000"));
  EXPECT_NE(std::string::npos,
            error({"--repetition-penalty", "0"}).find("repetition_penalty is 0, expected above 0"));
  EXPECT_NE(std::string::npos, error({"--logprobs", "2"}).find("--json"));
  EXPECT_NE(std::string::npos,
            error({"-n", "2", "--temperature", "0"}).find("the sampling is greedy"));
}

TEST_F(ToolTest, Run_Logprobs_AreOfEachToken) {
  const nlohmann::json json = RunJson("run", {"--prompt", kPrompt, "--max-tokens", "12",
                                              "--temperature", "0", "--json", "--logprobs", "3"});
  ASSERT_EQ(json["ids"].size(), json["logprobs"].size());
  for (size_t i = 0; i < json["ids"].size(); ++i) {
    const nlohmann::json& token = json["logprobs"][i];
    EXPECT_EQ(json["ids"][i], token["id"]);
    ASSERT_EQ(3u, token["top"].size());
    EXPECT_EQ(token["id"], token["top"][0]["id"]);  // greedy
    EXPECT_EQ(token["logprob"], token["top"][0]["logprob"]);
    EXPECT_GE(token["top"][0]["logprob"], token["top"][1]["logprob"]);
    EXPECT_GE(0.0, token["top"][0]["logprob"].get<double>());
  }
}

// The first completion is that of a run alone with the seed; the others differ, and repeat.
TEST_F(ToolTest, Run_Completions_AreIndependent) {
  const std::vector<std::string> common = {"--prompt", kPrompt, "--max-tokens", "30", "--json",
                                           "--seed",   "4"};
  std::vector<std::string> several = common;
  several.insert(several.end(), {"-n", "3"});
  const nlohmann::json json = RunJson("run", several);
  ASSERT_EQ(3u, json["completions"].size());
  EXPECT_EQ(RunJson("run", common)["ids"], json["completions"][0]["ids"]);
  EXPECT_EQ(json["ids"], json["completions"][0]["ids"]);
  EXPECT_NE(json["completions"][0]["ids"], json["completions"][1]["ids"]);
  EXPECT_NE(json["completions"][1]["ids"], json["completions"][2]["ids"]);
  EXPECT_EQ(json["completions"], RunJson("run", several)["completions"]);
}

TEST_F(ToolTest, Run_Interrupted_ReportsWhatWasDone) {
  const ProcessResult result =
      RunArenite({"run", bundle_, "--prompt", kPrompt, "--max-tokens", "0", "--ignore-eos",
                  "--backend", "reference", "--temperature", "0"},
                 [](int pid) { kill(pid, SIGINT); });
  EXPECT_EQ(130, result.exit_code) << result.err;
  EXPECT_FALSE(result.out.empty());
  EXPECT_NE(std::string::npos, result.err.find("finished by: cancelled")) << result.err;
}

TEST_F(ToolTest, Logits_File_HasEveryPosition) {
  const std::string out = (folder_ / "l.f32").string();
  const nlohmann::json& wanted = expected_["prompts"][0];
  std::string ids;
  for (const int id : wanted["ids_plain"]) ids += std::to_string(id) + ",";
  for (const char* chunk : {"0", "4"}) {
    EXPECT_EQ("", Run("logits", {"--prompt-ids", ids, "--kv", "f32", "--out", out,
                                 "--prefill-chunk", chunk}));
    const std::vector<uint8_t> file = ReadFile(out);
    const size_t vocab = 1024, tokens = wanted["ids_plain"].size();
    ASSERT_EQ(tokens * vocab * sizeof(float), file.size());
    for (const nlohmann::json& top : wanted["top5"]) {
      float logit = 0;
      std::memcpy(&logit, file.data() + ((tokens - 1) * vocab + top["id"].get<size_t>()) * 4, 4);
      EXPECT_NEAR(top["logit"].get<double>(), static_cast<double>(logit), 2e-4);
    }
  }
}

TEST_F(ToolTest, TokenizeDetokenize_GoBothWays) {
  const nlohmann::json& chat = expected_["prompts"][3];
  const std::string text = chat["text"];
  EXPECT_EQ(chat["ids_chat"], RunJson("tokenize", {"--text", text})["ids"]);
  WriteFile(folder_ / "text", text + "\n");
  const nlohmann::json with_newline =
      RunJson("tokenize", {"--file", (folder_ / "text").string(), "--no-special"})["ids"];
  EXPECT_NE(chat["ids_chat"], with_newline);
  std::string ids;
  for (const int id : with_newline) ids += std::to_string(id) + ",";
  EXPECT_EQ(text + "\n", RunJson("detokenize", {"--ids", ids})["text"]);
  const std::string plain = RunJson("detokenize", {"--ids", ids, "--no-special"})["text"];
  EXPECT_EQ(std::string::npos, plain.find("<|im_start|>"));
  EXPECT_NE(std::string::npos, plain.find("Tell me a story"));
  EXPECT_EQ(nlohmann::json::array(), RunJson("tokenize", {"--text", ""})["ids"]);
}

TEST_F(ToolTest, Inspect_SaysWhatIsInTheBundle) {
  const nlohmann::json json = RunJson("inspect", {"--json"});
  EXPECT_EQ(2558784, json["n_parameters"]);
  EXPECT_EQ(6, json["n_layers"]);
  EXPECT_EQ(1024, json["vocab"]);
  EXPECT_EQ(true, json["has_tokenizer"]);
  EXPECT_NE(std::string::npos, json["chat_template"].get<std::string>().find("im_start"));
  EXPECT_EQ(2u, json["eos_ids"].size());
  EXPECT_EQ(true, json["sampling"]["do_sample"]);
  uint64_t bytes = 0;
  for (const nlohmann::json& tensor : json["tensors"]) bytes += tensor["bytes"].get<uint64_t>();
  EXPECT_EQ(json["weight_bytes"], bytes);
  const std::string text = Run("inspect", {"--verify-hashes"});
  EXPECT_NE(std::string::npos, text.find("layers.5.down"));
  EXPECT_NE(std::string::npos, text.find("2.56 M parameters"));
  const std::string program = Run("inspect", {"--program", "--context", "64"});
  EXPECT_NE(std::string::npos, program.find("attention   in"));
}

TEST_F(ToolTest, PublicKey_OpensWhatWasSignedWithIt) {
  // RFC 8032, 7.1, test 2.
  WriteFile(folder_ / "key", "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb\n");
  const std::string key = "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c";
  const std::string path = (folder_ / "signed.arn").string();
  ASSERT_TRUE(Convert(SourcePath("models/fable/fable-2m"), path,
                      {"--weights", "int8", "--sign", (folder_ / "key").string()}));
  for (const char* more : {"--verify-hashes", ""}) {
    std::vector<std::string> arguments = {"run", path,   "--prompt", kPrompt,        "--max-tokens",
                                          "4",   "--kv", "f32",      "--public-key", key};
    if (more[0] != '\0') arguments.emplace_back(more);
    const ProcessResult result = RunArenite(arguments);
    EXPECT_EQ(0, result.exit_code) << result.err;
  }
}

TEST_F(ToolTest, Plan_IsWhatARunUses) {
  const std::vector<std::string> options = {"--context", "100", "--kv",  "int8",
                                            "--threads", "1",   "--json"};
  const nlohmann::json plan = RunJson("plan", options);
  std::vector<std::string> run = {"--prompt", kPrompt, "--max-tokens", "3"};
  run.insert(run.end(), options.begin(), options.end());
  const nlohmann::json used = RunJson("run", run)["memory"];
  for (const char* key : {"weights", "constants", "kv", "activations", "io", "total"}) {
    EXPECT_EQ(plan[key], used[key]) << key;
  }
  EXPECT_EQ(100, plan["context"]);
  EXPECT_NE(std::string::npos, Run("plan", {"--context", "100"}).find("activations"));
}

TEST_F(ToolTest, Bench_MeasuresEachCase) {
  const nlohmann::json json =
      RunJson("bench", {"-p", "16,32", "-n", "4", "-d", "0,64", "-t", "1,2", "-r", "2", "--json"});
  ASSERT_EQ(2u * 2 * 3, json["results"].size());
  for (const nlohmann::json& result : json["results"]) {
    EXPECT_GT(result["tokens_per_s"].get<double>(), 0);
    EXPECT_LE(result["lowest"], result["tokens_per_s"]);
    EXPECT_GE(result["highest"], result["tokens_per_s"]);
    // A decode step reads all weights except the unused rows of the embedding, and some KV.
    if (result["test"] == "decode") {
      EXPECT_GT(result["bytes_per_token"].get<double>(), 0.9 * json["weight_bytes"].get<double>());
    }
  }
  EXPECT_NE(std::string::npos, Run("bench", {"-p", "8", "-n", "0", "-r", "1"}).find("| prefill"));
}

TEST_F(ToolTest, Bench_Profile_SaysWhatEachKindOfStepDoes) {
  const nlohmann::json json =
      RunJson("bench", {"-p", "16", "-n", "4", "-t", "1", "-r", "1", "--profile", "--json"});
  ASSERT_EQ(1u, json["limits"].size());
  EXPECT_GT(json["limits"][0]["read_gb_per_s"].get<double>(), 0);
  EXPECT_GT(json["limits"][0]["integer_gop_per_s"].get<double>(), 0);
  EXPECT_GT(json["limits"][0]["float_gop_per_s"].get<double>(), 0);
  for (const nlohmann::json& result : json["results"]) {
    double shares = 0, bytes = 0;
    std::set<std::string> ops;
    for (const nlohmann::json& row : result["profile"]) {
      shares += row["share"].get<double>();
      bytes += row["bytes"].get<double>();
      ops.insert(row["op"].get<std::string>());
    }
    EXPECT_GT(shares, 0.3);
    EXPECT_LE(shares, 1.0);
    EXPECT_TRUE(ops.count("linear") && ops.count("attention") && ops.count("logits"));
    // Prefill runs one chunk, decode four tokens.
    EXPECT_GT(bytes,
              (result["test"] == "decode" ? 4 : 1) * 0.9 * json["weight_bytes"].get<double>());
  }
  const std::string table =
      Run("bench", {"-p", "16", "-n", "0", "-r", "1", "-t", "1,2", "--profile"});
  EXPECT_NE(std::string::npos, table.find("between the steps")) << table;
}

TEST_F(ToolTest, Bench_Count_SaysWhatAGpuWouldDo) {
  const std::vector<std::string> count = {"--count", "--backend", "vulkan", "-p",
                                          "16",      "-d",        "0,64"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), count.begin(), count.end());
    return more;
  };
  const nlohmann::json json =
      RunJson("bench", with({"--device-profile", "mali-g310,rtx4060", "--json"}));
  ASSERT_EQ(2u * 2 * 2, json.size());
  for (const nlohmann::json& run : json) {
    double us = 0;
    for (const nlohmann::json& kernel : run["kernels"]) us += kernel["us"].get<double>();
    EXPECT_NEAR(run["total"]["us"].get<double>(), us, 1e-6 * us);
    EXPECT_GT(run["total"]["us"], run["total"]["least_us"]);
    EXPECT_GE(run["total"]["loaded_bytes"], 0.5 * run["total"]["least_bytes"].get<double>());
  }
  // The same run takes a slow device longer, and more keys take longer.
  EXPECT_GT(json[0]["total"]["us"], json[4]["total"]["us"]);
  EXPECT_GT(json[2]["total"]["least_bytes"], json[0]["total"]["least_bytes"]);
  const std::string table = Run("bench", with({}));
  EXPECT_NE(std::string::npos, table.find("adreno830: 84.8 GB/s")) << table;
  EXPECT_NE(std::string::npos, table.find("tokens/s")) << table;
}

// The bytes read per token depend on the tokens in the context, not on its capacity.
TEST_F(ToolTest, Bench_Contexts_ReadTheSameBytes) {
  const nlohmann::json json = RunJson("bench", {"-p", "0", "-n", "4", "-d", "64", "-c", "0,100,512",
                                                "-t", "1", "-r", "1", "--json"});
  ASSERT_EQ(3u, json["results"].size());
  const uint32_t contexts[] = {68, 100, 512};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(contexts[i], json["results"][i]["context"]);
    EXPECT_EQ(json["results"][0]["bytes_per_token"], json["results"][i]["bytes_per_token"]);
  }
}

}  // namespace
}  // namespace arn::test
