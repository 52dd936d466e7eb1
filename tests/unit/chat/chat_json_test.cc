// The JSON of conversations, tools and variables: refusals, numbers, and what counts as given text.
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/chat/chat_fixture.h"

namespace arn::test {
namespace {

bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(ChatJson, RefusesWhatIsNone) {
  const char* bad[] = {"",
                       "[",
                       "[1,]",
                       "{}",
                       "[01]",
                       "[1.]",
                       "[.5]",
                       "[+1]",
                       "[NaN]",
                       "[1e]",
                       "['a']",
                       "[\"a]",
                       "[\"\\x\"]",
                       "[\"\\u12\"]",
                       "[\"\\ud800\"]",
                       "[\"\n\"]",
                       "[1] 2",
                       "[tru]",
                       "[{1: 2}]",
                       "[{\"a\"}]",
                       "[\xFF]",
                       "[\"\\ud800\\u0041\"]",
                       "[\"\\ud800\\ue000\"]",
                       "[\"\\ud800\\uzzzz\"]",
                       "[\"\\",
                       "[\"\\n\x01\"]",
                       "[\"\\n",
                       "[1 2]",
                       "[{\"a\":1 \"b\":2}]",
                       "[-]",
                       "[1e+]",
                       "[-a]",
                       "[1.a]",
                       "[1.5.5]",
                       "[1ea]",
                       "[1e5.5]",
                       "[1e5e5]",
                       "[{\"a\\q\":1}]",
                       "[\"\\udc00\"]",
                       "null"};
  for (const char* text : bad) {
    ChatCase c;
    c.messages = text;
    const Rendered result = RenderTemplate("x", c);
    EXPECT_EQ(Status::kBadArgument, result.status) << text;
    EXPECT_TRUE(Has(result.error, "messages: ")) << result.error;
  }
  ChatCase deep;
  deep.messages = std::string(5000, '[') + std::string(5000, ']');
  EXPECT_TRUE(Has(RenderTemplate("x", deep).error, "nested too deep"));
  ChatCase tools;
  tools.tools = "[";
  EXPECT_TRUE(Has(RenderTemplate("x", tools).error, "tools: "));
  tools.tools = "{}";
  EXPECT_TRUE(Has(RenderTemplate("x", tools).error, "tools: expected an array or null"));
  ChatCase variables;
  variables.variables = R"({"messages": []})";
  EXPECT_TRUE(Has(RenderTemplate("x", variables).error, "'messages' is a reserved name"));
  variables.variables = "[]";
  EXPECT_TRUE(Has(RenderTemplate("x", variables).error, "variables: expected an object"));
  variables.variables = R"({"bos_token": 3, "eos_token": "E", "other": "o"})";
  EXPECT_EQ(Marked(RenderTemplate("{{ bos_token }}{{ eos_token }}{{ other }}", variables)),
            "3E⟦o⟧");
}

// Lists and objects alike.
TEST(ChatJson, DepthAndLength_AreBounded) {
  const auto nested = [](int n, const std::string& open, const std::string& close) {
    ChatCase c;
    c.messages = "[";
    for (int i = 0; i < n; ++i) c.messages += open;
    c.messages += "1";
    for (int i = 0; i < n; ++i) c.messages += close;
    c.messages += "]";
    return RenderTemplate("x", c).status;
  };
  int deepest = 0;
  while (nested(deepest + 1, "[", "]") == Status::kOk) ++deepest;
  EXPECT_GT(deepest, 50);
  EXPECT_EQ(Status::kOk, nested(deepest, "{\"a\":", "}"));
  EXPECT_EQ(Status::kBadArgument, nested(deepest + 1, "{\"a\":", "}"));
  // Reading a long text is work.
  for (const std::string begin : {"", "\\n"}) {
    ChatCase c;
    c.messages = "[\"" + begin + std::string(64 * 1000, 'x') + "\"]";
    c.max_steps = 900;
    const Rendered result = RenderTemplate("x", c);
    EXPECT_EQ(Status::kTemplateError, result.status);
    EXPECT_TRUE(Has(result.error, "took more than 900 steps")) << result.error;
    c.max_steps = 5000;
    EXPECT_EQ(Status::kOk, RenderTemplate("x", c).status);
  }
  // So is writing each value.
  const auto least_steps = [](const char* source) {
    ChatCase c;
    c.messages = "[0";
    for (int i = 1; i < 1000; ++i) c.messages += ",0";
    c.messages += "]";
    for (c.max_steps = 0; RenderTemplate(source, c).status != Status::kOk;) c.max_steps += 50;
    return c.max_steps;
  };
  EXPECT_GE(least_steps("{{ messages | tojson }}"), least_steps("{{ messages }}"));
  EXPECT_GE(least_steps("{{ messages | tojson }}"), least_steps("x") + 1000);
}

// Roles that are words are the template's own text: others could look like control tokens.
TEST(ChatJson, RolesThatAreWords) {
  ChatCase c;
  for (const std::string& role :
       {std::string("user"), std::string("A_b-9"), std::string("zZ0"), std::string(32, 'a')}) {
    c.messages = R"([{"role": ")" + role + R"("}, {"role": 3}, 4])";
    EXPECT_EQ(Marked(RenderTemplate("{{ messages[0].role }}", c)), role);
  }
  for (const std::string& role :
       {std::string("a b"), std::string("a@"), std::string("["), std::string("`"), std::string("{"),
        std::string("/"), std::string(":"), std::string("é"), std::string(1000, 'a')}) {
    c.messages = R"([{"role": ")" + role + R"("}])";
    EXPECT_EQ(Marked(RenderTemplate("{{ messages[0].role }}", c)), "⟦" + role + "⟧");
  }
  c.messages = R"([{"role": ""}])";
  EXPECT_EQ(RenderTemplate("{{ messages[0].role }}", c).text, "");
}

TEST(ChatJson, WhiteSpaceAndNumbersBeyondDoubles) {
  ChatCase c;
  c.messages = "\t[\r\n1e400 ,\t-1e400, 1e-400, -1E-400, \"\\uD83e\\uDD8A\\/\" ]\n";
  EXPECT_EQ("[inf, -inf, 0.0, -0.0, '🦊/']", RenderTemplate("{{ messages }}", c).text);
  c.messages = "[" + std::string(400, '9') + ".0]";
  EXPECT_EQ("[inf]", RenderTemplate("{{ messages }}", c).text);
  // The sign of the exponent does not tell which it is.
  c.messages = "[0." + std::string(400, '0') + "1, -1" + std::string(400, '0') + "e-5]";
  EXPECT_EQ("[0.0, -inf]", RenderTemplate("{{ messages }}", c).text);
  c.messages = std::string("[\"\\\0\"]", 6);
  EXPECT_EQ(Status::kBadArgument, RenderTemplate("x", c).status);
}

TEST(ChatJson, KeepsNumbersTextsAndOrder) {
  ChatCase c;
  c.messages =
      R"( [{"b":1,"a":0,"b":2}, 1e2,1E-7,1.0,99999999999999999999,-0.0,"\u00e9\ud83e\udd8a\"" ] )";
  EXPECT_EQ(R"([{"b": 2, "a": 0}, 100.0, 1e-07, 1.0, 99999999999999999999, -0.0, "é🦊\""])",
            RenderTemplate("{{ messages | tojson }}", c).text);
}

}  // namespace
}  // namespace arn::test
