// Rare combinations of keywords.
#include <string>

#include "runtime/constrain/json_schema/nodes.h"
#include "runtime/constrain/json_schema/value_terms.h"
#include "schema_cases.h"

namespace arn {
namespace {

void ExpectRefused(const std::string& schema, const std::string& place) {
  SchemaMatcher matcher;
  EXPECT_EQ(Status::kUnsupported, matcher.Compile(schema, {.block_bytes = size_t{4} << 20}))
      << schema << matcher.error();
  EXPECT_EQ(0u, std::string(matcher.error()).find("JSON schema: " + place)) << schema << "\n"
                                                                            << matcher.error();
}

TEST(JsonSchemaCorners, UniqueItems) {
  CheckCases({
      {R"({"type":"array","uniqueItems":true,"items":{"enum":["a","b",1]},)"
       R"("allOf":[{"items":{"type":"string"}}]})",
       {"[]", R"(["b","a"])"},
       {"[1]", R"(["a","a"])"}},
      {R"({"type":"array","uniqueItems":true,"items":{"enum":[1,true,[1],[1,2],[1,3],{"a":1},)"
       R"({"a":2},{"b":1},[1],true,null,"x","x",{"a":1},{"b":1,"a":2},{"a":2,"b":1},1.0]}})",
       {"[]", R"([1,true,[1],[1,2],[1,3],{"a":1},{"a":2},{"b":1},null,"x",{"a":2,"b":1}])"},
       {"[1,1]", "[true,true]", "[[1],[1]]", R"([{"a":1},{"a":1}])",
        R"([{"a":2,"b":1},{"b":1,"a":2}])", "[2]", "[[2]]"}},
      {R"({"type":"array","uniqueItems":true,"items":{"const":1}})", {"[]", "[1]"}, {"[1,1]"}},
      {R"({"type":"array","uniqueItems":true,"items":false})", {"[]"}, {"[1]", "[\"\"]"}},
      {R"({"type":"array","uniqueItems":true,"items":{"type":"string","pattern":"^a$",)"
       R"("minLength":2}})",
       {"[]"},
       {"[\"a\"]", "[\"aa\"]"}},
      {R"({"type":["array","null"],"uniqueItems":true,"minItems":1,)"
       R"("items":{"type":"string","pattern":"^a$","minLength":2}})",
       {"null"},
       {"[]", "[\"a\"]"}},
      {R"({"type":"array","uniqueItems":true,"items":{"type":"string"},"maxItems":2})",
       {"[]", R"(["b"])", R"(["b","a"])"},
       {R"(["a","b","c"])", R"(["a","a"])"}},
      {R"({"type":"array","uniqueItems":true,"minItems":1,)"
       R"("items":{"type":"string","pattern":"^(ab|ac)$"}})",
       {R"(["ac","ab"])"},
       {R"(["ab","a"])", R"(["ab","ac","ab"])", R"(["a"])"}},
      {R"({"type":"array","uniqueItems":true,"items":{"type":"string"}})",
       {R"(["\"\\\/\b\f\n\r\t","\"\\/\b\f\n\r","\ud83d\ude00","\u00e9\u20ac"])"},
       {R"(["\ud83d\ude00",")"
        "\xF0\x9F\x98\x80"
        R"("])",
        R"(["\u20ac","\u20AC"])", R"(["\b","\u0008"])", R"(["\a"])", R"(["\u00g0"])"}},
      {R"({"anyOf":[{"not":{"uniqueItems":true},"maxItems":1},{"type":"null"}]})",
       {"null"},
       {"[]", "[1]"}},
  });
}

TEST(JsonSchemaCorners, UniqueItems_ThatCannotBeEnforced) {
  ExpectRefused(R"({"type":"array","uniqueItems":true,"prefixItems":[{"enum":[1,2]}]})",
                "#/uniqueItems: ");
  ExpectRefused(R"({"type":"array","uniqueItems":true,"contains":{"const":1},)"
                R"("items":{"enum":[1,2]}})",
                "#/uniqueItems: ");
  ExpectRefused(R"({"type":"array","uniqueItems":true,"items":true})", "#/uniqueItems: ");
  SchemaMatcher matcher;
  EXPECT_EQ(Status::kBadArgument,
            matcher.Compile(R"({"type":"array","uniqueItems":true,"items":{"enum":3}})", {}));
  ExpectRefused(R"({"type":"array","uniqueItems":true,"minItems":3,)"
                R"("items":{"type":"string","pattern":"^(ab|ac)$"}})",
                "#/uniqueItems: there are too few");
  std::string many = R"({"type":"array","uniqueItems":true,"items":{"enum":["0")";
  for (int i = 1; i <= 4096; ++i) many += ",\"" + std::to_string(i) + "\"";
  ExpectRefused(many + "]}}", "#/uniqueItems: more than 4096");
  const std::string huge(1001, '9');
  ExpectRefused(R"({"type":"array","uniqueItems":true,"items":{"enum":[1,)" + huge + "]}}",
                "#/items/enum/1: ");
  ExpectRefused(R"({"type":"array","uniqueItems":true,"items":{"enum":[)" + huge + ",1]}}",
                "#/items/enum/0: ");
}

TEST(JsonSchemaCorners, Items) {
  CheckCases({
      {R"({"contains":{"const":1},"minContains":3,"maxContains":2})",
       {"1", "{}"},
       {"[]", "[1]", "[1,1,1]"}},
      {R"({"type":"array","items":[true,{"type":"null"}],"additionalItems":{"const":1}})",
       {"[]", "[0,null,1,1]"},
       {"[0,1]", "[0,null,0]"}},
      {R"({"type":"array","not":{"items":[true,{"type":"null"}],"additionalItems":{"const":1}}})",
       {"[0,1]", "[0,null,0]"},
       {"[]", "[0,null,1,1]"}},
      {R"({"type":"array","not":{"items":{"type":"null"},"additionalItems":{"const":1}}})",
       {"[0]", "[null,0]"},
       {"[]", "[null]"}},
      {R"({"type":"array","not":{"contains":{"const":1},"minContains":0,"maxContains":1}})",
       {"[1,1]", "[0,1,1]"},
       {"[]", "[1]"}},
      {R"({"type":"array","not":{"const":[]}})", {"[1]"}, {"[]"}},
      {R"({"type":"array","not":{"maxItems":18446744073709551615,"minItems":2}})",
       {"[]", "[1]"},
       {"[1,2]"}},
      {R"({"type":["array","null"],"minItems":1,"items":{"not":{}}})", {"null"}, {"[]", "[1]"}},
  });
  ExpectRefused(R"({"type":"array","allOf":[{"not":{"items":{"type":"integer"}}},)"
                R"({"not":{"items":{"type":"string"}}}]})",
                "#/allOf/1/not/items: several conditions");
  ExpectRefused(R"({"type":"array","minItems":1,"prefixItems":[{"not":{}},{"not":{}}]})",
                "#/prefixItems/0: no value");
}

// Whether items lead to an end, by what they can be.
TEST(JsonSchemaCorners, ItemsThatCanFinish) {
  using json_schema::ArrayShape;
  using json_schema::CanFinish;
  using json_schema::ItemNodes;
  const auto can = [](std::vector<ItemNodes> items, uint64_t min, uint64_t max,
                      uint64_t min_counted, uint64_t max_counted, uint64_t n = 0,
                      uint64_t counted = 0) {
    ArrayShape shape;
    shape.items = {items.data(), items.size()};
    shape.min = min;
    shape.max = max;
    shape.min_counted = min_counted;
    shape.max_counted = max_counted;
    return CanFinish(shape, n, counted);
  };
  const ItemNodes counts = {0, 0, true, true, false}, other = {0, 0, true, false, true},
                  both = {0, 0, true, true, true}, none = {0, 0, true, false, false};
  constexpr uint64_t kAny = UINT64_MAX;
  EXPECT_TRUE(can({none}, 0, kAny, 0, kAny));
  EXPECT_FALSE(can({none}, 1, kAny, 0, kAny));
  EXPECT_FALSE(can({none, both}, 1, kAny, 0, kAny));
  EXPECT_TRUE(can({other, none}, 1, kAny, 0, kAny));
  EXPECT_FALSE(can({other, none}, 2, kAny, 0, kAny));
  // Of those that count, at least and at most.
  EXPECT_TRUE(can({other, other, counts}, 0, kAny, 3, kAny));
  EXPECT_TRUE(can({other, other, counts}, 0, 5, 3, kAny));
  EXPECT_FALSE(can({other, other, counts}, 0, 4, 3, kAny));
  EXPECT_FALSE(can({counts, other}, 0, kAny, 2, kAny));
  EXPECT_TRUE(can({counts, other}, 0, kAny, 1, kAny));
  EXPECT_TRUE(can({counts, other}, 2, kAny, 0, 1));
  EXPECT_FALSE(can({counts, other}, 2, kAny, 0, 0));
  EXPECT_TRUE(can({counts, other}, 0, kAny, 0, 0));
  EXPECT_TRUE(can({counts}, 3, kAny, 0, 3));
  EXPECT_FALSE(can({counts}, 4, kAny, 0, 3));
  EXPECT_FALSE(can({counts}, 4, 4, 0, 3));
  EXPECT_TRUE(can({both}, 4, 4, 3, 3));
  EXPECT_FALSE(can({both}, 4, 4, 5, 5));
  // Behind some items.
  EXPECT_TRUE(can({counts}, 4, 4, 0, 4, 2, 2));
  EXPECT_FALSE(can({counts}, 4, 4, 0, 3, 2, 2));
  EXPECT_FALSE(can({both}, 0, 4, 0, 4, 5, 0));
  EXPECT_FALSE(can({both}, 0, 4, 0, 1, 2, 2));
  EXPECT_TRUE(can({none, none, counts}, 3, 3, 1, 1, 2, 0));
}

TEST(JsonSchemaCorners, Objects) {
  CheckCases({
      {R"({"type":["object","null"],"required":["a","b"],"maxProperties":1,)"
       R"("properties":{"a":true,"b":true},"additionalProperties":false})",
       {"null"},
       {"{}", R"({"a":1})", R"({"a":1,"b":1})"}},
      {R"({"type":["object","null"],"properties":{"a":true},"additionalProperties":false,)"
       R"("minProperties":2})",
       {"null"},
       {"{}", R"({"a":1})", R"({"a":1,"b":1})"}},
      {R"({"type":["object","null"],"minProperties":2,"maxProperties":1})", {"null"}, {"{}"}},
      {R"({"type":"object","additionalProperties":{"type":"string","minLength":2,"maxLength":1}})",
       {"{}"},
       {R"({"a":1})", R"({"a":""})"}},
      {R"({"type":"object","minProperties":3,"patternProperties":{"^a":{"not":{}}}})",
       {R"({"b":1,"c":2,"d":3})"},
       {R"({"b":1,"c":2})", R"({"a":1,"b":1,"c":2})", R"({"b":1,"c":2,"b":3})", R"({"b)"}},
      {R"({"type":"object","minProperties":2,"propertyNames":{"pattern":"^(ab|cd)$"}})",
       {R"({"ab":1,"cd":2})", R"({"cd":1,"\u0061b":2})"},
       {R"({"ab":1})", R"({"a":1,"cd":2})", R"({"ab":1,"c":2})", R"({"ab":1,"\u0061b":2})"}},
      {R"({"type":"object","properties":{"a":true},"propertyNames":{"not":{}}})",
       {"{}"},
       {R"({"a":1})", R"({"b":1})"}},
      {R"({"type":["object","null"],"required":["a"],"propertyNames":{"const":"b"}})",
       {"null"},
       {"{}", R"({"a":1})", R"({"b":1})"}},
      {R"({"type":"object","patternProperties":{"^a":{"type":"null"}},)"
       R"("propertyNames":{"pattern":"^b"}})",
       {"{}", R"({"b":1})"},
       {R"({"a":null})"}},
      {R"({"type":"object","patternProperties":{"":{"type":"null"}}})",
       {"{}", R"({"a":null})", R"({"":null})"},
       {R"({"a":1})"}},
      {R"({"type":"object","patternProperties":{"a^":{"type":"null"},"^a":{"const":1}}})",
       {"{}", R"({"a":1})", R"({"b":2})"},
       {R"({"a":null})"}},
      {R"({"type":"object","patternProperties":{"^a":{"minimum":2}},)"
       R"("allOf":[{"patternProperties":{"^a":{"maximum":4},"b$":{"type":"integer"}}}]})",
       {R"({"a":3})", R"({"ab":3,"b":9})"},
       {R"({"a":1})", R"({"a":5})", R"({"ab":2.5})"}},
      {R"({"type":"object","not":{"required":["a"]},"dependentRequired":{"a":["b"]}})",
       {"{}", R"({"b":1})"},
       {R"({"a":1})", R"({"a":1,"b":1})"}},
      {R"({"type":"object","maxProperties":1,"not":{"maxProperties":0}})",
       {R"({"a":1})"},
       {"{}", R"({"a":1,"b":1})"}},
  });
  ExpectRefused(R"({"type":"object","minProperties":3,"propertyNames":{"pattern":"^a{300,}$"}})",
                "#/minProperties: there are too few");
  SchemaMatcher in_order;
  ASSERT_EQ(Status::kOk, in_order.Compile(R"({"type":"object","minProperties":3,)"
                                          R"("properties":{"a":true}})",
                                          {.any_order = false}));
  EXPECT_TRUE(in_order.Accepts(R"({"a":0,"\"":1,"\\":2})"));
  EXPECT_TRUE(in_order.Accepts(R"({"\"":1,"c":2,"d":3})"));
  EXPECT_FALSE(in_order.Accepts(R"({"\"":1,"\"":2,"d":3})"));
  EXPECT_FALSE(in_order.Accepts(R"({"\"":1,"c":2})"));
  ExpectRefused(R"({"type":"object","minProperties":3,"propertyNames":{"pattern":"^[ab]$"}})",
                "#/minProperties: there are too few");
  ExpectRefused(R"({"type":"object","not":{"properties":{"a":true}}})", "#: no value");
  ExpectRefused(R"({"properties":{"a":{"not":{}},"b":{"not":{}},"x":{"type":"null"}},)"
                R"("required":["a","b"],"items":{"not":{}},"minItems":1,)"
                R"("type":["object","array"]})",
                "#/properties/a: no value");
  ExpectRefused(R"({"$ref":"#/$defs/a","$defs":{"a":{"type":"object","required":["b"],)"
                R"("properties":{"b":{"$ref":"#/$defs/b"}}},"b":{"type":"object",)"
                R"("required":["a"],"properties":{"a":{"$ref":"#/$defs/a"}}}}})",
                "#/$defs/");
  ExpectRefused(R"({"type":"object","additionalProperties":false,"patternProperties":{"(":true}})",
                "#/patternProperties/(: ");
  std::string patterns;
  for (int i = 0; i < 33; ++i) {
    patterns += (i == 0 ? "\"^" : ",\"^") + std::to_string(i) + "x\":true";
  }
  ExpectRefused(R"({"type":"object","patternProperties":{)" + patterns + "}}",
                "#/patternProperties/^32x: more than 32");
}

TEST(JsonSchemaCorners, SomePropertyMustBreakIt) {
  CheckCases({
      {R"({"type":"object","not":{"propertyNames":{"not":{"enum":["a","b"]}}}})",
       {R"({"a":1})", R"({"b":2,"c":1})"},
       {"{}", R"({"c":1})"}},
      {R"({"type":["object","null"],"properties":{"a":true},)"
       R"("not":{"type":"object","propertyNames":{"minLength":0}}})",
       {"null"},
       {"{}", R"({"a":1})"}},
      {R"({"type":"object","not":{"patternProperties":{"^a$":{"type":"string"}}},)"
       R"("properties":{"a":true}})",
       {R"({"a":1})", R"({"b":"x","a":null})"},
       {"{}", R"({"a":"x"})", R"({"b":1})"}},
      {R"({"type":"object","not":{"additionalProperties":{"type":"string"}},)"
       R"("propertyNames":{"enum":["a","b"]},"allOf":[{"not":{"required":["a"]}}]})",
       {R"({"b":1})"},
       {"{}", R"({"b":"x"})", R"({"a":1})", R"({"a":1,"b":1})"}},
      {R"({"type":"object","propertyNames":{"enum":["a","b","cc"]},)"
       R"("patternProperties":{"^b":{"type":"null"}},"not":{"propertyNames":{"maxLength":1}}})",
       {R"({"cc":1})", R"({"a":1,"cc":1})", R"({"b":null,"cc":1})"},
       {"{}", R"({"a":1})", R"({"b":1,"cc":1})"}},
      {R"({"type":"object","not":{"propertyNames":{"maxLength":1}},)"
       R"("propertyNames":{"enum":["a","b","cc"]},"patternProperties":{"^c":{"type":"null"}}})",
       {R"({"cc":null})"},
       {R"({"a":1})", R"({"cc":1})"}},
      {R"({"type":"object","propertyNames":{"enum":["a","bb","cccc"]},"allOf":[)"
       R"({"not":{"propertyNames":{"maxLength":1}}},{"not":{"propertyNames":{"minLength":3}}}]})",
       {R"({"bb":1})", R"({"a":1,"cccc":1})"},
       {"{}", R"({"a":1})", R"({"cccc":1})"}},
      {R"({"type":"object","properties":{"a":true,"bb":true},"additionalProperties":false,)"
       R"("allOf":[{"not":{"propertyNames":{"maxLength":1}}},)"
       R"({"not":{"patternProperties":{"^a$":{"type":"null"}}}}]})",
       {R"({"a":1,"bb":1})"},
       {R"({"bb":1})", R"({"a":1})", R"({"a":null,"bb":1})"}},
      {R"({"type":"object","propertyNames":{"not":{"enum":["a"]}}})",
       {"{}", R"({"b":1})"},
       {R"({"a":1})"}},
      {R"({"type":"object","propertyNames":{"enum":["a","b"]},"not":{"properties":{"a":true},)"
       R"("patternProperties":{"^c":true},"additionalProperties":{"type":"null"}}})",
       {R"({"b":1})", R"({"a":1,"b":1})"},
       {"{}", R"({"a":1})", R"({"b":null})"}},
  });
  ExpectRefused(R"({"type":"object","not":{"propertyNames":{"maxLength":2}}})",
                "#/not/propertyNames: ");
}

TEST(JsonSchemaCorners, Denied) {
  CheckCases({
      {R"({"type":"integer","not":{"type":"string","minLength":1}})", {"1"}, {"\"a\""}},
      {R"({"type":"string","not":{"title":"x","minLength":0,"maxLength":18446744073709551615,)"
       R"("const":"a","uniqueItems":false,"$comment":"y"}})",
       {"\"b\""},
       {"\"a\""}},
      {R"({"type":"string","not":{"unevaluatedItems":true,"const":"a"}})", {"\"b\""}, {"\"a\""}},
      {R"({"type":"string","unevaluatedItems":true})", {"\"b\""}, {"1"}},
      {R"({"type":"integer","not":{"exclusiveMaximum":3}})", {"3", "4"}, {"2"}},
      {R"({"type":"integer","not":{"exclusiveMinimum":3}})", {"3", "2"}, {"4"}},
      {R"({"$schema":"http://json-schema.org/draft-04/schema","type":"integer",)"
       R"("not":{"maximum":3,"exclusiveMaximum":true,"exclusiveMinimum":false}})",
       {"3", "4"},
       {"2"}},
      {R"({"$schema":"http://json-schema.org/draft-04/schema","type":"integer",)"
       R"("maximum":3,"exclusiveMaximum":true,"minimum":1,"exclusiveMinimum":false})",
       {"2", "1"},
       {"3", "0"}},
      {R"({"type":"object","not":{"dependentSchemas":{"a":{"required":["b"]}}}})",
       {R"({"a":1})"},
       {"{}", R"({"a":1,"b":1})"}},
      {R"({"type":"object","not":{"dependencies":{"a":["b","c"],"d":false}}})",
       {R"({"a":1})", R"({"a":1,"b":1})", R"({"d":1})"},
       {"{}", R"({"a":1,"b":1,"c":1})"}},
      {R"({"type":"integer","not":{"if":{"minimum":3},"then":{"maximum":7}}})",
       {"8"},
       {"2", "3", "7"}},
      {R"({"type":"integer","not":{"if":{"minimum":3},"else":{"maximum":1}}})",
       {"2"},
       {"1", "3", "7"}},
      {R"({"if":{"type":"string"}})", {"1", "\"a\""}, {}},
      {R"({"type":"integer","not":{"$ref":"#/$defs/a","minimum":2},"$defs":{"a":{"maximum":5}}})",
       {"1", "6"},
       {"2", "5"}},
      {R"({"type":"boolean","not":{"const":false}})", {"true"}, {"false"}},
      {R"({"type":"boolean","not":{"const":true}})", {"false"}, {"true"}},
      {R"({"const":false})", {"false"}, {"true", "0"}},
      {R"({"enum":[false,true,[1]]})", {"false", "true", "[1]"}, {"null", "[]"}},
      {R"({"enum":[false,[1],null]})", {"false", "null", "[1]"}, {"true", "[]"}},
      {R"({"enum":[true,{"a":1},3,"x"]})", {"true", R"({"a":1})", "3", "\"x\""}, {"false", "{}"}},
      {R"({"not":{"enum":[false,[1],{"a":1}]},"type":["boolean","array","object"]})",
       {"true", "[]", "[2]", "{}", R"({"a":2})"},
       {"false", "[1]", R"({"a":1})"}},
      {R"({"type":["string","number"],"not":{"type":"number","format":"float"}})",
       {"\"x\""},
       {"1", "1.5"}},
      {R"({"type":["string","null"],"not":{"format":"password","type":"string"}})",
       {"null"},
       {"\"x\""}},
      {R"({"type":"number","format":"float"})", {"1.5", "1e300"}, {"\"x\""}},
      {R"({"type":["number","string","null"],"allOf":[{"not":{"type":["number","string"],)"
       R"("format":"float"}},{"not":{"type":["number","string"],"format":"double"}}]})",
       {"null"},
       {"1", "\"x\""}},
      {R"({"allOf":[{"not":{"type":["string","null","array","object","boolean"]}},)"
       R"({"not":{"type":"string","minLength":1}}]})",
       {"1"},
       {"\"\"", "null"}},
      {R"({"type":"string","format":"int32"})", {"\"x\""}, {"1"}},
      {R"({"type":["string","null"],"allOf":[{"pattern":"^a$"},{"pattern":"^b$"},)"
       R"({"pattern":"^c$"}]})",
       {"null"},
       {"\"a\"", "\"b\""}},
      {R"({"type":["string","null"],"minLength":3,"maxLength":2})", {"null"}, {"\"abc\""}},
      {R"({"type":["string","null"],"pattern":"^a$","not":{"enum":["a","b"]}})",
       {"null"},
       {"\"a\""}},
      {R"({"anyOf":[{"allOf":[{"type":"string"},{"type":"integer"},{"minLength":1}]},)"
       R"({"type":"null"}]})",
       {"null"},
       {"\"a\"", "1"}},
      {R"({"anyOf":[{"allOf":[{"not":true},{"minLength":1}]},{"type":"null"}]})",
       {"null"},
       {"\"a\"", "1"}},
  });
  ExpectRefused(R"({"type":"integer","not":{"format":"int32"}})", "#/not/format: ");
  ExpectRefused(R"({"type":"string","not":{"format":"int32"}})", "#: no value");
  ExpectRefused(R"({"type":"string","format":"regex"})", "#/format: ");
  ExpectRefused(R"({"type":"string","not":{"format":"regex"}})", "#/not/format: ");
  ExpectRefused(R"({"minLength":9)" + std::string(1000, '9') + "}", "#/minLength: ");
}

TEST(JsonSchemaCorners, BoundsOfNumbers) {
  CheckCases({
      {R"({"type":"integer","minimum":1,"allOf":[{"minimum":3},{"exclusiveMinimum":3},)"
       R"({"maximum":9},{"maximum":7},{"exclusiveMaximum":7},{"minimum":2},{"maximum":8},)"
       R"({"minimum":3},{"maximum":7},{"multipleOf":1},{"multipleOf":1}]})",
       {"4", "5", "6"},
       {"3", "7", "2", "8", "4.5"}},
      {R"({"type":"integer","exclusiveMinimum":3,"allOf":[{"minimum":3},{"exclusiveMinimum":3}]})",
       {"4"},
       {"3"}},
      {R"({"type":"number","minimum":1E+1,"maximum":2e+1,"not":{"const":150e-1}})",
       {"10", "20", "15.5"},
       {"15", "15.0", "9.9", "20.1"}},
      {R"({"type":"number","exclusiveMinimum":-0.5,"exclusiveMaximum":0.5})",
       {"0", "-0", "0.4", "-0.4", "4e-1", "-4e-1", "0.0"},
       {"0.5", "-0.5", "5e-1", "-5e-1", "1e0", "-1e0"}},
      {R"({"type":"number","exclusiveMaximum":-0.05})",
       {"-1", "-6e-2", "-1e5", "-0.06"},
       {"0", "-5e-2", "-4e-2", "-5e-3", "6e-2", "1e5"}},
      {R"({"enum":[1,5,9],"minimum":2,"multipleOf":5})", {"5", "5.0"}, {"1", "9", "10"}},
      {R"({"enum":[1,5,null],"minimum":7,"maximum":6})", {"null"}, {"1", "5"}},
      {R"({"enum":[100,5,1e5,-7],"maximum":6,"minimum":-6,"multipleOf":5})",
       {"5"},
       {"100", "-7", "100000", "0"}},
      {R"({"anyOf":[{"type":"number","multipleOf":2,"not":{"multipleOf":2}},{"type":"null"}]})",
       {"null"},
       {"2", "1"}},
  });
}

TEST(JsonSchemaCorners, OneOf_OfWhatExcludesEachOther) {
  std::string sixty, others;
  for (int i = 0; i < 60; ++i) {
    sixty += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\"";
    others += (i == 0 ? "\"" : ",\"") + std::to_string(i + 60) + "\"";
  }
  const std::string many = R"({"oneOf":[{"enum":[)" + sixty + R"(]},{"enum":[)" + others +
                           R"(]},{"anyOf":[{"const":"x"},{"enum":[)" + sixty + "]}]}]}";
  const std::string many_more = R"({"oneOf":[{"enum":[)" + sixty +
                                R"(],"anyOf":[{"minLength":1},{"maxLength":2}]},{"enum":[)" +
                                others + "]}]}";
  const auto nested = [](int depth, const char* last) {
    std::string schema = last;
    for (int i = 0; i < depth; ++i) {
      schema = R"({"type":"object","required":["a"],"properties":{"a":)" + schema + "}}";
    }
    return schema;
  };
  const std::string deep =
      R"({"oneOf":[)" + nested(6, R"({"const":1})") + "," + nested(6, R"({"const":2})") + "]}";
  CheckCases({
      {many.c_str(), {"\"60\"", "\"119\"", "\"x\""}, {"\"0\"", "\"59\"", "\"120\""}},
      {deep.c_str(),
       {R"({"a":{"a":{"a":{"a":{"a":{"a":1}}}}}})", R"({"a":{"a":{"a":{"a":{"a":{"a":2}}}}}})"},
       {R"({"a":{"a":{"a":{"a":{"a":{"a":3}}}}}})", R"({"a":1})"}},
      {many_more.c_str(), {"\"60\"", "\"0\""}, {"\"120\""}},
      // Up to draft 7 nothing beside $ref counts.
      {R"({"$schema":"http://json-schema.org/draft-07/schema#","oneOf":[)"
       R"({"allOf":[{"$ref":"#/definitions/i","type":"string"}]},{"type":"integer"},)"
       R"({"type":"null"}],"definitions":{"i":{"type":"integer"}}})",
       {"null"},
       {"1", "\"a\""}},
      {R"({"oneOf":[false,{"type":"string"},true]})", {"1"}, {"\"a\""}},
      {R"({"oneOf":[{"type":"object","required":["a"]},{"type":"object","properties":{"b":true},)"
       R"("additionalProperties":false}]})",
       {"{}", R"({"b":1})", R"({"a":1})", R"({"a":1,"b":1})"},
       {R"({"c":1})"}},
      {R"({"oneOf":[{"type":"object","required":["a","b"],"properties":{"a":{"const":1}}},)"
       R"({"type":"object","required":["b"],"properties":{"b":{"const":1},"a":{"const":2}}}]})",
       {R"({"a":1,"b":2})", R"({"b":1})", R"({"a":2,"b":1})", R"({"a":1,"b":1})"},
       {R"({"a":2,"b":2})", R"({"b":2})"}},
      {R"({"oneOf":[{"anyOf":[{"const":1},{"const":2}]},{"const":3}]})",
       {"1", "2", "3"},
       {"4", "null"}},
      {R"({"oneOf":[{"const":3},{"oneOf":[{"const":1},{"const":3}]}]})", {"1"}, {"3", "2"}},
      {R"({"oneOf":[{"anyOf":[{"const":1},{"const":3}]},{"const":3}]})", {"1"}, {"3", "4"}},
      {R"({"oneOf":[{"allOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/a"}]},{"type":"boolean",)"
       R"("$ref":"#/$defs/b"}],"$defs":{"a":{"type":["array","null"]},"b":{"const":true}}})",
       {"[]", "null", "true"},
       {"false", "1"}},
      {R"({"oneOf":[{"enum":[true,1]},{"enum":[false,null,"x"]},{"const":[1]},{"const":{}},)"
       R"({"enum":[[2],{"a":1}]}]})",
       {"true", "false", "1", "null", "\"x\"", "[1]", "{}", "[2]", R"({"a":1})"},
       {"[]", "2"}},
  });
  // What patterns allow is not compared.
  ExpectRefused(R"({"oneOf":[{"type":"object","required":["a"]},{"type":"object",)"
                R"("patternProperties":{"^a$":{"type":"null"}},"additionalProperties":false}]})",
                "#/oneOf/1/");
  ExpectRefused(R"({"oneOf":[{"$ref":"#/none","type":"object"},{"type":"null"}]})", "#/oneOf/0/");
  SchemaMatcher matcher;
  EXPECT_EQ(Status::kBadArgument, matcher.Compile(R"({"oneOf":[{"type":"object","required":[1]},)"
                                                  R"({"type":"object","properties":{"a":true}}]})",
                                                  {}));
}

TEST(JsonSchemaCorners, References) {
  CheckCases({
      {R"({"$schema":"http://json-schema.org/draft-07/schema","properties":{"a":{"$id":"x",)"
       R"("type":"null","$ref":"#/definitions/i"}},"definitions":{"i":{"type":"integer"}}})",
       {R"({"a":1})"},
       {R"({"a":null})"}},
      {R"({"$ref":"#n","$defs":{"a":{"$dynamicAnchor":"n","type":"null"},)"
       R"("b":{"$anchor":"m","type":"string"},"c":{"$id":"x","$anchor":"n","type":"array"}}})",
       {"null"},
       {"[]", "\"a\""}},
      {R"({"$ref":"x#n","$defs":{"a":{"$anchor":"n","type":"null"},)"
       R"("b":{"$id":"y","$anchor":"n","type":"string"},"c":{"$id":"x","$anchor":"n",)"
       R"("type":"array"}}})",
       {"[]"},
       {"null", "\"a\""}},
      {R"({"$id":"urn:a:b","$ref":"urn:x:y","$defs":{"a":{"$id":"urn:x:y","type":"null"}}})",
       {"null"},
       {"1"}},
      {R"({"$id":"urn:a:b","$ref":"c","$defs":{"a":{"$id":"urn:c","type":"null"}}})",
       {"null"},
       {"1"}},
      {R"({"$id":"/a/b","$ref":"./../../../c/./d","$defs":{"a":{"$id":"/c/d","type":"null"}}})",
       {"null"},
       {"1"}},
      {R"({"$id":"http:/a/b","$ref":"c","$defs":{"a":{"$id":"http:/a/c","type":"null"}}})",
       {"null"},
       {"1"}},
      {R"({"$id":"http://h/a/b","$ref":"//i/c","$defs":{"a":{"$id":"http://i/c","type":"null"},)"
       R"("b":{"$id":"http://h/c","type":"string"}}})",
       {"null"},
       {"1", "\"a\""}},
      {R"({"$id":"http://h/a/b","$ref":"/c","$defs":{"a":{"$id":"http://i/c","type":"null"},)"
       R"("b":{"$id":"http://h/c","type":"string"}}})",
       {"\"a\""},
       {"1", "null"}},
      {R"({"$ref":"../x","$defs":{"a":{"$id":"x","type":"null"}}})", {"null"}, {"1"}},
      {R"({"$ref":"#/$defs/a%2Fb%7e0~1~0%","$defs":{"a/b~/~%":{"type":"null"}}})", {"null"}, {}},
      {R"({"$ref":"#/$defs/~2","$defs":{"~2":{"type":"null"}}})", {"null"}, {"1"}},
      {R"({"$ref":"#/$defs/%4A%6f%4","$defs":{"Jo%4":{"type":"null"}}})", {"null"}, {"1"}},
      {R"({"$ref":"#/$defs/a/anyOf/1","$defs":{"a":{"anyOf":[true,{"type":"null"}]}}})",
       {"null"},
       {"1"}},
      {R"({"$schema":3,"type":"null"})", {"null"}, {"1"}},
      {R"({"$schema":"http://json-schema.org/draft-06/schema#","$ref":"#/definitions/a",)"
       R"("anyOf":[{"type":"string"}],"definitions":{"a":{"type":"null"}}})",
       {"null"},
       {"\"a\""}},
      {R"({"$schema":"http://json-schema.org/draft-06/schema#","anyOf":[)"
       R"({"$ref":"#/definitions/a","allOf":[{"$ref":"#"}]}],"definitions":{"a":{"type":"null"}}})",
       {"null"},
       {"\"a\""}},
  });
  for (const char* const place :
       {"anyOf/", "anyOf/2", "anyOf/99999999999", "anyOf/00", "anyOf/01", "anyOf/a", "anyOf/-",
        "anyOf/1/", "anyOf/0/type", "anyOf/1/type/x", "%+1", "%1!", "%gg", "%6g", "%G6", "%/1",
        "%:@", "x"}) {
    ExpectRefused(std::string(R"({"$ref":"#/$defs/a/)") + place +
                      R"(","$defs":{"a":{"anyOf":[true,{"type":"null"}]}}})",
                  "#/$ref: ");
  }
  ExpectRefused(R"({"$ref":3})", "#/$ref: ");
  ExpectRefused(R"({"$schema":"x"})", "#/$schema: ");
  ExpectRefused(R"({"$ref":"#m","$defs":{"a":{"$id":"x","$anchor":"m"}}})", "#/$ref: ");
}

TEST(JsonSchemaCorners, ManyAlternatives) {
  // More different next characters, and more names and constants, than a term is made of at once.
  std::string letters, names;
  for (int i = 0; i < 300; ++i) {
    char text[64];
    std::snprintf(text, sizeof text, "%s\"\\u%04x\"", i == 0 ? "" : ",", 0x4E00 + i);
    letters += text;
    std::snprintf(text, sizeof text, "%s\"\\u%04x\":{\"const\":%d}", i == 0 ? "" : ",", 0x4E00 + i,
                  i);
    names += text;
  }
  const std::string list = R"({"enum":[)" + letters + "]}";
  const std::string others = R"({"type":"string","not":)" + list + "}";
  const std::string unique = R"({"type":"array","uniqueItems":true,"items":)" + list + "}";
  const std::string object =
      R"({"type":"object","properties":{)" + names + R"(},"additionalProperties":false})";
  CheckCases(
      {
          {list.c_str(), {R"("\u4e00")", R"("\u4f2b")", R"("\u4ea0")"}, {R"("\u4f2c")", "\"a\""}},
          {others.c_str(), {R"("\u4f2c")", "\"\"", R"("\u4e00x")"}, {R"("\u4e00")", R"("\u4f2b")"}},
          {unique.c_str(),
           {R"(["\u4e00","\u4f2b","\u4e01"])"},
           {R"(["\u4e00","\u4e00"])", R"(["\u4f2b","\u4e01","\u4f2b"])", R"(["\u4f2c"])"}},
          {object.c_str(),
           {R"({"\u4e00":0,"\u4f2b":299,"\u4ea0":160})"},
           {R"({"\u4e00":1})", R"({"\u4f2c":300})"}},
      },
      {.any_order = true, .block_bytes = size_t{16} << 20});
}

// Texts without a mark, whose white space is any or the mark's own.
TEST(JsonSchemaCorners, TextsWithoutAMark) {
  constexpr size_t kBytes = size_t{1} << 20;
  const auto memory = std::make_unique<std::byte[]>(kBytes + 64);
  std::byte* const begin =
      memory.get() + (64 - reinterpret_cast<uintptr_t>(memory.get()) % 64) % 64;
  Terms* const terms = Terms::Create({begin, kBytes});
  const auto accepts = [terms](Term at, const std::string& text) {
    for (const char c : text) at = terms->Derive(at, static_cast<uint8_t>(c));
    return terms->IsNullable(at);
  };
  const Term any = json_schema::WithoutMark(terms, "a b", /*skips_space=*/true);
  for (const char* const text : {"", "a", "ba", "a-b", "a\n\nc"}) EXPECT_TRUE(accepts(any, text));
  for (const char* const text : {"ab", "xa bx", "a\t\n b"}) EXPECT_FALSE(accepts(any, text));
  const Term own = json_schema::WithoutMark(terms, "a b", /*skips_space=*/false);
  for (const char* const text : {"", "ab", "a  b", "a\nb"}) EXPECT_TRUE(accepts(own, text));
  for (const char* const text : {"a b", "xa bx"}) EXPECT_FALSE(accepts(own, text));
}

// A term keeps any number of others from being collected.
TEST(JsonSchemaCorners, KeptTerms) {
  constexpr size_t kBytes = size_t{16} << 20;
  const auto memory = std::make_unique<std::byte[]>(kBytes + 64);
  std::byte* const begin =
      memory.get() + (64 - reinterpret_cast<uintptr_t>(memory.get()) % 64) % 64;
  Terms* const terms = Terms::Create({begin, kBytes});
  const Term text = terms->Literal("kept");
  std::vector<Term> many(130'000, kEmpty);
  many[0] = text;
  const Term keeper = json_schema::KeepTerm(terms, {many.data(), many.size()});
  ASSERT_FALSE(terms->failed());
  EXPECT_FALSE(terms->IsNullable(keeper));
  EXPECT_EQ(kNothing, terms->Derive(keeper, 'k'));
  EXPECT_TRUE(terms->FirstBytes(keeper).IsEmpty());
  terms->Collect({&keeper, 1});
  Term at = text;
  for (const char c : {'k', 'e', 'p', 't'}) at = terms->Derive(at, static_cast<uint8_t>(c));
  EXPECT_TRUE(terms->IsNullable(at));
}

TEST(JsonSchemaCorners, Texts) {
  struct Bad {
    std::string schema;
    const char* place;
  };
  const Bad bads[] = {
      {"\t\r\n {\"type\" : [\r\t\"null\" \"string\"]}", "at byte "},
      {R"({"minimum":1e})", "at byte "},
      {R"({"minimum":1E-x})", "at byte "},
      {R"({"const":"a\)", "at byte "},
      {R"({"a\q":1})", "at byte "},
      {std::string("{\"const\":\"\\\0\"}", 14), "at byte "},
      {R"({"const":"\ud800"})", "at byte "},
      {R"({"const":"\ud800\n"})", "at byte "},
      {R"({"const":"\ud800\u00zz"})", "at byte "},
      {R"({"const":"\ud800\u0041"})", "at byte "},
      {R"({"const":"\ud800\ue000"})", "at byte "},
      {R"({"const":"\udc00"})", "at byte "},
      {R"({"a":1 "b":2})", "at byte "},
      {R"({"const":"\u00g1"})", "at byte "},
      {R"({"const":"\u00G1"})", "at byte "},
      {R"({"const":"\u00@1"})", "at byte "},
      {"{\"properties\":{\"a\\nb\":3}}", "#/properties/a?b: "},
      {R"({"properties":{"":3}})", "#/properties/: "},
      {R"({"properties":{"":{},"a":{},"":3}})", "at byte "},
  };
  for (const Bad& bad : bads) {
    SchemaMatcher matcher;
    EXPECT_EQ(Status::kBadArgument, matcher.Compile(bad.schema, {})) << bad.schema;
    EXPECT_EQ(0u, std::string(matcher.error()).find(std::string("JSON schema: ") + bad.place))
        << bad.schema << "\n"
        << matcher.error();
  }
  // A pointer that is cut at its beginning.
  std::string deep = "3";
  for (int i = 0; i < 100; ++i) deep = R"({"properties":{"name":)" + deep + "}}";
  SchemaMatcher matcher;
  EXPECT_EQ(Status::kBadArgument, matcher.Compile(deep, {}));
  EXPECT_NE(std::string(matcher.error()).find("/properties/name: "), std::string::npos);
  CheckCases({
      {"\t{\"type\" :\r\n[ \"null\" ,\t\"string\" ] }\r\n", {"null", "\"a\""}, {"1"}},
      {R"({"const":"\ud83d\ude00\ud83D\uDE00\"\\\/\b\f\n\r\t"})",
       {R"("\ud83d\ude00\ud83d\ude00\"\\/\b\f\n\r\t")"},
       {R"("\ud83d\ude00")"}},
      {R"({"type":"object","properties":{"":{"type":"null"},"\u0001":{"type":"null"},)"
       R"("\u0000":{"type":"null"},)"
       R"("a\"b\\c":{"type":"null"}},"propertyNames":{"maxLength":5},)"
       R"("patternProperties":{"^a":true}})",
       {R"({"":null,"\u0001":null,"a\"b\\c":null})", R"({"x":1})"},
       {R"({"":1})", R"({"\u0000":1})", R"({"\u0001":1})", R"({"a\"b\\c":1})", R"({"abcdef":1})"}},
  });
}

}  // namespace
}  // namespace arn
