// allOf, anyOf, oneOf, not, if, references and recursion.
#include "schema_cases.h"

namespace arn {
namespace {

TEST(JsonSchemaTest, AllAnyOne) {
  CheckCases({
      {R"({"allOf":[{"minimum":3},{"maximum":5},{"type":"integer"}]})",
       {"3", "5"},
       {"2", "6", "3.5", "null"}},
      {R"({"allOf":[{"properties":{"a":{"minimum":3}}},{"properties":{"a":{"type":"integer"}},)"
       R"("required":["a"]}],"type":"object"})",
       {R"({"a":3})"},
       {R"({"a":2})", R"({"a":3.5})", "{}"}},
      {R"({"anyOf":[{"type":"integer"},{"minLength":2}]})",
       {"1", "\"ab\"", "null", "[]", "1.5"},
       {"\"a\""}},
      {R"({"anyOf":[{"type":"integer"},{"type":"string","minLength":2}]})",
       {"1", "\"ab\""},
       {"\"a\"", "1.5", "null"}},
      {R"({"anyOf":[{"type":"object","properties":{"k":{"const":"a"},"v":{"type":"integer"}},)"
       R"("required":["k"]},{"type":"object","properties":{"k":{"const":"b"},)"
       R"("v":{"type":"string"}},"required":["k"]}]})",
       {R"({"k":"a","v":1})", R"({"v":"x","k":"b"})", R"({"k":"a"})"},
       {R"({"k":"a","v":"x"})", R"({"v":1,"k":"b"})", R"({"v":1})", R"({"k":"c"})"}},
      {R"({"oneOf":[{"multipleOf":2},{"multipleOf":3}],"type":"integer"})",
       {"2", "3", "4", "9"},
       {"6", "0", "1", "12"}},
      {R"({"oneOf":[{"type":"integer"},{"type":"number","minimum":2}]})",
       {"1", "2.5", "-3"},
       {"2", "3", "1.5"}},
      {R"({"oneOf":[{"required":["a"]},{"required":["b"]}],"type":"object"})",
       {R"({"a":1})", R"({"b":1,"c":1})"},
       {"{}", R"({"a":1,"b":1})", R"({"c":1})"}},
      {R"({"type":"string","pattern":"^a","not":{"enum":["ab","b"]}})",
       {"\"a\"", "\"abc\""},
       {"\"ab\"", "\"b\"", "\"c\"", "\"\""}},
      {R"({"type":"string","not":{"enum":["ab","b"]}})",
       {"\"a\"", "\"abc\"", "\"c\""},
       {"\"ab\"", "\"b\""}},
      {R"({"oneOf":[{"type":"string","maxLength":2},{"type":"string","pattern":"^a"}]})",
       {"\"b\"", "\"abc\""},
       {"\"a\"", "\"ab\"", "\"bcd\""}},
      {R"({"oneOf":[{"const":1},{"const":2},{"enum":[1,3]}]})", {"2", "3"}, {"1", "4"}},
  });
}

TEST(JsonSchemaTest, Not) {
  CheckCases({
      {R"({"not":{"type":"integer"}})", {"1.5", "\"x\"", "null", "[]", "{}"}, {"1", "1.0", "0"}},
      {R"({"not":{"type":["string","object"]}})", {"1", "[]"}, {"\"x\"", "{}"}},
      {R"({"not":{"not":{"type":"string"}}})", {"\"a\""}, {"1"}},
      {R"({"not":false})", {"1"}, {}},
      {R"({"type":"object","not":{"required":["a","b"]}})",
       {"{}", R"({"a":1})", R"({"b":1,"c":2})"},
       {R"({"a":1,"b":1})"}},
      {R"({"type":"object","not":{"properties":{"a":{"type":"string"}},"required":["a"]}})",
       {"{}", R"({"a":1})", R"({"b":1})"},
       {R"({"a":"x"})"}},
      {R"({"not":{"anyOf":[{"type":"null"},{"type":"boolean"}]}})",
       {"1", "\"\""},
       {"null", "true", "false"}},
      {R"({"not":{"allOf":[{"minimum":3},{"maximum":5}]},"type":"integer"})",
       {"2", "6"},
       {"3", "4", "5"}},
      {R"({"not":{"oneOf":[{"minimum":3},{"maximum":5}]},"type":"integer"})",
       {"3", "4", "5"},
       {"2", "6"}},
      {R"({"not":{"if":{"minimum":5},"then":{"maximum":7},"else":{"maximum":3}},"type":"integer"})",
       {"4", "8"},
       {"3", "5", "7"}},
      {R"({"not":{"const":null}})", {"0", "false"}, {"null"}},
      {R"({"not":{"enum":[1,"a",[1],null]}})",
       {"2", "\"b\"", "[]", "[2]", "{}", "true"},
       {"1", "1.0", "\"a\"", "[1]", "null"}},
  });
}

TEST(JsonSchemaTest, IfThenElse) {
  CheckCases({
      {R"({"type":"integer","if":{"minimum":10},"then":{"multipleOf":10},"else":{"maximum":5}})",
       {"10", "20", "5", "-1"},
       {"15", "6", "9"}},
      {R"({"if":{"type":"string"},"then":{"minLength":1}})", {"\"a\"", "1", "null"}, {"\"\""}},
      {R"({"if":{"type":"string"},"else":{"type":"null"}})", {"\"a\"", "null"}, {"1"}},
      {R"({"then":{"type":"null"},"else":{"type":"null"}})", {"1", "null"}, {}},
      {R"({"type":"object","properties":{"country":{"enum":["US","DE"]},)"
       R"("zip":{"type":"string"}},"required":["country","zip"],)"
       R"("if":{"properties":{"country":{"const":"US"}}},)"
       R"("then":{"properties":{"zip":{"pattern":"^[0-9]{5}$"}}},)"
       R"("else":{"properties":{"zip":{"maxLength":2}}}})",
       {R"({"country":"US","zip":"12345"})", R"({"zip":"12","country":"DE"})"},
       {R"({"country":"US","zip":"12"})", R"({"country":"DE","zip":"12345"})",
        R"({"zip":"12345"})"}},
  });
}

TEST(JsonSchemaTest, References) {
  CheckCases({
      {R"({"$ref":"#/$defs/a","$defs":{"a":{"type":"integer"}}})", {"1"}, {"null"}},
      {R"({"$ref":"#/$defs/a","minimum":3,"$defs":{"a":{"type":"integer"}}})", {"3"}, {"2", "3.5"}},
      {R"({"$schema":"http://json-schema.org/draft-07/schema#","$ref":"#/definitions/a",)"
       R"("minimum":3,"definitions":{"a":{"type":"integer"}}})",
       {"3", "2"},
       {"3.5"}},
      {R"({"$ref":"#/$defs/a~1b%25~0","$defs":{"a/b%~":{"const":1}}})", {"1"}, {"2"}},
      {R"({"properties":{"a":{"$ref":"#x"}},"type":"object","$defs":{"b":{"$anchor":"x",)"
       R"("type":"null"}}})",
       {R"({"a":null})"},
       {R"({"a":1})"}},
      {R"({"prefixItems":[{"type":"integer"},{"$ref":"#/prefixItems/0"}],"type":"array"})",
       {"[1,2]"},
       {"[1,null]"}},
      {R"({"$id":"http://x.org/root.json","$ref":"item.json","$defs":{"i":{"$id":"item.json",)"
       R"("$ref":"#/$defs/s","$defs":{"s":{"type":"string"}}}}})",
       {"\"a\""},
       {"1"}},
      {R"({"$id":"http://x.org/a/root","items":{"$ref":"../b#n"},"type":"array",)"
       R"("$defs":{"i":{"$id":"/b","$defs":{"s":{"$anchor":"n","type":"null"}}}}})",
       {"[null]"},
       {"[1]"}},
      {R"({"$schema":"http://json-schema.org/draft-04/schema#","id":"http://x/y",)"
       R"("allOf":[{"$ref":"#foo"}],"definitions":{"f":{"id":"#foo","type":"null"}}})",
       {"null"},
       {"1"}},
      {R"({"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"type":"null"}}})",
       {"null"},
       {"1"}},
  });
}

TEST(JsonSchemaTest, Recursion) {
  CheckCases({
      {R"({"type":"object","properties":{"v":{"type":"integer"},"next":{"$ref":"#"}},)"
       R"("required":["v"],"additionalProperties":false})",
       {R"({"v":1})", R"({"v":1,"next":{"v":2,"next":{"v":3}}})"},
       {R"({"v":1,"next":{}})", R"({"v":1,"next":null})"}},
      {R"({"anyOf":[{"type":"integer"},{"type":"array","items":{"$ref":"#"}}]})",
       {"1", "[]", "[1,[2,[]]]"},
       {"[null]", "[1,[1.5]]"}},
      {R"({"$ref":"#/$defs/e","$defs":{"e":{"oneOf":[{"type":"number"},{"type":"object",)"
       R"("properties":{"op":{"enum":["+","*"]},"l":{"$ref":"#/$defs/e"},)"
       R"("r":{"$ref":"#/$defs/e"}},"required":["op","l","r"],"additionalProperties":false}]}}})",
       {"1", R"({"op":"+","l":1,"r":{"op":"*","r":2,"l":3}})"},
       {R"({"op":"-","l":1,"r":1})", R"({"op":"+","l":1})"}},
      // A value whose required part never ends is none; the alternative remains.
      {R"({"anyOf":[{"type":"null"},{"$ref":"#/$defs/endless"}],)"
       R"("$defs":{"endless":{"type":"object","properties":{"a":{"$ref":"#/$defs/endless"}},)"
       R"("required":["a"]}}})",
       {"null"},
       {"{", "{}"}},
      {R"({"type":"object","properties":{"a":{"$ref":"#/$defs/endless"},"b":true},)"
       R"("$defs":{"endless":{"type":"array","items":{"$ref":"#/$defs/endless"},"minItems":1}}})",
       {"{}", R"({"b":1})"},
       {R"({"a":)"}},
      {R"({"type":"array","items":{"$ref":"#"},"not":{"minItems":2}})",
       {"[]", "[[]]", "[[[]]]"},
       {"[[],[]]", "[[[],[]]]"}},
      {R"({"type":"array","items":{"not":{"$ref":"#"}}})",
       {"[]", "[1]", "[null,{}]", "[[[]]]"},
       {"[[]]", "[[1]]"}},
  });
}

// Alternatives that surely have no value in common need no denial of each other, which some
// keywords have not.
TEST(JsonSchemaTest, OneOf_OfWhatCannotBeDenied) {
  const std::string unique = R"({"type":"array","uniqueItems":true,"items":{"type":"string"}})";
  const auto status = [&](std::string schema) {
    for (size_t at = schema.find("UNIQUE"); at != std::string::npos; at = schema.find("UNIQUE")) {
      schema.replace(at, 6, unique);
    }
    SchemaMatcher matcher;
    return matcher.Compile(schema, {.any_order = true});
  };
  EXPECT_EQ(Status::kUnsupported, status(R"({"not":UNIQUE})"));
  for (
      const char* schema :
      {R"({"oneOf":[{"type":["string","null"]},UNIQUE]})",
       R"({"oneOf":[{"anyOf":[{"type":"string"},{"type":"null"}]},UNIQUE]})",
       R"({"oneOf":[UNIQUE,{"oneOf":[{"type":"string"},{"const":1}]}]})",
       R"({"oneOf":[{"anyOf":[{"type":"object","required":["k"],"properties":{"k":{"const":"a"}}},)"
       R"({"type":"object","required":["k"],"properties":{"k":{"const":"b"}}}]},)"
       R"({"type":"object","required":["k"],"properties":{"k":{"const":"c"},"v":UNIQUE}}]})",
       R"({"oneOf":[UNIQUE,{"$ref":"#/$defs/s"}],"$defs":{"s":{"allOf":[{"type":"string"}]}}})",
       R"({"oneOf":[{"type":"object","required":["k"],"properties":{"k":{"const":"a"},)"
       R"("v":UNIQUE}},)"
       R"({"type":"object","required":["k"],"properties":{"k":{"const":"b"},"v":UNIQUE}}]})",
       R"({"oneOf":[{"type":"object","required":["k"],"properties":{"k":{"enum":["a",1]},)"
       R"("v":UNIQUE}},{"type":"object","properties":{"k":{"enum":[2,"b"]},"v":UNIQUE}}]})",
       R"({"oneOf":[{"type":"object","required":["k"],"properties":{"k":UNIQUE}},)"
       R"({"type":"object","properties":{"v":UNIQUE},"additionalProperties":false}]})"}) {
    EXPECT_EQ(Status::kOk, status(schema)) << schema;
  }
  EXPECT_EQ(Status::kUnsupported,
            status(R"({"oneOf":[{"anyOf":[{"type":"string"},{"type":"array"}]},UNIQUE]})"));
}

}  // namespace
}  // namespace arn
