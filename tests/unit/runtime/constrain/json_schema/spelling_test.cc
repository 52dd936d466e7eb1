// How valid values may be written.
#include <string>
#include <vector>

#include "schema_cases.h"

namespace arn {
namespace {

TEST(JsonSchemaTest, EverySpellingOfACharacter) {
  CheckCases({
      {R"({"const":"a/\"\\\n\u00e4\ud83d\ude00"})",
       {"\"a/\\\"\\\\\\n\xC3\xA4\xF0\x9F\x98\x80\"",
        R"("\u0061\/\u0022\u005c\u000a\u00e4\ud83d\ude00")",
        R"("\u0061\u002F\"\\\u000A\u00E4\uD83D\uDE00")"},
       {R"("a")", "\"a/\\\"\\\\\n\xC3\xA4\xF0\x9F\x98\x80\"", R"("A/\"\\\nä😀")"}},
      {R"({"type":"string","minLength":1,"maxLength":1})",
       {"\" \"", "\"\x7F\"", R"("\b")", R"("\f")", R"("\r")", R"("\t")", R"("\/")", R"("\u0000")",
        R"("\uFFFF")", R"("\uD800\uDC00")", "\"\xEF\xBF\xBF\"", "\"\xF4\x8F\xBF\xBF\""},
       {R"("\a")", R"("\u12")", R"("\uD800")", R"("\uDC00")", R"("\uD800x")", R"("\uD800\uD800")",
        "\"\t\"", "\"\xC3\"", "\"\xC0\x80\"", "\"\xED\xA0\x80\"", "\"\xF4\x90\x80\x80\"",
        "\"\xFF\"", R"("\U0041")", R"("\)"}},
      {R"({"type":"object","properties":{"a b":{"const":1}},"additionalProperties":false})",
       {R"({"a\u0020b":1})", R"({"\u0061 b":1})"},
       {R"({"a\u0021b":1})"}},
  });
}

// The spelling of Python's json.dumps, of every character that has several, by its kind of term.
TEST(JsonSchemaTest, OneSpelling_WhileTextIsGenerated) {
  SchemaMatcher::Options options;
  options.any_spelling = false;
  for (const char* const schema :
       {R"({"type":"string"})", R"({"pattern":"^[^z]*$","type":"string"})",
        R"({"not":{"const":"z"},"type":"string"})", R"({"type":"string","maxLength":99})",
        R"({"const":"a/\"\\\b\f\n\r\t\u0000\u001f\u00e4\ud83d\ude00\u007f"})"}) {
    SCOPED_TRACE(schema);
    SchemaMatcher matcher;
    ASSERT_EQ(matcher.Compile(schema, options), Status::kOk) << matcher.error();
    EXPECT_TRUE(
        matcher.Accepts("\"a/\\\"\\\\\\b\\f\\n\\r\\t\\u0000\\u001f\xC3\xA4"
                        "\xF0\x9F\x98\x80\x7F\""));
    for (const char* const other :
         {R"("\u0061)", R"("a\/)", R"("a/\u0022)", R"("a/\"\\\u0008)", R"("a/\"\\\b\u000c)",
          R"("a/\"\\\b\f\n\r\t\u0000\u001F)", R"("\ud83d)", "\"\t"}) {
      EXPECT_FALSE(matcher.Accepts(std::string(other) + "\""));
      size_t offset = 0;
      matcher.Accepts(other, &offset);
      EXPECT_LT(offset, std::string(other).size()) << other;
    }
  }
}

// No zeros at the end of a fraction, which a model may go on writing for ever.
TEST(JsonSchemaTest, NumbersWithoutSpareZeros_WhileTextIsGenerated) {
  SchemaMatcher::Options options;
  options.any_spelling = false;
  const struct {
    const char* schema;
    std::vector<const char*> allowed, refused;
  } cases[] = {
      {R"({"type":"integer"})", {"0", "-7", "10", "100"}, {"0.", "1.", "1.0", "-0"}},
      {R"({"type":"integer","minimum":1,"maximum":20})",
       {"1", "10", "20"},
       {"1.", "20.0", "0", "-"}},
      {R"({"type":"number","minimum":0,"maximum":1})",
       {"0", "0.5", "0.05", "1", "0.101"},
       {"1.", "0.50", "0.0", "0.1010", "1.0", "-0"}},
      {R"({"type":"number","minimum":-1})", {"-0.5", "-1"}, {"-0", "-0.0"}},
      {R"({"type":"number","multipleOf":0.01})", {"0.07", "3", "19.9"}, {"19.90", "0.070"}},
      {R"({"const":0})", {"0"}, {"-0", "0.0"}},
      {R"({"enum":[1,2.50,-3e1]})", {"1", "2.5", "-30"}, {"1.0", "2.50", "-30.0"}},
      {R"({"$schema":"http://json-schema.org/draft-04/schema#","type":"integer"})",
       {"0", "-7"},
       {"1.0", "1.5"}},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.schema);
    SchemaMatcher matcher;
    ASSERT_EQ(matcher.Compile(c.schema, options), Status::kOk) << matcher.error();
    for (const char* const text : c.allowed) EXPECT_TRUE(matcher.Accepts(text)) << text;
    for (const char* const text : c.refused) EXPECT_FALSE(matcher.Accepts(text)) << text;
  }
}

TEST(JsonSchemaTest, IntegersOfDraft4HaveNoFraction) {
  CheckCases({
      {R"({"$schema":"http://json-schema.org/draft-04/schema#","type":"integer","minimum":1})",
       {"1", "20"},
       {"1.0", "20.00", "1.5", "0"}},
      {R"({"$schema":"http://json-schema.org/draft-04/schema#","not":{"type":"integer"}})",
       {"1.0", "1.5", "\"x\""},
       {"1", "-20"}},
      {R"({"$schema":"http://json-schema.org/draft-04/schema#","type":"number","minimum":1})",
       {"1.0", "1", "1.5"},
       {"0.5"}},
  });
}

TEST(JsonSchemaTest, CompactWithoutWhitespace) {
  CheckCases({{R"({"type":"object","properties":{"a":{"type":"array"}}})",
               {R"({"a":[1,[],{}],"b":{"c":null}})"},
               {R"( {"a":[]})", R"({"a":[]} )", R"({ "a":[]})", R"({"a" :[]})", R"({"a": []})",
                R"({"a":[ ]})", R"({"a":[1, 2]})", R"({"a":[1 ,2]})", R"({"a":[]} )",
                R"({"a":1, "b":2})", "{ }"}}});
}

TEST(JsonSchemaTest, AnyWhitespace) {
  CheckCases({{R"({"type":"object","properties":{"a":{"type":"array"}}})",
               {R"({"a":[1,[],{}]})",
                " { \"a\" : [ 1 , [ ] , { } ] , \"b\" :\t{ \"c\"\r\n:null}\n}  ", "{\n}"},
               {"{\"a\xC2\xA0\":[]", "{\f}", "{} x", R"({"a":t rue})", R"({"a":[1 2]})"}},
              {R"({"type":"integer","minimum":10})", {" 10 ", "\n\t11"}, {"1 0", "9"}},
              {R"({"enum":["a b"]})", {" \"a b\" "}, {"\" a b\"", "\"a  b\""}}},
             {.any_order = true, .any_whitespace = true});
}

// Numbers with a bound or a divisor are plain decimals; the others take every form of JSON.
TEST(JsonSchemaTest, ExponentsOnlyWithoutConditions) {
  CheckCases({
      {R"({"type":"number"})", {"1e5", "1.5E-3"}, {}},
      {R"({"type":"integer"})", {"100000"}, {"1e5"}},
      {R"({"type":"number","minimum":0})", {"100000"}, {"1e5"}},
      {R"({"const":100000})", {"100000", "100000.0"}, {"1e5"}},
  });
}

}  // namespace
}  // namespace arn
