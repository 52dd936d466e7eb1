// Arguments of calls in each syntax, well formed and not: what they are as JSON, and where they
// end.
#include "runtime/chat/argument_reader.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "runtime/chat/heap.h"
#include "runtime/chat/parameter_value.h"

namespace arn::chat {
namespace {

bool Append(void* user, ReplyEvent, std::string_view text) {
  *static_cast<std::string*>(user) += text;
  return true;
}

// Returns the arguments as JSON and what is behind them: "JSON|rest"; "wrong" if they are none,
// "more" if they do not end.
std::string Read(ArgumentSyntax syntax, const std::string& text, const char* quote = "") {
  std::string json;
  ReplySink sink;
  sink.Start();
  sink.set_callback({Append, &json});
  ArgumentReader reader;
  reader.Start(syntax, quote);
  for (size_t i = 0; i < text.size(); ++i) {
    const ArgumentReader::Outcome outcome = reader.Take(text[i], &sink);
    if (outcome == ArgumentReader::Outcome::kMore) continue;
    sink.Flush();
    if (outcome == ArgumentReader::Outcome::kWrong) return "wrong";
    const size_t behind = outcome == ArgumentReader::Outcome::kEnd ? i + 1 : i;
    return json + "|" + text.substr(behind);
  }
  return "more";
}
std::string Json(const std::string& text) { return Read(ArgumentSyntax::kJson, text); }
std::string Python(const std::string& text) { return Read(ArgumentSyntax::kPython, text); }
std::string BareKeys(const std::string& text, const char* quote = "<|\"|>") {
  return Read(ArgumentSyntax::kBareKeys, text, quote);
}

TEST(ArgumentReader, ValuesOfJson) {
  for (const char* const text :
       {"{}", "[]", "{\"a\": 1}", "[1, [2], {\"b\": null}]", "\"a\\n\\u00e9\"", "[true, false]",
        "[0, -0, 10, 0.5, -1.25, 1e5, 1E+5, 2.5e-10, 12E12]"}) {
    EXPECT_EQ(Json(std::string(text) + "x"), std::string(text) + "|x");
  }
  // What is no bracket ends before what follows.
  for (const char* const text : {"12", "-0.5", "1e5", "1.5E-3", "null", "true"}) {
    EXPECT_EQ(Json(std::string(text) + " }"), std::string(text) + "| }");
  }
  EXPECT_EQ(Json("\t{\r\n \"a\" :[ ] ,\"b\":{ } }"), "{\"a\": [], \"b\": {}}|");
  EXPECT_EQ(Json("{\"a\": 1,}"), "{\"a\": 1}|");
  EXPECT_EQ(Json("\"\t\r\n\x01\x1f\""), "\"\\t\\r\\n\\u0001\\u001f\"|");
  const std::string digits(200, '7');
  EXPECT_EQ(Json(digits + ","), digits + "|,");
  EXPECT_EQ(Json("-" + digits + ".5E+7 "), "-" + digits + ".5E+7| ");
}

TEST(ArgumentReader, EscapesOfJson) {
  EXPECT_EQ(Json(R"("\"\\\/\b\f\n\r\t\u00E9")"), R"("\"\\\/\b\f\n\r\t\u00E9"|)");
  EXPECT_EQ(Json(R"("\d+\.\x41\'")"), R"("\\d+\\.\\x41\\'"|)");
  EXPECT_EQ(Json("\"\\\n\""), R"("\\\n"|)");
  EXPECT_EQ(Json(R"("\u12g4")"), "wrong");
  EXPECT_EQ(Json(R"("\u123")"), "wrong");
  EXPECT_EQ(Python("a=\"\\u00e9\\x41\\/\")"), R"({"a": "\u00e9\u0041\\/"}|))");
  EXPECT_EQ(Python(R"(a="\u00x")"), "wrong");
}

TEST(ArgumentReader, WhatIsNoJson) {
  const std::string digits(200, '7');
  for (const std::string& text :
       std::initializer_list<std::string>{"{a: 1}",
                                          "{'a': 1}",
                                          "{\"a\"= 1}",
                                          "{\"a\" 1}",
                                          "{\"a\": }",
                                          "{\"a\": 1]",
                                          "[1}",
                                          "[1)",
                                          "(1)",
                                          "[True]",
                                          "[None]",
                                          "nil ",
                                          "[01]",
                                          "[-]",
                                          "[.5]",
                                          "[1.]",
                                          "[1e]",
                                          "[1e+]",
                                          "[1e5.]",
                                          "[1ee5]",
                                          "[--1]",
                                          "[1.2.3]",
                                          "[1.e5]",
                                          "[+1]",
                                          "]",
                                          "}",
                                          ":",
                                          "[:]",
                                          "[1 2]",
                                          "['a']",
                                          "{=",
                                          "[\xC3\xA9]",
                                          "{1: 2}",
                                          "[" + digits + "x]",
                                          "[" + digits + ".]",
                                          "[" + digits + "e]",
                                          "[" + std::string(200, 'a') + "]",
                                          "[" + digits + ".5.5]",
                                          "[" + digits + "-]",
                                          "[-" + std::string(199, '0') + "]",
                                          std::string(65, '[')}) {
    EXPECT_EQ(Json(text), "wrong") << text;
  }
  EXPECT_EQ(Json(std::string(64, '[') + std::string(64, ']')),
            std::string(64, '[') + std::string(64, ']') + "|");
  EXPECT_EQ(Json("{\"a\": \"b"), "more");
}

TEST(ArgumentReader, ArgumentsOfPython) {
  EXPECT_EQ(Python(")"), "{}|)");
  EXPECT_EQ(Python("a=1, 'b'=None, \"c\": True)"), "{\"a\": 1, \"b\": null, \"c\": true}|)");
  EXPECT_EQ(Python("a=(), b=[(1,), {'k': (2, 3)}])"),
            "{\"a\": [], \"b\": [[1], {\"k\": [2, 3]}]}|)");
  EXPECT_EQ(Python("a=word, b=\xC3\xA9t\xC3\xA9, c=x.y-z_+)"),
            "{\"a\": \"word\", \"b\": \"\xC3\xA9t\xC3\xA9\", \"c\": \"x.y-z_+\"}|)");
  EXPECT_EQ(Python(R"(a='\\\'\"\n\r\t\b\f\x4f\xAf\u00e9\q\0'))"),
            "{\"a\": \"\\\\'\\\"\\n\\r\\t\\b\\f\\u004f\\u00Af\\u00e9\\\\q\\\\0\"}|)");
  EXPECT_EQ(Python("a='\"', b=\"'\")"), "{\"a\": \"\\\"\", \"b\": \"'\"}|)");
  for (const char* const text :
       {"a=1]",  "a=1}",      "a=[1}",     "a=[1)]",    "a={'k'=1})", "a={'k': 1)",  "a={'k': 1]",
        "a=(1}", "a='\\xg0'", "a='\\x/0'", "a='\\x@0'", "a='\\x`0'",  "a='\\x:0'",   "a 1",
        "[",     "=1",        "a==1",      "{",         "a=:",        "a={'k': 1, )"}) {
    EXPECT_EQ(Python(text), "wrong") << text;
  }
}

TEST(ArgumentReader, ArgumentsWithBareKeys) {
  EXPECT_EQ(BareKeys("{}x"), "{}|x");
  EXPECT_EQ(BareKeys("{a:1,b:<|\"|>x<|\"|>,<|\"|>c<|\"|>:[true,word]}"),
            "{\"a\": 1, \"b\": \"x\", \"c\": [true, \"word\"]}|");
  // Almost a quote.
  EXPECT_EQ(BareKeys("{a:<|\"|><<|\"|<|\"|<|\"|>}"), "{\"a\": \"<<|\\\"|<|\\\"|\"}|");
  EXPECT_EQ(BareKeys("{a:<|\"|><|\"x<|\"|>}"), "{\"a\": \"<|\\\"x\"}|");
  // A quote of one character.
  EXPECT_EQ(BareKeys("{a:`x\\`}", "`"), "{\"a\": \"x\\\\\"}|");
  for (const char* const text : {"[1]", "1 ", "\"a\"", "{a=1}", "{a:1)", "{a:(1)}", "{a:<x}",
                                 "{a:<|x", "{a:\"b\"}", "{a:'b'}", "{:1}", "{a:1]"}) {
    EXPECT_EQ(BareKeys(text), "wrong") << text;
  }
  EXPECT_EQ(BareKeys("{a:\"b\"}", ""), "wrong");
  EXPECT_EQ(BareKeys("{" + std::string(200, 'a') + ":1}"), "wrong");
}

std::string Parameter(const std::string& text, ToolTypes::Type type = ToolTypes::Type::kUnknown) {
  std::string json;
  ReplySink sink;
  sink.Start();
  sink.set_callback({Append, &json});
  ParameterValue value;
  value.Start(type, &sink);
  for (const char byte : text) value.Add(byte, &sink);
  value.End(&sink);
  sink.Flush();
  return json;
}

TEST(ParameterValue, JsonIsItself_TheRestIsAString) {
  EXPECT_EQ(Parameter("{\"a\": [1]}"), "{\"a\": [1]}");
  EXPECT_EQ(Parameter(" [1] \n"), "[1]");
  EXPECT_EQ(Parameter("[1] x"), "\"[1] x\"");
  EXPECT_EQ(Parameter("12"), "12");
  EXPECT_EQ(Parameter("12 \t"), "12");
  EXPECT_EQ(Parameter("12]"), "\"12]\"");
  EXPECT_EQ(Parameter("12 13"), "\"12 13\"");
  EXPECT_EQ(Parameter("1e"), "\"1e\"");
  EXPECT_EQ(Parameter("[1"), "\"[1\"");
  EXPECT_EQ(Parameter("\"a\""), "\"a\"");
  EXPECT_EQ(Parameter(""), "\"\"");
  EXPECT_EQ(Parameter("True"), "true");
  EXPECT_EQ(Parameter("False"), "false");
  EXPECT_EQ(Parameter("None"), "null");
  EXPECT_EQ(Parameter("none"), "\"none\"");
  EXPECT_EQ(Parameter("12", ToolTypes::Type::kString), "\"12\"");
  EXPECT_EQ(Parameter("12", ToolTypes::Type::kOther), "12");
}

TEST(ToolTypes, FromTheSchemas) {
  const auto memory = std::make_unique<std::max_align_t[]>(4096);
  Diag diag;
  Heap heap({reinterpret_cast<std::byte*>(memory.get()), 4096 * sizeof(std::max_align_t)}, 100000,
            &diag);
  ToolTypes types;
  using Type = ToolTypes::Type;
  EXPECT_EQ(types.Read("{}", &heap, &diag), Status::kBadArgument);
  EXPECT_EQ(types.TypeOf("f", "a"), Type::kUnknown);
  EXPECT_EQ(types.Read("[", &heap, &diag), Status::kBadArgument);
  EXPECT_EQ(types.Read("null", &heap, &diag), Status::kOk);
  EXPECT_EQ(types.TypeOf("f", "a"), Type::kUnknown);
  ASSERT_EQ(types.Read(R"([3, {"name": 4}, {"function": 5, "name": "g"}, {"name": "f", "parameters":
      {"properties": {"s": {"type": "string"}, "i": {"type": "integer"}, "n": {"type": 3},
      "l": {"type": ["null", 3, "string"]}, "m": {"type": ["null", 3]}, "e": {"enum": ["a", "b"]},
      "o": {"enum": ["a", 1]}, "p": {"enum": []}, "q": {"enum": "a"}, "r": {}, "t": 3}}},
      {"name": "f", "parameters": {"properties": {"s": {"type": "null"}}}}])",
                       &heap, &diag),
            Status::kOk)
      << diag.text();
  const std::pair<const char*, Type> wanted[] = {
      {"s", Type::kString},  {"i", Type::kOther},   {"n", Type::kUnknown}, {"l", Type::kString},
      {"m", Type::kOther},   {"e", Type::kString},  {"o", Type::kUnknown}, {"p", Type::kUnknown},
      {"q", Type::kUnknown}, {"r", Type::kUnknown}, {"t", Type::kUnknown}, {"z", Type::kUnknown}};
  for (const auto& [name, type] : wanted) EXPECT_EQ(types.TypeOf("f", name), type) << name;
  EXPECT_EQ(types.TypeOf("g", "s"), Type::kUnknown);
  EXPECT_EQ(types.TypeOf("h", "s"), Type::kUnknown);
}

}  // namespace
}  // namespace arn::chat
