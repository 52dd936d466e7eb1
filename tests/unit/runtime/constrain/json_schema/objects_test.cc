#include "schema_cases.h"

namespace arn {
namespace {

TEST(JsonSchemaTest, Properties) {
  CheckCases({
      {R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}}})",
       {"{}", R"({"a":1})", R"({"b":"x","a":1})", R"({"a":1,"c":null})", R"({"c":[],"d":1})"},
       {R"({"a":"x"})", R"({"a":1,"a":2})", R"({"b":1})", R"({"a":1,"b":"x",})",
        R"({"\u0061":"x"})"}},
      {R"({"type":"object","properties":{"a":true,"b":true},"required":["b"]})",
       {R"({"b":1})", R"({"a":1,"b":1})", R"({"b":1,"a":1})"},
       {"{}", R"({"a":1})"}},
      {R"({"type":"object","required":["x y","\""]})",
       {R"({"x y":1,"\"":2})", R"({"\u0022":1,"z":1,"x\u0020y":1})"},
       {R"({"x y":1})", "{}"}},
      {R"({"type":"object","properties":{"a":{"type":"null"}},"additionalProperties":false})",
       {"{}", R"({"a":null})"},
       {R"({"b":1})", R"({"a":null,"b":1})", R"({"aa":null})", R"({"":null})"}},
      {R"({"type":"object","properties":{"a":true},"additionalProperties":{"type":"integer"}})",
       {R"({"a":"x","b":1})", R"({"b":1,"a":[]})"},
       {R"({"b":"x"})", R"({"a":1,"ab":null})"}},
      {R"({"type":"object","additionalProperties":{"type":"integer"}})",
       {"{}", R"({"a":1,"b":2})"},
       {R"({"a":null})"}},
      {R"({"type":"object","properties":{"a":false}})",
       {"{}", R"({"b":1})", R"({"aa":1})"},
       {R"({"a":1})", R"({"b":1,"a":1})"}},
      {R"({"properties":{"a":{"const":1}}})", {R"({"a":1})", "[]", "7"}, {R"({"a":2})"}},
      {R"({"type":"object","properties":{"ab":{"const":1},"abc":{"const":2},"b":{"const":3}},)"
       R"("additionalProperties":false})",
       {R"({"abc":2,"ab":1,"b":3})", R"({"ab":1})"},
       {R"({"a":1})", R"({"abcd":2})", R"({"ab":2})"}},
      {R"({"type":"object","properties":{"ä":{"const":1},"😀":{"const":2}},)"
       R"("additionalProperties":false})",
       {R"({"ä":1,"😀":2})", R"({"\u00e4":1,"\uD83D\ude00":2})"},
       {R"({"a":1})", R"({"\ud83d":2})"}},
  });
}

TEST(JsonSchemaTest, CountsOfProperties) {
  CheckCases({
      {R"({"type":"object","minProperties":1})", {R"({"a":1})", R"({"a":1,"b":2})"}, {"{}"}},
      {R"({"type":"object","minProperties":2})",
       {R"({"a":1,"b":1})", R"({"b":1,"a":1,"c":1})"},
       {"{}", R"({"a":1})", R"({"a":1,"a":2})", R"({"a":1,"\u0061":2})"}},
      {R"({"type":"object","propertyNames":{"pattern":"^[ab]$"},"minProperties":2})",
       {R"({"a":1,"b":1})"},
       {R"({"a":1})", R"({"a":1,"b":1,"a":1})", R"({"c":1})"}},
      {R"({"type":"object","maxProperties":1})", {"{}", R"({"a":1})"}, {R"({"a":1,"b":1})"}},
      {R"({"type":"object","maxProperties":0})", {"{}"}, {R"({"a":1})"}},
      {R"({"type":"object","properties":{"a":true,"b":true,"c":true},)"
       R"("additionalProperties":false,"minProperties":2})",
       {R"({"a":1,"b":1})", R"({"c":1,"a":1})", R"({"a":1,"b":1,"c":1})"},
       {"{}", R"({"a":1})", R"({"a":1,"a":1})"}},
      {R"({"type":"object","properties":{"a":true,"b":true},"required":["b"],"maxProperties":1})",
       {R"({"b":1})"},
       {R"({"a":1,"b":1})", "{}", R"({"a":1})"}},
      {R"({"type":"object","required":["a","b"],"minProperties":3})",
       {R"({"a":1,"b":1,"c":1})", R"({"x":1,"b":1,"a":1})"},
       {R"({"a":1,"b":1})"}},
      {R"({"type":"object","properties":{"a":true},"required":["b"],"minProperties":2,)"
       R"("maxProperties":2})",
       {R"({"a":1,"b":1})", R"({"b":1,"z":1})"},
       {R"({"b":1})", R"({"a":1,"z":1})", R"({"a":1,"b":1,"z":1})"}},
  });
}

TEST(JsonSchemaTest, NamesOfProperties) {
  CheckCases({
      {R"({"type":"object","patternProperties":{"^x":{"type":"integer"}}})",
       {"{}", R"({"x1":1})", R"({"y":null})", R"({"ax":null})"},
       {R"({"x":null})", R"({"xy":"a"})", R"({"\u0078":null})"}},
      {R"({"type":"object","patternProperties":{"^x":{"type":"integer"}},)"
       R"("additionalProperties":false})",
       {"{}", R"({"x1":1,"x2":2})"},
       {R"({"y":1})", R"({"x":null})"}},
      {R"({"type":"object","properties":{"xa":{"minimum":5}},)"
       R"("patternProperties":{"^x":{"type":"integer"},"a$":{"maximum":9}},)"
       R"("additionalProperties":false})",
       {R"({"xa":5})", R"({"xb":100})", R"({"a":-1})", R"({"a":"x"})", R"({"xza":9})"},
       {R"({"xa":4})", R"({"xa":10})", R"({"xza":10})", R"({"xb":1.5})", R"({"b":1})"}},
      {R"({"type":"object","propertyNames":{"pattern":"^[a-z]+$"}})",
       {"{}", R"({"ab":1})"},
       {R"({"A":1})", R"({"":1})"}},
      {R"({"type":"object","propertyNames":{"enum":["a","b"]}})",
       {"{}", R"({"a":1,"b":2})"},
       {R"({"c":1})"}},
      {R"({"type":"object","propertyNames":{"maxLength":2},"properties":{"abc":true,)"
       R"("ab":{"const":1}}})",
       {R"({"ab":1})", R"({"xy":3})"},
       {R"({"abc":1})", R"({"ab":2})", R"({"xyz":1})"}},
      {R"({"type":"object","propertyNames":false})", {"{}"}, {R"({"a":1})"}},
      {R"({"type":"object","propertyNames":{"type":"integer"}})", {"{}"}, {R"({"a":1})"}},
      {R"({"type":"object","properties":{"a":true,"bc":true},"additionalProperties":false,)"
       R"("not":{"propertyNames":{"maxLength":1}}})",
       {R"({"bc":1})", R"({"a":1,"bc":1})"},
       {"{}", R"({"a":1})"}},
      {R"({"type":"object","properties":{"a":true,"b":true},"additionalProperties":false,)"
       R"("not":{"patternProperties":{"^a":{"type":"integer"}}}})",
       {R"({"a":null})", R"({"b":1,"a":"x"})"},
       {"{}", R"({"a":1})", R"({"b":null})"}},
      {R"({"type":"object","properties":{"a":true,"b":true},"additionalProperties":false,)"
       R"("not":{"properties":{"a":true},"additionalProperties":{"type":"integer"}}})",
       {R"({"b":null})", R"({"a":1,"b":"x"})"},
       {"{}", R"({"a":1})", R"({"b":1})"}},
  });
}

TEST(JsonSchemaTest, DependenciesOfProperties) {
  CheckCases({
      {R"({"type":"object","dependentRequired":{"a":["b"]}})",
       {"{}", R"({"b":1})", R"({"a":1,"b":1})", R"({"b":1,"a":1})"},
       {R"({"a":1})", R"({"a":1,"c":1})"}},
      {R"({"type":"object","dependentSchemas":{"a":{"properties":{"b":{"type":"integer"}},)"
       R"("minProperties":1}}})",
       {"{}", R"({"b":"x"})", R"({"a":1,"b":1})"},
       {R"({"a":1,"b":"x"})"}},
      {R"({"type":"object","dependentSchemas":{"a":false}})", {"{}", R"({"b":1})"}, {R"({"a":1})"}},
      {R"({"$schema":"http://json-schema.org/draft-07/schema#","type":"object",)"
       R"("dependencies":{"a":["b"],"c":{"required":["d"]},"e":false}})",
       {"{}", R"({"a":1,"b":1})", R"({"c":1,"d":1})"},
       {R"({"a":1})", R"({"c":1})", R"({"e":1})"}},
      {R"({"dependentRequired":{"a":["b"]}})", {"1", "[]", "{}"}, {R"({"a":1})"}},
      {R"({"type":"object","not":{"dependentRequired":{"a":["b"]}}})",
       {R"({"a":1})", R"({"a":1,"c":1})"},
       {"{}", R"({"a":1,"b":1})", R"({"b":1})"}},
  });
}

TEST(JsonSchemaTest, OrderOfTheSchema) {
  const SchemaMatcher::Options in_order;
  CheckCases(
      {
          {R"({"type":"object","properties":{"b":true,"a":true,"c":true},"required":["a"]})",
           {R"({"a":1})", R"({"b":1,"a":1,"c":1})", R"({"a":1,"c":1})", R"({"b":1,"a":1,"z":1})"},
           {R"({"a":1,"b":1})", R"({"c":1,"a":1})", R"({"z":1,"a":1})", R"({"a":1,"z":1,"c":1})",
            "{}"}},
          {R"({"type":"object","properties":{"a":true},"required":["y","x"]})",
           {R"({"a":1,"y":1,"x":1})", R"({"y":1,"x":1})"},
           {R"({"x":1,"y":1})", R"({"y":1,"a":1,"x":1})"}},
          {R"({"type":"object","properties":{"a":true,"b":true,"c":true},)"
           R"("additionalProperties":false,"minProperties":2})",
           {R"({"a":1,"b":1})", R"({"b":1,"c":1})"},
           {R"({"c":1})", R"({"b":1,"a":1})"}},
          {R"({"allOf":[{"properties":{"b":{"type":"integer"}}},{"properties":{"a":true,)"
           R"("b":{"minimum":1}}}],"type":"object"})",
           {R"({"b":1,"a":1})"},
           {R"({"a":1,"b":1})", R"({"b":0})"}},
      },
      in_order);
}

// Each optional property may come or not, in any order: 2^1000 sets, but one state at a time.
TEST(JsonSchemaTest, ThousandOptionalProperties) {
  std::string schema = R"({"type":"object","additionalProperties":false,"properties":{)";
  std::string text = "{";
  for (int i = 0; i < 1'000; ++i) {
    const std::string comma = i == 0 ? "" : ",";
    schema += comma + "\"property" + std::to_string(i) + "\":{\"type\":\"integer\"}";
    text += comma + "\"property" + std::to_string(i * 7 % 1'000) + "\":" + std::to_string(i);
  }
  schema += "}}";
  SchemaMatcher matcher;
  ASSERT_EQ(Status::kOk,
            matcher.Compile(schema, {.any_order = true, .block_bytes = size_t{8} << 20}))
      << matcher.error();
  EXPECT_TRUE(matcher.Accepts(text + "}"));
  EXPECT_TRUE(matcher.Accepts("{\"property999\":1,\"property0\":2}"));
  EXPECT_FALSE(matcher.Accepts(text + ",\"property5\":1}"));
  EXPECT_FALSE(matcher.Accepts("{\"property1000\":1}"));
}

}  // namespace
}  // namespace arn
