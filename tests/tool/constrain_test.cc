// arenite constrain, and run with a constraint, on the model in models/.
#include <set>
#include <sstream>

#include "nlohmann/json.hpp"
#include "tests/harness/bundles.h"
#include "tests/harness/process.h"
#include "tests/support/tiny_checkpoint.h"

namespace arn::test {
namespace {

constexpr const char* kSchema = R"({
  "type": "object",
  "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
  "required": ["name", "age"],
  "additionalProperties": false
})";

class ConstrainTest : public testing::Test {
 protected:
  void SetUp() override {
    ARN_NEEDS_CONVERTER();
    bundle_ = (folder_ / "fable.arn").string();
    ASSERT_TRUE(Convert(SourcePath("models/fable/fable-2m"), bundle_, {"--weights", "int8"}));
  }

  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = (folder_ / name).string();
    WriteFile(path, text);
    return path;
  }
  ProcessResult Check(std::vector<std::string> arguments, const std::string& instances) {
    arguments.insert(arguments.begin(), {"constrain", "check"});
    arguments.insert(arguments.end(),
                     {"--instances", Write("instances.jsonl", instances), "--tokenizer", bundle_});
    return RunArenite(arguments);
  }
  static std::vector<std::string> Lines(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
  }
  nlohmann::json RunJson(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"run", bundle_, "--prompt", "Once upon a time", "--json"});
    const ProcessResult result = RunArenite(arguments);
    EXPECT_EQ(0, result.exit_code) << result.err;
    const auto json = nlohmann::json::parse(result.out, nullptr, false);
    EXPECT_FALSE(json.is_discarded()) << result.out;
    return json;
  }

  TempFolder folder_;
  std::string bundle_;
};

TEST_F(ConstrainTest, Check_SaysForEachLineWhetherItIsAllowed) {
  const std::string schema = Write("schema.json", kSchema);
  const std::string instances =
      "{\"name\":\"Ann\",\"age\":7}\n"
      "{\"name\":\"Ann\",\"age\":7.5}\n"
      "{\"name\":\"Ann\"\n"
      "{\"name\": \"Ann\",\"age\":7}\n"
      "{\"age\":7,\"name\":\"Ann\"}\n"
      "{\"name\":\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x90\x88\",\"age\":-12}\n"
      "{\"name\":\"\xC3\",\"age\":1}\n"
      "\n";
  const ProcessResult result = Check({"--json-schema", schema}, instances);
  EXPECT_EQ(1, result.exit_code) << result.err;
  const std::vector<std::string> lines = Lines(result.out);
  ASSERT_EQ(9u, lines.size()) << result.out;
  EXPECT_EQ(0u, lines[0].find("compiled")) << lines[0];
  EXPECT_EQ("accepted", lines[1]);
  EXPECT_EQ("refused at byte 23", lines[2]);  // 7.5e1 is an integer
  EXPECT_EQ("refused at byte 13", lines[3]);
  EXPECT_EQ("refused at byte 8", lines[4]);
  EXPECT_EQ("refused at byte 2", lines[5]);
  EXPECT_EQ("accepted", lines[6]);
  EXPECT_EQ("refused at byte 9", lines[7]);
  EXPECT_EQ("refused at byte 0", lines[8]);

  const ProcessResult json = Check({"--json-schema", schema, "--json"}, instances);
  EXPECT_EQ(1, json.exit_code);
  const std::vector<std::string> objects = Lines(json.out);
  ASSERT_EQ(9u, objects.size());
  const auto first = nlohmann::json::parse(objects[0]);
  EXPECT_EQ(true, first["compiled"]);
  EXPECT_GT(first["constraint"]["bytes"], 0);
  const std::string sizes[] = {"22", "23", "13", "8", "2", "30", "9", "0"};
  for (size_t i = 1; i < objects.size(); ++i) {
    const auto object = nlohmann::json::parse(objects[i]);
    EXPECT_EQ(3u, object.size());
    EXPECT_EQ(i, object["line"]);
    EXPECT_EQ(lines[i] == "accepted", object["accepted"]);
    EXPECT_EQ(sizes[i - 1], object["offset"].dump());
  }
}

TEST_F(ConstrainTest, Check_OptionsOfJson) {
  const std::string schema = Write("schema.json", kSchema);
  const std::string swapped = "{\"age\":7,\"name\":\"Ann\"}\n";
  const std::string spaced = "{ \"name\" : \"Ann\",\t\"age\":7 }\n";
  EXPECT_EQ(1, Check({"--json-schema", schema}, swapped).exit_code);
  EXPECT_EQ(0, Check({"--json-schema", schema, "--any-order"}, swapped).exit_code);
  EXPECT_EQ(1, Check({"--json-schema", schema}, spaced).exit_code);
  EXPECT_EQ(0, Check({"--json-schema", schema, "--whitespace", "any"}, spaced).exit_code);
  EXPECT_EQ(
      0, Check({"--json-schema", schema, "--whitespace", "compact"}, "{\"name\":\"\",\"age\":0}\n")
             .exit_code);
}

TEST_F(ConstrainTest, Check_OtherKinds) {
  EXPECT_EQ(0, Check({"--regex", "a+(b|c)"}, "aab\nac\n").exit_code);
  EXPECT_EQ(1, Check({"--regex", "a+(b|c)"}, "aab\naa\n").exit_code);
  const std::string grammar = Write("g.gbnf", "root ::= \"(\" root \")\" | \"\"\n");
  EXPECT_EQ(0, Check({"--grammar", grammar}, "(())\n\n").exit_code);
  EXPECT_EQ(1, Check({"--grammar", grammar}, "(()\n").exit_code);
  EXPECT_EQ(0, Check({"--choices", "red,dark green"}, "red\ndark green\n").exit_code);
  EXPECT_EQ(1, Check({"--choices", "red,dark green"}, "green\n").exit_code);
}

TEST_F(ConstrainTest, Check_ARefusedConstraint_NamesThePlace) {
  const std::string schema = Write("bad.json", R"({"properties": {"a/b": {"type": "strin"}}})");
  const ProcessResult result = Check({"--json-schema", schema}, "{}\n");
  EXPECT_EQ(2, result.exit_code);
  EXPECT_EQ(0u, result.out.find("refused: ")) << result.out;
  EXPECT_NE(std::string::npos, result.out.find("/properties/a~1b")) << result.out;
  EXPECT_NE(std::string::npos, result.out.find("type")) << result.out;
  EXPECT_EQ(1u, Lines(result.out).size());
  const ProcessResult json = Check({"--json-schema", schema, "--json"}, "{}\n");
  EXPECT_EQ(2, json.exit_code);
  EXPECT_EQ(false, nlohmann::json::parse(json.out)["compiled"]);
  EXPECT_EQ(2, Check({"--regex", "a(?=b)"}, "a\n").exit_code);
  EXPECT_EQ(2, Check({"--grammar", Write("g.gbnf", "start ::= \"a\"\n")}, "a\n").exit_code);
}

TEST_F(ConstrainTest, Bench_PrintsPercentiles) {
  const ProcessResult result = RunArenite({"constrain", "bench", "--regex", "( ?[a-z]{2,8}){20}",
                                           "--tokenizer", bundle_, "--tokens", "200", "--json"});
  EXPECT_EQ(0, result.exit_code) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  for (const char* row : {"compile", "test", "mask", "first_mask"}) {
    for (const char* share : {"p50_us", "p99_us", "p999_us", "max_us"}) {
      EXPECT_GT(json[row][share], 0) << row << ' ' << share;
    }
  }
  EXPECT_GT(json["test"]["count"], 100);
}

TEST_F(ConstrainTest, Run_EndsWithTheText_AndReports) {
  const std::string schema = Write("schema.json", R"({"type": "object",
    "properties": {"kind": {"enum": ["cat", "dog"]}, "legs": {"const": "four"}},
    "required": ["kind", "legs"], "additionalProperties": false})");
  for (const std::vector<std::string>& sampling :
       {std::vector<std::string>{"--temperature", "0"},
        {"--temperature", "1", "--seed", "3"},
        {"--temperature", "1", "--top-p", "0.9", "--seed", "4"}}) {
    std::vector<std::string> arguments = {"--json-schema", schema};
    arguments.insert(arguments.end(), sampling.begin(), sampling.end());
    const nlohmann::json json = RunJson(arguments);
    // A string may be spelled with escapes.
    const auto value = nlohmann::json::parse(json["text"].get<std::string>(), nullptr, false);
    EXPECT_TRUE(value["kind"] == "cat" || value["kind"] == "dog") << json["text"];
    EXPECT_EQ("four", value["legs"]);
    EXPECT_EQ("eos", json["finish"]);
    const nlohmann::json& constraint = json["constraint"];
    EXPECT_EQ(8u, constraint.size());
    for (const char* key : {"steps", "candidates_tested", "forced_tokens", "compile_us", "p50_us",
                            "p99_us", "max_us", "bytes"}) {
      EXPECT_TRUE(constraint.contains(key)) << key;
    }
    EXPECT_EQ(json["ids"].size(), constraint["steps"]);
    EXPECT_GT(constraint["forced_tokens"], 0);
  }
}

TEST_F(ConstrainTest, Run_OtherKinds) {
  const nlohmann::json choice = RunJson({"--choices", " a cat, a dog"});
  EXPECT_TRUE(choice["text"] == " a cat" || choice["text"] == " a dog") << choice["text"];
  const nlohmann::json regex = RunJson({"--regex", "[0-9]{3}-[0-9]{4}"});
  EXPECT_EQ(8u, regex["text"].get<std::string>().size());
  EXPECT_EQ("eos", regex["finish"]);
  const std::string grammar = Write("g.gbnf", "root ::= \"<\" [a-z]{2,4} \">\"\n");
  const nlohmann::json text = RunJson({"--grammar", grammar});
  EXPECT_EQ('<', text["text"].get<std::string>().front());
  EXPECT_EQ('>', text["text"].get<std::string>().back());
  EXPECT_FALSE(RunJson({"--max-tokens", "2"}).contains("constraint"));
}

TEST_F(ConstrainTest, Run_WithBeams_KeepsToTheConstraint) {
  const nlohmann::json json = RunJson({"--choices", " one cat, two dogs, three", "--beams", "3",
                                       "--return-sequences", "3", "--max-tokens", "20"});
  std::set<std::string> texts;
  for (const auto& sequence : json["sequences"]) texts.insert(sequence["text"]);
  for (const std::string& text : texts) {
    EXPECT_TRUE(text == " one cat" || text == " two dogs" || text == " three") << text;
  }
  EXPECT_FALSE(texts.empty());
}

TEST_F(ConstrainTest, Run_Errors_AreSentences) {
  const auto expect = [&](std::vector<std::string> arguments, int exit_code,
                          const std::string& part) {
    arguments.insert(arguments.begin(), {"run", bundle_, "--prompt", "a"});
    const ProcessResult result = RunArenite(arguments);
    EXPECT_EQ(exit_code, result.exit_code);
    EXPECT_NE(std::string::npos, result.err.find(part)) << result.err;
  };
  expect({"--regex", "a[b"}, 1, "offset");
  expect({"--regex", "a", "--any-order"}, 1, "--any-order needs --json-schema");
  expect({"--regex", "a", "--choices", "b"}, 2, "--choices");
  expect({"--json-schema", Write("s.json", R"({"items": {"format": "no-such"}, "type": 3})")}, 1,
         "type");
}

TEST_F(ConstrainTest, Plan_ShowsTheConstraints) {
  // A line of the plan; absent without constraints.
  const ProcessResult result = RunArenite({"plan", bundle_, "--json"});
  EXPECT_EQ(0, nlohmann::json::parse(result.out)["constraints"]);
}

TEST_F(ConstrainTest, Chat_ConstrainsEachAnswer) {
  const ProcessResult result = RunArenite(
      {"chat", bundle_, "--choices", " yes, no", "--temperature", "0"}, {}, "Is it?\nReally?\n");
  EXPECT_EQ(0, result.exit_code) << result.err;
  for (const std::string& line : Lines(result.out)) {
    EXPECT_TRUE(line == " yes" || line == " no" || line.empty()) << line;
  }
}

TEST_F(ConstrainTest, SaveAndRestore_GoOnInTheText_UnlessItHasEnded) {
  const std::string schema = Write("short.json", R"({"properties": {
    "name": {"type": "string", "maxLength": 8}, "age": {"type": "integer", "minimum": 0,
    "maximum": 99}}, "type": "object", "required": ["name", "age"],
    "additionalProperties": false})");
  const std::string state = (folder_ / "text.state").string();
  const auto restored = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"run", bundle_, "--restore", state, "--json"});
    const ProcessResult result = RunArenite(more);
    EXPECT_EQ(0, result.exit_code) << result.err;
    return nlohmann::json::parse(result.out, nullptr, false);
  };
  const std::vector<std::string> flags = {"--json-schema", schema, "--temperature", "0.9",
                                          "--seed",        "4",    "--max-tokens"};
  const auto with = [&flags](const std::vector<std::string>& more) {
    std::vector<std::string> all = flags;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  const auto whole = RunJson(with({"100"}));
  const auto begin = RunJson(with({"6", "--save", state}));
  EXPECT_EQ("length", begin["finish"]);
  const auto rest = restored({"--max-tokens", "100"});
  EXPECT_EQ("eos", rest["finish"]);
  EXPECT_TRUE(rest.contains("constraint"));
  std::vector<int32_t> ids = begin["ids"];
  for (const int32_t id : rest["ids"]) ids.push_back(id);
  EXPECT_EQ(whole["ids"].get<std::vector<int32_t>>(), ids);
  // A prompt, or another constraint, begins another text.
  EXPECT_FALSE(restored({"--prompt", " and", "--max-tokens", "4"}).contains("constraint"));
  EXPECT_EQ("maybe", restored({"--choices", "maybe"})["text"]);
  // So does what comes after a text that has ended.
  RunJson(with({"100", "--save", state}));
  EXPECT_FALSE(restored({"--max-tokens", "4"}).contains("constraint"));
}

}  // namespace
}  // namespace arn::test
