// The JSON of conversations, byte by byte: where and why a text is refused, what its numbers and
// escapes mean, how values are written, and what that costs.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <iterator>
#include <string>

#include "tests/unit/chat/chat_fixture.h"

namespace arn::test {
namespace {

std::string ErrorOf(const std::string& messages) {
  ChatCase c;
  c.messages = messages;
  const Rendered result = RenderTemplate("x", c);
  EXPECT_EQ(Status::kBadArgument, result.status) << messages;
  return result.error;
}
std::string TextOf(const std::string& source, const std::string& messages) {
  ChatCase c;
  c.messages = messages;
  const Rendered result = RenderTemplate(source, c);
  EXPECT_EQ(Status::kOk, result.status) << result.error;
  return result.text;
}
std::string Json(const std::string& messages) {
  return TextOf("{{ messages | tojson }}", messages);
}

TEST(ChatJsonExact, WhiteSpaceMayStandBetweenAnyTwoTokens) {
  const char* const tokens[] = {"[", "{", "\"a\"", ":", "1",     ",", "\"b\"", ":", "[", "2",
                                ",", "3", "]",     ",", "\"c\"", ":", "{",     "}", "}", "]"};
  const size_t n = std::size(tokens);
  const auto with = [&](char space, size_t place) {
    std::string text;
    for (size_t i = 0; i <= n; ++i) {
      if (i == place || place > n) text += space;
      if (i < n) text += tokens[i];
    }
    return Json(text);
  };
  const std::string wanted = "[{\"a\": 1, \"b\": [2, 3], \"c\": {}}]";
  for (const char space : {' ', '\t', '\n', '\r'}) {
    for (size_t place = 0; place <= n + 1; ++place) {
      EXPECT_EQ(wanted, with(space, place)) << int{space} << " before token " << place;
    }
  }
}

TEST(ChatJsonExact, ErrorsNameTheByte) {
  const struct {
    const char* text;
    size_t at;
    const char* why;
  } rows[] = {
      {"", 0, "expected a value"},
      {"  ", 2, "expected a value"},
      {"\x1F", 0, "expected a value"},
      {"nul", 0, "expected a value"},
      {"True", 0, "expected a value"},
      {"[1] 2", 4, "unexpected text after the value"},
      {"[]]", 2, "unexpected text after the value"},
      {"[1", 2, "expected ',' or ']'"},
      {"[1}", 2, "expected ',' or ']'"},
      {"[1,]", 3, "expected a value"},
      {"[,1]", 1, "expected a value"},
      {"[1 2]", 3, "expected ',' or ']'"},
      {"[{\"a\":1]", 7, "expected ',' or '}'"},
      {"[{\"a\":1,}]", 8, "expected a key in quotes"},
      {"[{\"a\" 1}]", 6, "expected ':'"},
      {"[{1:2}]", 2, "expected a key in quotes"},
      {"[{", 2, "expected a key in quotes"},
      {"[01]", 2, "a number with a leading 0"},
      {"[-01]", 3, "a number with a leading 0"},
      {"[-]", 2, "expected a digit"},
      {"[1.]", 3, "expected a digit"},
      {"[1.e5]", 3, "expected a digit"},
      {"[1e]", 3, "expected a digit"},
      {"[1E+]", 4, "expected a digit"},
      {"[1e--1]", 4, "expected a digit"},
      {"[1.5.5]", 4, "expected ',' or ']'"},
      {"[\"a", 3, "unterminated string"},
      {"[\"\\n", 4, "unterminated string"},
      {"[\"\\", 3, "unknown escape"},
      {"[\"\\x\"]", 3, "unknown escape"},
      {"[\"\\U0041\"]", 3, "unknown escape"},
      {"[\"a\x1F\"]", 3, "a control character in a string"},
      {"[\"\\n\x1F\"]", 4, "a control character in a string"},
      {"[\"\\u00g0\"]", 6, "expected four hexadecimal digits"},
      {"[\"\\u004\"]", 7, "expected four hexadecimal digits"},
      {"[\"\\u00/0\"]", 6, "expected four hexadecimal digits"},
      {"[\"\\u00:0\"]", 6, "expected four hexadecimal digits"},
      {"[\"\\u00`0\"]", 6, "expected four hexadecimal digits"},
      {"[\"\\u00@0\"]", 6, "expected four hexadecimal digits"},
      {"[\"\\ud800\"]", 8, "unpaired surrogate"},
      {"[\"\\udfff\"]", 8, "unpaired surrogate"},
      {"[\"\\udbff\\u0000\"]", 14, "unpaired surrogate"},
      {"[\"\\ud800\\udbff\"]", 14, "unpaired surrogate"},
      {"[\"\\ud800\\ue000\"]", 14, "unpaired surrogate"},
      {"[\"\\ud800\\n\"]", 8, "unpaired surrogate"},
      {"[\"\xFF\"]", 0, "the text is not UTF-8"},
  };
  for (const auto& row : rows) {
    EXPECT_EQ("messages: at byte " + std::to_string(row.at) + ": " + row.why, ErrorOf(row.text))
        << row.text;
  }
}

// An empty list in 101 others is none too many.
TEST(ChatJsonExact, Depth) {
  const auto nested = [](size_t n) { return std::string(n, '[') + std::string(n, ']'); };
  EXPECT_EQ("x", TextOf("x", nested(101)));
  EXPECT_EQ("messages: at byte 101: arrays and objects are nested too deep", ErrorOf(nested(102)));
}

TEST(ChatJsonExact, Escapes) {
  EXPECT_EQ("[\"\\\"\\\\/\\b\\f\\n\\r\\t\"]", Json("[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"]"));
  EXPECT_EQ("\"\\/\b\f\n\r\t", TextOf("{{ messages[0] }}", "[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"]"));
  EXPECT_EQ("aAzZ09\xC3\xA9\xC2\x80\xDF\xBF\xE0\xA0\x80\xEF\xBF\xBF",
            TextOf("{{ messages[0] }}",
                   "[\"\\u0061\\u0041\\u007A\\u005a\\u0030\\u0039\\u00e9\\u0080\\u07FF\\u0800"
                   "\\uffff\"]"));
  EXPECT_EQ("\xED\x9F\xBF\xEE\x80\x80\xF0\x90\x80\x80\xF4\x8F\xBF\xBF\xF0\x90\x90\x81",
            TextOf("{{ messages[0] }}",
                   "[\"\\ud7ff\\ue000\\uD800\\uDC00\\udbff\\udfff\\ud801\\udc01\"]"));
  // What is below a blank has a letter or four digits; what is above ASCII only if asked.
  std::string all, written;
  for (int c = 1; c < 128; ++c) {
    char text[8];
    std::snprintf(text, sizeof text, "\\u%04x", c);
    all += text;
    const char* const letters = "\b\f\n\r\t\"\\";
    const char* const at = std::strchr(letters, c);
    if (at != nullptr) {
      written += std::string("\\") + "bfnrt\"\\"[at - letters];
    } else {
      written += c < 0x20 ? std::string(text) : std::string(1, static_cast<char>(c));
    }
  }
  EXPECT_EQ("[\"" + written + "\"]", Json("[\"" + all + "\"]"));
  EXPECT_EQ("[\"~\\u007f\\u0080\\u00e9\\uffff\\ud800\\udc00\\udbff\\udfff\"]",
            TextOf("{{ messages | tojson(ensure_ascii=true) }}",
                   "[\"~\x7F\xC2\x80\xC3\xA9\xEF\xBF\xBF\xF0\x90\x80\x80\xF4\x8F\xBF\xBF\"]"));
  EXPECT_EQ("[\"\\u0000a\"]", Json("[\"\\u0000a\"]"));
}

TEST(ChatJsonExact, Numbers) {
  EXPECT_EQ(
      "[0, -0.0, 9223372036854775807, -9223372036854775808, 9223372036854775808, "
      "-9223372036854775809, 10, 100.0, 0.01, 1.5]",
      Json("[0,-0.0,9223372036854775807,-9223372036854775808,9223372036854775808,"
           "-9223372036854775809,10,1e+2,1E-2,1.5e0]"));
  EXPECT_EQ("[Infinity, -Infinity, NaN]",
            TextOf("{{ [messages[0], messages[1], messages[0] - messages[0]] | tojson }}",
                   "[1e999, -1e999]"));
  EXPECT_EQ("[true, false, null]", Json("[true,false,null]"));
  EXPECT_EQ("[0, 0]", Json("[-0, 0]"));
}

TEST(ChatJsonExact, Styles) {
  const char* const messages = R"([{"b": [1, {}], "a": [], "c": {"d": null}}])";
  EXPECT_EQ("[{\"b\": [1, {}], \"a\": [], \"c\": {\"d\": null}}]", Json(messages));
  EXPECT_EQ(
      "[\n  {\n    \"b\": [\n      1,\n      {}\n    ],\n    \"a\": [],\n    \"c\": {\n"
      "      \"d\": null\n    }\n  }\n]",
      TextOf("{{ messages | tojson(indent=2) }}", messages));
  EXPECT_EQ("[\n{\n\"b\": [\n1,\n{}\n],\n\"a\": [],\n\"c\": {\n\"d\": null\n}\n}\n]",
            TextOf("{{ messages | tojson(indent=0) }}", messages));
  EXPECT_EQ("[{\"a\":[]|\"b\":[1|{}]|\"c\":{\"d\":null}}]",
            TextOf("{{ messages | tojson(separators=('|', ':'), sort_keys=true) }}", messages));
  // Keys are sorted as texts, and equal ones do not occur.
  EXPECT_EQ("{\"\": 4, \"B\": 2, \"a\": 1, \"aa\": 5, \"b\": 3}",
            TextOf("{{ messages[0] | tojson(sort_keys=true) }}",
                   R"([{"b": 3, "a": 1, "B": 2, "aa": 5, "": 4}])"));
  EXPECT_EQ("{\"1\": 2, \"null\": 3, \"true\": 4, \"1.5\": 5}",
            TextOf("{{ {1: 2, none: 3, 2 > 1 and 'true': 4, 1.5: 5} | tojson }}", "[]"));
}

// What JSON makes of a text is the given text's but for the quotes and the escapes' own marks.
TEST(ChatJsonExact, GivenParts) {
  const auto marked = [](const char* source, const char* messages) {
    ChatCase c;
    c.messages = messages;
    return Marked(RenderTemplate(source, c));
  };
  EXPECT_EQ("[\"⟦ab⟧\"]", marked("{{ messages | tojson }}", "[\"ab\"]"));
  EXPECT_EQ("⟦a\nb⟧", marked("{{ messages[0] }}", "[\"a\\nb\"]"));
}

// Reading costs a step for each value, one to append it to its list, and one for each 64 bytes of a
// text.
TEST(ChatJsonExact, Steps) {
  const auto steps = [](const std::string& messages) {
    ChatCase c;
    c.messages = messages;
    uint64_t low = 0, high = 1 << 20;
    while (low < high) {
      c.max_steps = (low + high) / 2;
      if (RenderTemplate("x", c).status == Status::kOk) {
        high = c.max_steps;
      } else {
        low = c.max_steps + 1;
      }
    }
    return low;
  };
  const auto list = [](int n, const std::string& item) {
    std::string text = "[";
    for (int i = 0; i < n; ++i) text += (i > 0 ? "," : "") + item;
    return text + "]";
  };
  const uint64_t none = steps("[]");
  for (const char* item : {"1", "1.5", "true", "null", "\"x\"", "[]"}) {
    EXPECT_EQ(none + 100, steps(list(50, item))) << item;
  }
  EXPECT_EQ(none + 200, steps(list(50, "[1]")));
  const auto text = [](size_t n) { return "[\"" + std::string(n, 'x') + "\"]"; };
  EXPECT_EQ(steps(text(0)), steps(text(63)));
  EXPECT_EQ(steps(text(0)) + 1, steps(text(64)));
  EXPECT_EQ(steps(text(0)) + 100, steps(text(6463)));
}

}  // namespace
}  // namespace arn::test
