// Replies with tool calls in every kind of format: what the constraint allows, and that a parser of
// replies reads each of its replies as the calls they are.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "tool_calls_fixture.h"

namespace arn::tool_calls_test {
namespace {

TEST(ToolCalls, CallsOfEachFormat_AreAllowed) {
  for (const Case& c : Cases()) {
    SCOPED_TRACE(c.name);
    Replies replies;
    ASSERT_EQ(replies.Compile(c, ToolChoice::kRequired), Status::kOk) << replies.error();
    EXPECT_TRUE(replies.Accepts(c.weather));
    EXPECT_EQ(replies.Accepts(c.two), !c.two.empty());
    EXPECT_FALSE(replies.MayBegin(c.wrong));
    EXPECT_FALSE(replies.Accepts("Hello"));
    EXPECT_FALSE(replies.Accepts(""));
    EXPECT_FALSE(replies.Accepts(c.weather + "x"));
    const Parsed parsed = Parse(c.format, c.weather);
    ASSERT_EQ(parsed.calls.size(), 1u);
    EXPECT_EQ(parsed.calls[0].first, "get_weather");
    EXPECT_EQ(nlohmann::json::parse(parsed.calls[0].second),
              (nlohmann::json{{"city", "Oslo"}, {"days", 2}}));
    // One call only.
    ASSERT_EQ(replies.Compile(c, ToolChoice::kRequired, "", true), Status::kOk);
    EXPECT_TRUE(replies.Accepts(c.weather));
    EXPECT_FALSE(replies.Accepts(c.two));
    // Of one tool only.
    ASSERT_EQ(replies.Compile(c, ToolChoice::kNamed, "get_weather"), Status::kOk);
    EXPECT_TRUE(replies.Accepts(c.weather));
    EXPECT_FALSE(replies.Accepts(c.two));
    ASSERT_EQ(replies.Compile(c, ToolChoice::kNamed, "add"), Status::kOk);
    EXPECT_FALSE(replies.Accepts(c.weather));
  }
}

TEST(ToolCalls, Auto_AllowsTextOrCalls) {
  for (const Case& c : Cases()) {
    SCOPED_TRACE(c.name);
    Replies replies;
    ASSERT_EQ(replies.Compile(c, ToolChoice::kAuto), Status::kOk) << replies.error();
    EXPECT_TRUE(replies.Accepts(c.weather));
    EXPECT_TRUE(replies.Accepts(c.two) || !IsText(c));
    EXPECT_FALSE(replies.MayBegin(c.wrong));
    const std::string begin(c.format.content_begin);
    EXPECT_TRUE(replies.Accepts(begin + "Hello, <b>world</b> {\"a\": [1]} \xE2\x82\xAC"));
    EXPECT_FALSE(replies.Accepts("\xFF"));
    EXPECT_FALSE(replies.Accepts("\x80"));
    ASSERT_EQ(replies.Compile(c, ToolChoice::kNone), Status::kOk) << replies.error();
    EXPECT_FALSE(replies.Accepts(c.weather));
    EXPECT_TRUE(replies.Accepts(begin + "Hello"));
  }
}

TEST(ToolCalls, Reasoning_ComesFirst_OrIsOpen) {
  for (const Case& c : Cases()) {
    if (!c.format.has_reasoning()) continue;
    SCOPED_TRACE(c.name);
    Replies replies;
    const std::string begin(c.format.reasoning_begin), end(c.format.reasoning_end);
    for (const ToolChoice choice : {ToolChoice::kAuto, ToolChoice::kRequired}) {
      ASSERT_EQ(replies.Compile(c, choice), Status::kOk) << replies.error();
      EXPECT_TRUE(replies.Accepts(begin + "let me see" + end + c.weather));
      EXPECT_FALSE(replies.Accepts(begin + "let me see"));
      ASSERT_EQ(replies.Compile(c, choice, "", false, ReplyStart::kInReasoning), Status::kOk);
      EXPECT_TRUE(replies.Accepts("let me see" + end + c.weather));
      EXPECT_FALSE(replies.Accepts("let me see"));
      ASSERT_EQ(replies.Compile(c, choice, "", false, ReplyStart::kInText), Status::kOk);
      EXPECT_FALSE(replies.Accepts(begin + "let me see" + end + c.weather));
      EXPECT_TRUE(replies.Accepts(c.weather));
    }
  }
}

TEST(ToolCalls, OtherSpelling_OfChannels) {
  const std::vector<Case> cases = Cases();
  const Case& c = cases.back();
  Replies replies;
  ASSERT_EQ(replies.Compile(c, ToolChoice::kRequired), Status::kOk) << replies.error();
  const std::string call =
      "<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>"
      "{\"city\": \"Oslo\"}";
  EXPECT_TRUE(replies.Accepts(call));
  EXPECT_FALSE(replies.MayBegin("<|channel|>commentary to=functions.get_weather<|channel|>"));
  const Parsed parsed = Parse(c.format, call + "<|call|>");
  ASSERT_EQ(parsed.calls.size(), 1u);
  EXPECT_EQ(parsed.calls[0].second, "{\"city\": \"Oslo\"}");
  EXPECT_EQ(parsed.problems + parsed.text, "");
}

// Random replies of each constraint are read as calls whose arguments fit their schemas; what the
// constraint calls text is read as text.
TEST(ToolCalls, RandomReplies_AreParsedAsMeant) {
  std::mt19937 rng(7);
  for (const Case& c : Cases()) {
    SCOPED_TRACE(c.name);
    size_t n_calls = 0, n_texts = 0;
    for (const ToolChoice choice : {ToolChoice::kRequired, ToolChoice::kAuto, ToolChoice::kNone}) {
      Replies replies;
      ASSERT_EQ(replies.Compile(c, choice), Status::kOk) << replies.error();
      for (int i = 0; i < 20; ++i) {
        const std::string reply = replies.Draw(&rng, 40);
        if (reply.empty()) continue;
        SCOPED_TRACE(reply);
        ASSERT_TRUE(replies.Accepts(reply));
        const Parsed parsed = Parse(c.format, reply);
        EXPECT_EQ(parsed.problems, "");
        if (choice == ToolChoice::kRequired) {
          EXPECT_FALSE(parsed.calls.empty());
          EXPECT_EQ(parsed.text, "");
        }
        EXPECT_TRUE(choice != ToolChoice::kNone || parsed.calls.empty());
        for (const auto& [name, arguments] : parsed.calls) {
          EXPECT_TRUE(nlohmann::json::accept(arguments)) << arguments;
          EXPECT_TRUE(FitsSchema(SchemaOf(name), arguments)) << name << " " << arguments;
        }
        n_calls += parsed.calls.size();
        n_texts += parsed.text.empty() ? 0 : 1;
      }
    }
    EXPECT_GT(n_calls, 8u);
    EXPECT_GT(n_texts, IsText(c) ? 3u : 0u);
  }
}

TEST(ToolCalls, Refusals_NameTheTool) {
  const std::vector<Case> cases = Cases();
  Replies replies;
  const auto error = [&](const std::string& tools, ToolChoice choice = ToolChoice::kRequired) {
    EXPECT_NE(replies.Compile(cases[0], choice, "f", false, ReplyStart::kOpen, tools), Status::kOk);
    return std::string(replies.error());
  };
  EXPECT_EQ(error("{}"), "tools: expected an array");
  EXPECT_EQ(error("[]"), "tools: there are none to call");
  EXPECT_EQ(error("[{}]"), "tools: #/0 has no name");
  EXPECT_EQ(error(R"([{"name": "g"}])", ToolChoice::kNamed), "tools: none is named \"f\"");
  EXPECT_NE(error(R"([{"name": "f g"}])").find("\"f g\""), std::string::npos);
  EXPECT_EQ(error(R"([{"name": "f", "parameters": {"properties": {"a": {"$ref": "http://x"}}}}])")
                .rfind("tool f: JSON schema: #/properties/a", 0),
            0u)
      << replies.error();
  EXPECT_NE(error(R"([{"name": "f", "parameters": {"type": "string"}}])").find("tool f"),
            std::string::npos);
  Case none = cases[0];
  none.format.arguments = ArgumentSyntax::kNone;
  EXPECT_EQ(replies.Compile(none, ToolChoice::kRequired), Status::kUnsupported);
  EXPECT_EQ(replies.Compile(none, ToolChoice::kNone), Status::kOk);
}

}  // namespace
}  // namespace arn::tool_calls_test
