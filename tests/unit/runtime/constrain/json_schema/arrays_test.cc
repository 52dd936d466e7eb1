#include "schema_cases.h"

namespace arn {
namespace {

TEST(JsonSchemaTest, Items) {
  CheckCases({
      {R"({"type":"array","items":{"type":"integer"}})",
       {"[]", "[1]", "[1,2,3]"},
       {"[\"a\"]", "[1,null]", "[1.5]"}},
      {R"({"items":{"type":"integer"}})", {"[]", "[1]", "{}", "\"x\""}, {"[null]"}},
      {R"({"type":"array","items":false})", {"[]"}, {"[1]"}},
      {R"({"type":"array","items":true})", {"[]", "[1,\"a\"]"}, {}},
      {R"({"type":"array","prefixItems":[{"type":"string"},{"type":"integer"}]})",
       {"[]", "[\"a\"]", "[\"a\",1]", "[\"a\",1,null]"},
       {"[1]", "[\"a\",\"b\"]"}},
      {R"({"type":"array","prefixItems":[{"type":"string"}],"items":{"type":"integer"}})",
       {"[]", "[\"a\"]", "[\"a\",1,2]"},
       {"[1]", "[\"a\",\"b\"]"}},
      {R"({"type":"array","prefixItems":[{"type":"string"},true],"items":false,"minItems":2})",
       {"[\"a\",1]"},
       {"[\"a\"]", "[\"a\",1,2]"}},
      {R"({"$schema":"http://json-schema.org/draft-07/schema#","type":"array",)"
       R"("items":[{"type":"string"}],"additionalItems":{"type":"null"}})",
       {"[]", "[\"a\"]", "[\"a\",null]"},
       {"[null]", "[\"a\",1]"}},
      {R"({"type":"array","items":[{"type":"string"}],"additionalItems":false})",
       {"[]", "[\"a\"]"},
       {"[\"a\",1]"}},
      {R"({"type":"array","minItems":1,"maxItems":2})", {"[1]", "[1,2]"}, {"[]", "[1,2,3]"}},
      {R"({"type":"array","items":{"const":0},"minItems":3})", {"[0,0,0]", "[0,0,0,0]"}, {"[0,0]"}},
      {R"({"type":"array","maxItems":0})", {"[]"}, {"[1]"}},
      {R"({"type":"array","prefixItems":[true,false]})", {"[]", "[1]"}, {"[1,2]"}},
      {R"({"type":"array","items":{"type":"array","items":{"type":"boolean"},"maxItems":1}})",
       {"[]", "[[]]", "[[true],[]]"},
       {"[[true,true]]", "[true]"}},
      {R"({"type":"array","not":{"items":{"type":"integer"}}})",
       {"[null]", "[1,\"a\"]", "[1.5,2]"},
       {"[]", "[1]", "[1,2]"}},
      {R"({"type":"array","not":{"prefixItems":[{"type":"integer"}]}})",
       {"[null]", "[\"a\",1]"},
       {"[]", "[1]"}},
      {R"({"type":"array","not":{"maxItems":1}})", {"[1,2]"}, {"[]", "[1]"}},
      {R"({"type":"array","not":{"minItems":2}})", {"[]", "[1]"}, {"[1,2]"}},
  });
}

TEST(JsonSchemaTest, Contains) {
  CheckCases({
      {R"({"type":"array","contains":{"type":"integer"}})",
       {"[1]", "[\"a\",1]", "[1,1]", "[1,null]"},
       {"[]", "[null]", "[1.5]"}},
      {R"({"type":"array","contains":{"const":1},"minContains":2})",
       {"[1,1]", "[1,0,1]", "[1,1,1]"},
       {"[]", "[1]", "[1,0]"}},
      {R"({"type":"array","contains":{"const":1},"maxContains":1})",
       {"[1]", "[0,1,0]"},
       {"[]", "[0]", "[1,1]", "[1,0,1]"}},
      {R"({"type":"array","contains":{"const":1},"minContains":0})", {"[]", "[0]", "[1,1]"}, {}},
      {R"({"type":"array","contains":{"const":1},"minContains":0,"maxContains":0})",
       {"[]", "[0]"},
       {"[1]", "[0,1]"}},
      {R"({"type":"array","contains":{"minimum":5},"items":{"multipleOf":2,"type":"integer"},)"
       R"("maxItems":3})",
       {"[6]", "[2,4,8]"},
       {"[2]", "[2,4,2]", "[5]", "[2,2,2,6]", "[\"a\"]"}},
      {R"({"type":"array","contains":{"const":1},"minContains":2,"maxContains":2,"maxItems":3})",
       {"[1,1]", "[0,1,1]"},
       {"[1,1,1]", "[0,0,1,1]", "[0,1]"}},
      {R"({"type":"array","prefixItems":[{"type":"string"}],"contains":{"type":"integer"}})",
       {"[\"a\",1]"},
       {"[\"a\"]", "[1]", "[]"}},
      {R"({"type":"array","not":{"contains":{"const":1}}})", {"[]", "[2]"}, {"[1]", "[2,1]"}},
      {R"({"type":"array","not":{"contains":{"const":1},"maxContains":1}})",
       {"[]", "[2]", "[1,1]"},
       {"[1]", "[2,1]"}},
      {R"({"contains":{"type":"null"}})", {"[null]", "1", "{}"}, {"[]", "[1]"}},
  });
}

TEST(JsonSchemaTest, UniqueItems) {
  CheckCases({
      {R"({"type":"array","uniqueItems":true,"items":{"enum":["a","b",1]}})",
       {"[]", "[\"a\"]", "[\"b\",1,\"a\"]"},
       {"[\"a\",\"a\"]", "[1,1.0]", "[\"a\",\"\\u0061\"]", "[\"c\"]"}},
      {R"({"type":"array","uniqueItems":true,"items":{"enum":[1,1.0,2]},"minItems":2})",
       {"[1,2]", "[2,1]"},
       {"[1]", "[1,1]", "[1,2,1]"}},
      {R"({"type":"array","uniqueItems":true,"items":{"enum":[[1],{"a":1}]}})",
       {"[[1],{\"a\":1}]", "[{\"a\":1}]"},
       {"[[1],[1]]"}},
      {R"({"type":"array","uniqueItems":true,"items":{"enum":[1,2,30],"minimum":2},"maxItems":2})",
       {"[2,30]", "[30]"},
       {"[1]", "[2,2]"}},
      {R"({"type":"array","uniqueItems":true,"maxItems":1})", {"[]", "[1]"}, {"[1,2]"}},
      {R"({"type":"array","uniqueItems":true,"items":{"type":"string"}})",
       {"[]", "[\"a\"]", "[\"a\",\"b\",\"ab\",\"\"]", R"(["\n","\t","\u0041","a"])",
        R"(["\ud83d\ude00","\ud83d\ude01"])"},
       {"[\"a\",\"a\"]", "[\"\",\"\"]", R"(["a","b","\u0061"])", R"(["\n","\u000A"])",
        "[\"\xF0\x9F\x98\x80\",\"\\uD83D\\uDE00\"]", R"(["\/","/"])", "[1]"}},
      {R"({"type":"array","uniqueItems":true,"items":{"type":"string","pattern":"^(ab|ac)$"},)"
       R"("minItems":2})",
       {R"(["ab","ac"])", R"(["ac","\u0061b"])"},
       {R"(["ab"])", R"(["ab","ab"])", R"(["ab","ac","ab"])", R"(["ab","ac",)"}},
      {R"({"type":"array","uniqueItems":false})", {"[1,1]"}, {}},
      {R"({"uniqueItems":true,"type":["string","null"]})", {"\"a\"", "null"}, {"[]"}},
  });
}

TEST(JsonSchemaTest, ManyItemsCostNothing) {
  SchemaMatcher matcher;
  ASSERT_EQ(Status::kOk,
            matcher.Compile(
                R"({"type":"array","items":{"const":7},"minItems":9999,"maxItems":10000})", {}));
  std::string text = "[7";
  for (int i = 1; i < 9'998; ++i) text += ",7";
  EXPECT_FALSE(matcher.Accepts(text + "]"));
  EXPECT_TRUE(matcher.Accepts(text + ",7]"));
  EXPECT_TRUE(matcher.Accepts(text + ",7,7]"));
  EXPECT_FALSE(matcher.Accepts(text + ",7,7,7]"));
}

// Texts are compared up to 1,024 characters: longer ones are no items, not even alone.
TEST(JsonSchemaTest, UniqueTextsOfAnyLength_AreRefused) {
  SchemaMatcher matcher;
  ASSERT_EQ(Status::kOk,
            matcher.Compile(
                R"({"type":"array","uniqueItems":true,"items":{"type":"string","minLength":1025}})",
                {.any_order = true, .block_bytes = size_t{16} << 20}))
      << matcher.error();
  EXPECT_TRUE(matcher.Accepts("[]"));
  EXPECT_FALSE(matcher.Accepts("[\"" + std::string(1025, 'a') + "\"]"));
}

}  // namespace
}  // namespace arn
