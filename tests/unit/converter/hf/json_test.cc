// JSON files of checkpoints and tokenizers: what is read, and what the errors say.
#include <cmath>

#include "converter/hf/json_file.h"
#include "converter/tokenizer/json_node.h"
#include "nlohmann/json.hpp"
#include "tests/support/tiny_checkpoint.h"
#include "tests/unit/converter/expect_error.h"

namespace arn::convert {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::string ErrorOf(const std::string& text) {
  return test::ErrorOf([&] { ParseJson(text, "c.json"); });
}

TEST(CheckpointJson, FloatsOfPython_AreKept) {
  const json read = ParseJson(
      R"({"a": Infinity, "b": -Infinity, "c": [NaN], "d": "NaN \" Infinity \\", "e": {"a": 1}})",
      "c.json");
  EXPECT_EQ(json::parse(R"({"a": {"__float__": "Infinity"}, "b": {"__float__": "-Infinity"},
                            "c": [{"__float__": "NaN"}], "d": "NaN \" Infinity \\",
                            "e": {"a": 1}})"),
            read);
}

TEST(CheckpointJson, Errors_NameLineAndColumn) {
  EXPECT_THAT(ErrorOf(""), AllOf(HasSubstr("c.json:1:1: not valid JSON: "),
                                 HasSubstr("attempting to parse an empty input")));
  EXPECT_THAT(ErrorOf("{\n  \"a\": ]"), HasSubstr("c.json:2:8: not valid JSON: syntax error"));
  EXPECT_THAT(ErrorOf("{\"a\": NaN, }"), HasSubstr("c.json:1:7: not valid JSON"));
  EXPECT_THAT(ErrorOf("[NaN, \"\\"), HasSubstr("c.json:1:2: not valid JSON"));
  EXPECT_THAT(ErrorOf("[1e999]"), HasSubstr("c.json: not valid JSON: number overflow"));
  EXPECT_THAT(ErrorOf(R"({"a": 1, "b": {"a": 2}, "a": 3})"),
              HasSubstr("c.json: the key \"a\" appears twice in one object"));
  // Twice in what needed its floats replaced.
  EXPECT_THAT(ErrorOf(R"({"a": NaN, "a": 3})"), HasSubstr("the key \"a\" appears twice"));
}

TEST(CheckpointJson, Files) {
  test::TempFolder folder;
  const std::filesystem::path none = folder / "none.json";
  EXPECT_THAT(test::ErrorOf([&] { LoadJson(none); }),
              AllOf(HasSubstr(none.string()), HasSubstr("cannot open: No such file")));
  EXPECT_THAT(test::ErrorOf([&] { ReadTextFile(folder / ""); }),
              AllOf(HasSubstr(": cannot read: "), HasSubstr("Is a directory")));
  const std::string text(100000, 'x');
  test::WriteFile(folder / "text", text);
  EXPECT_EQ(text, ReadTextFile(folder / "text"));
  EXPECT_EQ("\"" + std::string(76, 'x') + "...", Shown(text));
}

std::string TokenizerErrorOf(const std::function<void()>& action) {
  try {
    action();
  } catch (const TokenizerError& error) {
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

// As serde_json reads them: the digits as a whole number, times a power of ten.
TEST(TokenizerJson, Numbers) {
  const std::pair<const char*, double> rows[] = {
      {"1.5", 1.5},
      {"-0.0", -0.0},
      {"-1.25e1", -12.5},
      {"25E-1", 2.5},
      {"2e+2", 200},
      {"0e999", 0},
      {"1e-400", 0},
      {"1e-999999999", 0},
      {"5e-324", 4.9406564584124654e-324},
      {"1.7976931348623157e308", 1.7976931348623157e308},
      {"-13.37", -1337.0 / 100},
      {"18446744073709551616", 18446744073709551616.0},
      // All 64 bits are digits.
      {"1.8446744073709551615", 18446744073709551615.0 / 1e19},
      {"3e1", 30},
      // More digits than 64 bits hold: the others count as zeros.
      {"123456789012345678901234567890.0", 12345678901234567890.0 * 1e10},
      {"0.123456789012345678901234567890", 12345678901234567890.0 / 1e20},
      {"18446744073709551616.5e-1", 1844674407370955161.0 * 10 / 10},
  };
  for (const auto& [text, value] : rows) {
    const json read = ParseTokenizerJson("[" + std::string(text) + "]", "t.json");
    EXPECT_EQ(value, read[0].get<double>()) << text;
    EXPECT_EQ(std::signbit(value), std::signbit(read[0].get<double>())) << text;
  }
  EXPECT_TRUE(ParseTokenizerJson("[7]", "t.json")[0].is_number_unsigned());
}

TEST(TokenizerJson, Values_AreChecked) {
  const json value = {
      {"s", "x"}, {"b", true}, {"n", 4294967295u}, {"list", {1, json::parse(R"({"k": null})")}}};
  const JsonNode root(&value, "t.json");
  EXPECT_EQ("x", root["s"].String());
  EXPECT_EQ("x", root["s"].String("y"));
  EXPECT_EQ("y", root["none"].String("y"));
  EXPECT_TRUE(root["b"].Bool());
  EXPECT_TRUE(root["b"].Bool(false));
  EXPECT_FALSE(root["none"].Bool(false));
  EXPECT_EQ(4294967295u, root["n"].Uint());
  EXPECT_EQ(2u, root["list"].Items().size());
  EXPECT_TRUE(root["list"].Items()[1]["k"].IsNull());
  const auto error = [&](const std::function<void(const JsonNode&)>& read, const json& bad) {
    const json object = {{"k", bad}};
    return TokenizerErrorOf([&] { read(JsonNode(&object, "t.json")["k"]); });
  };
  const auto text = [](const JsonNode& node) { node.String(); };
  const auto flag = [](const JsonNode& node) { node.Bool(); };
  const auto count = [](const JsonNode& node) { node.Uint(); };
  EXPECT_EQ("t.json: k is 1, expected a string", error(text, 1));
  EXPECT_EQ("t.json: k is 1, expected true or false", error(flag, 1));
  for (const json& bad :
       {json(-1), json(4294967296u), json(uint64_t{1} << 40), json("1"), json(1.0)}) {
    EXPECT_EQ("t.json: k is " + bad.dump() + ", expected a number from 0 to 4294967295",
              error(count, bad));
  }
  for (const auto& read :
       {std::function<void(const JsonNode&)>(text), std::function<void(const JsonNode&)>(flag),
        std::function<void(const JsonNode&)>(count),
        std::function<void(const JsonNode&)>([](const JsonNode& node) { node.Items(); })}) {
    EXPECT_THAT(TokenizerErrorOf([&] { read(root["none"]); }),
                HasSubstr("t.json: none is nothing, expected "));
  }
  EXPECT_THAT(TokenizerErrorOf([&] { root["list"].Items()[1]["odd"].FailUnsupported(); }),
              HasSubstr("t.json: list[1].odd nothing is not supported"));
  // Fields of what is no object, items of what is no list, of nothing, and of the whole file.
  EXPECT_TRUE(root["none"]["k"].IsNull());
  EXPECT_EQ("t.json: s is \"x\", expected an object", TokenizerErrorOf([&] { root["s"]["k"]; }));
  EXPECT_EQ("t.json: s is \"x\", expected an array", TokenizerErrorOf([&] { root["s"].Items(); }));
  const json list = {1, 2};
  EXPECT_EQ("t.json: is [1,2], expected an object",
            TokenizerErrorOf([&] { JsonNode(&list, "t.json")["k"]; }));
  // Long values are cut.
  const std::string shown = error(flag, std::string(200, 'a'));
  EXPECT_EQ("t.json: k is \"" + std::string(76, 'a') + "..., expected true or false", shown);
}

// Of at most 80 characters, the quotes included.
TEST(CheckpointJson, LongValues_AreCut) {
  for (const size_t n : {78u, 79u}) {
    const json value = std::string(n, 'a');
    const std::string wanted =
        n == 78 ? "\"" + std::string(78, 'a') + "\"" : "\"" + std::string(76, 'a') + "...";
    EXPECT_EQ(wanted, Shown(value));
    EXPECT_EQ("t.json: " + wanted + " is not supported",
              TokenizerErrorOf([&] { JsonNode(&value, "t.json").FailUnsupported(); }));
  }
}

TEST(CheckpointJson, Values_AreShownAsTheyAreWritten) {
  const json value = {"caf\u00e9", "\xff", 1};  // the second is no UTF-8
  EXPECT_EQ("[\"caf\u00e9\",\"\uFFFD\",1]", Shown(value));
  EXPECT_EQ("t.json: [\"caf\u00e9\",\"\uFFFD\",1] is not supported",
            TokenizerErrorOf([&] { JsonNode(&value, "t.json").FailUnsupported(); }));
}

TEST(TokenizerJson, Files) {
  test::TempFolder folder;
  test::WriteFile(folder / "t.json", "{\"a\": }");
  EXPECT_THAT(TokenizerErrorOf([&] { ReadJsonFile(folder / "t.json"); }),
              AllOf(HasSubstr("t.json: not valid JSON: parse error at line 1")));
  EXPECT_THAT(TokenizerErrorOf([&] { ReadJsonFile(folder / "none"); }),
              HasSubstr("none: cannot be opened"));
  EXPECT_THAT(TokenizerErrorOf([&] { ReadJsonFile(folder / ""); }), HasSubstr(": cannot be read"));
  EXPECT_THAT(TokenizerErrorOf([&] { ParseTokenizerJson("[1e999]", "t.json"); }),
              HasSubstr("t.json: not valid JSON: number overflow"));
}

}  // namespace
}  // namespace arn::convert
