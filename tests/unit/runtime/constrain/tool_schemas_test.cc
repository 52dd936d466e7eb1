// Tools whose schemas are out of the ordinary, in every kind of format.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "tests/support/failing_arena.h"
#include "tool_calls_fixture.h"

namespace arn::tool_calls_test {
namespace {

// Schemas whose objects, names or strings are out of the ordinary. Replies of each format fit them,
// or the format refuses them with this in the error.
struct Rare {
  const char* schema;
  const char* refusal = nullptr;  // in calls as Python writes them
};
constexpr Rare kRare[] = {
    {R"({"type":"object","properties":{"a":{"type":["null","string"]},"b":{"enum":["x","y"]},
         "d":true,"e":{"enum":["x",1]},"f":{"type":["null","integer"]},"g":{"title":"t"},
         "h":{"const":"x"},"n":{"not":{}},"s":{"type":"string","maxLength":3}},
         "required":["a"],"additionalProperties":false})"},
    {R"({"type":"object","additionalProperties":{"type":"integer"},"required":["a"]})"},
    {R"({"type":"object","properties":{"a":{"type":["null","integer"]},"e":{"enum":[]},
         "v":{"const":1},"w":{"enum":[1]},"x":{"type":"string","enum":["x"]}},"required":["v"],
         "patternProperties":{"^k":{"type":"null"},"^l":{"type":"boolean"}},
         "additionalProperties":false})"},
    {R"({"type":"object","properties":{"l":{"type":"array","uniqueItems":true,
         "items":{"type":"string","pattern":"^[ab]$"}}},"required":["l"]})",
     "uniqueItems is not supported in the calls of this model"},
    // Up to draft 7 nothing beside $ref counts.
    {R"({"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{
         "a":{"$ref":"#/definitions/i","enum":3},"b":{"$ref":"#/definitions/i","enum":[]},
         "c":{"$ref":"#/definitions/i","type":3},"d":{"$ref":"#/definitions/i","type":[3]}},
         "required":["a","b","c","d"],"additionalProperties":false,
         "definitions":{"i":{"type":"integer"}}})"},
    {R"({"type":"object","patternProperties":{"^a":{"not":{}},"^ ":{"type":"integer"},
         "^b":{"type":"null"}},"additionalProperties":false})"},
    {R"({"type":"object","properties":{"a":{"type":"null"},"b c":false}})"},
    {R"({"type":"object","properties":{"a":{"type":"null"}},"minProperties":2,
         "required":["a"]})"},
    {R"({"type":"object","anyOf":[{"required":["a"],"properties":{"a":{"not":{}}}},
         {"required":["b"],"properties":{"b":{"type":"integer"}}}],
         "additionalProperties":false,"properties":{"b":true}})"},
    {R"({"type":"object","properties":{"b c":{"type":"null"}}})",
     "the model's calls cannot write the name \"b c\""},
    {R"({"type":"object","properties":{"a":{"type":"object","properties":{"b c":{"const":1}}}}})",
     "the model's calls cannot write the name \"b c\""},
    {R"({"type":"object","minProperties":3,"additionalProperties":{"type":"null"}})",
     "#/minProperties: not supported in the calls of this model"},
    {R"({"type":"object","required":["a"],"minProperties":2,"patternProperties":{"^ ":true},
         "properties":{"a":true},"additionalProperties":false})",
     "#/minProperties: not supported in the calls of this model"},
};

TEST(ToolCalls, RareSchemas_FitOrAreRefused) {
  std::mt19937 rng(5);
  size_t n_refused = 0, n_calls = 0;
  for (const Rare& rare : kRare) {
    const std::string tools = R"([{"name": "f", "parameters": )" + std::string(rare.schema) + "}]";
    for (const Case& c : Cases()) {
      SCOPED_TRACE(std::string(c.name) + ": " + rare.schema);
      Replies replies;
      const Status status =
          replies.Compile(c, ToolChoice::kRequired, "", false, ReplyStart::kOpen, tools);
      if (rare.refusal != nullptr && c.format.arguments != ArgumentSyntax::kJson &&
          status != Status::kOk) {
        EXPECT_NE(std::string(replies.error()).find(rare.refusal), std::string::npos)
            << replies.error();
        ++n_refused;
        continue;
      }
      ASSERT_EQ(status, Status::kOk) << replies.error();
      nlohmann::json schema = nlohmann::json::parse(rare.schema);
      for (int i = 0; i < 5; ++i) {
        const std::string reply = replies.Draw(&rng, 40);
        if (reply.empty()) continue;
        SCOPED_TRACE(reply);
        const Parsed parsed = Parse(c.format, reply, false, tools);
        EXPECT_EQ(parsed.problems + parsed.text, "");
        for (const auto& [name, arguments] : parsed.calls) {
          EXPECT_TRUE(FitsSchema(schema, arguments)) << arguments;
          ++n_calls;
        }
      }
    }
  }
  EXPECT_GT(n_refused, 3u);
  EXPECT_GT(n_calls, 100u);
}

TEST(ToolCalls, NamesThatACallCannotHold_AreRefused) {
  for (const Case& c : Cases()) {
    SCOPED_TRACE(c.name);
    const bool is_quoted = c.format.arguments == ArgumentSyntax::kJson;
    Replies replies;
    const auto compile = [&](const std::string& name) {
      return replies.Compile(c, ToolChoice::kRequired, "", false, ReplyStart::kOpen,
                             R"([{"name": "f", "parameters": {"type": "object", "properties": {")" +
                                 name + R"(": {"type": "null"}}}}])");
    };
    EXPECT_EQ(compile(std::string(128, 'n')), Status::kOk) << replies.error();
    for (const std::string& name : {std::string(), std::string(129, 'n'), std::string("a/b")}) {
      EXPECT_EQ(compile(name), is_quoted ? Status::kOk : Status::kUnsupported) << name;
    }
    if (is_quoted) continue;
    // Errors show the beginning of a name.
    EXPECT_EQ(compile(std::string(200, 'n')), Status::kUnsupported);
    EXPECT_NE(std::string(replies.error()).find("the name \"" + std::string(64, 'n') + "\""),
              std::string::npos)
        << replies.error();
  }
}

TEST(ToolCalls, StringsThatACallCannotHold_AreRefused) {
  for (const Case& c : Cases()) {
    if (c.format.arguments != ArgumentSyntax::kParameters) continue;
    SCOPED_TRACE(c.name);
    // The mark with a line end in it, which JSON would escape.
    std::string text(c.format.parameter_end);
    text.insert(text.find('<') + 1, "\n");
    const nlohmann::json schema = {{"type", "object"},
                                   {"properties", {{"a", {{"type", "string"}, {"const", text}}}}},
                                   {"required", {"a"}}};
    const std::string tools =
        nlohmann::json::array({{{"name", "f"}, {"parameters", schema}}}).dump();
    Replies replies;
    EXPECT_EQ(replies.Compile(c, ToolChoice::kRequired, "", false, ReplyStart::kOpen, tools),
              Status::kUnsupported);
    EXPECT_NE(std::string(replies.error()).find("#/properties/a: no string of it can be written"),
              std::string::npos)
        << replies.error();
  }
}

// Whichever allocation of the tables fails, the constraint says so.
TEST(ToolCalls, AnyAllocationFails) {
  const std::string tools = R"([{"name": "f", "parameters": )" + std::string(kRare[0].schema) +
                            R"(}, {"name": "g", "parameters": )" + kRare[1].schema + "}]";
  for (const Case& c : Cases()) {
    SCOPED_TRACE(c.name);
    Replies replies;
    for (uint64_t n = 0;; n += 1 + n / 200) {
      const test::FailingAllocation failing(n);
      const Status status =
          replies.Compile(c, ToolChoice::kAuto, "", false, ReplyStart::kOpen, tools);
      if (!failing.has_failed()) {
        ASSERT_EQ(status, Status::kOk) << replies.error();
        EXPECT_GT(n, 50u);
        break;
      }
      if (status == Status::kOk) continue;  // what only saves work
      ASSERT_EQ(status, Status::kOutOfMemory) << n << ": " << replies.error();
    }
  }
}

}  // namespace
}  // namespace arn::tool_calls_test
