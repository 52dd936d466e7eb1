// What is refused, with the pointer of the keyword.
#include <string>

#include <gtest/gtest.h>
#include "schema_matcher.h"

namespace arn {
namespace {

struct Refusal {
  const char* schema;
  Status status;
  const char* place;  // the beginning of the message after "JSON schema: "
};

void CheckRefusals(std::initializer_list<Refusal> cases) {
  for (const Refusal& c : cases) {
    SchemaMatcher matcher;
    EXPECT_EQ(c.status, matcher.Compile(c.schema, {})) << c.schema << matcher.error();
    EXPECT_EQ(0u, std::string(matcher.error()).find("JSON schema: " + std::string(c.place)))
        << c.schema << "\n"
        << matcher.error();
  }
}

TEST(JsonSchemaTest, RefusesWhatIsNoSchema) {
  constexpr Status kBad = Status::kBadArgument;
  CheckRefusals({
      {"", kBad, "at byte 0"},
      {"{\"type\":", kBad, "at byte 8"},
      {R"({"type":[1]})", kBad, "#/type/0: type must be a name"},
      {R"({"type":{}})", kBad, "#/type: type must be a name"},
      {"3", kBad, "#: "},
      {"[]", kBad, "#: "},
      {R"({"type":"strin"})", kBad, "#/type: "},
      {R"({"type":["string",3]})", kBad, "#/type/1: "},
      {R"({"properties":{"a/b":{"type":3}}})", kBad, "#/properties/a~1b/type: "},
      {R"({"properties":[]})", kBad, "#/properties: "},
      {R"({"items":3})", kBad, "#/items: "},
      {R"({"minLength":-1})", kBad, "#/minLength: "},
      {R"({"minLength":1.5})", kBad, "#/minLength: "},
      {R"({"minLength":"1"})", kBad, "#/minLength: "},
      {R"({"minimum":"1"})", kBad, "#/minimum: "},
      {R"({"multipleOf":0})", kBad, "#/multipleOf: "},
      {R"({"multipleOf":-2})", kBad, "#/multipleOf: "},
      {R"({"required":"a"})", kBad, "#/required: "},
      {R"({"required":[1]})", kBad, "#/required/0: "},
      {R"({"enum":3})", kBad, "#/enum: "},
      {R"({"anyOf":{}})", kBad, "#/anyOf: "},
      {R"({"allOf":[1]})", kBad, "#/allOf/0: "},
      {R"({"pattern":3})", kBad, "#/pattern: "},
      {R"({"not":{"properties":{"a":{"minimum":null}}}})", kBad, "#/not/properties/a/minimum: "},
  });
}

TEST(JsonSchemaTest, RefusesWhatIsNotEnforced) {
  constexpr Status kNot = Status::kUnsupported;
  CheckRefusals({
      {R"({"unevaluatedProperties":false})", kNot, "#/unevaluatedProperties: "},
      {R"({"items":{"unevaluatedItems":false}})", kNot, "#/items/unevaluatedItems: "},
      {R"({"$dynamicRef":"#a"})", kNot, "#/$dynamicRef: "},
      {R"({"$recursiveRef":"#"})", kNot, "#/$recursiveRef: "},
      {R"({"$schema":"http://json-schema.org/draft-03/schema#"})", kNot, "#/$schema: "},
      {R"({"$schema":"http://example.org/my-dialect"})", kNot, "#/$schema: "},
      {R"({"extends":{}})", kNot, "#/extends: "},
      {R"({"properties":{"a":{"format":"regex"}}})", kNot, "#/properties/a/format: "},
      {R"({"pattern":"(?=a)b"})", kNot, "#/pattern: "},
      {R"({"patternProperties":{"(a)\\1":true}})", kNot, "#/patternProperties/(a)\\1: "},
      {R"({"type":"array","uniqueItems":true})", kNot, "#/uniqueItems: "},
      {R"({"type":"array","not":{"uniqueItems":true}})", kNot, "#/not/uniqueItems: "},
      {R"({"contains":{"const":1},"allOf":[{"contains":{"const":2}}]})", kNot, "#/"},
      {R"({"$ref":"http://example.org/other.json"})", kNot, "#/$ref: "},
      {R"({"$ref":"#/$defs/none"})", kNot, "#/$ref: "},
      {R"({"$ref":"#none"})", kNot, "#/$ref: "},
      {R"({"minimum":1e2000})", kNot, "#/minimum: "},
      {R"({"multipleOf":0.123456789})", kNot, "#/multipleOf: "},
  });
}

TEST(JsonSchemaTest, RefusesWhatNoValueSatisfies) {
  constexpr Status kNot = Status::kUnsupported;
  CheckRefusals({
      {"false", kNot, "#: no value"},
      {R"({"not":{}})", kNot, "#: no value"},
      {R"({"enum":[]})", kNot, "#: no value"},
      {R"({"oneOf":[true,true]})", kNot, "#: no value"},
      {R"({"type":"integer","minimum":3,"maximum":2})", kNot, "#: no value"},
      {R"({"type":"integer","minimum":3.1,"maximum":3.9})", kNot, "#: no value"},
      {R"({"type":"string","minLength":3,"maxLength":2})", kNot, "#: no value"},
      {R"({"type":"string","minLength":3,"pattern":"^.{2}$"})", kNot, "#: no value"},
      {R"({"type":"string","enum":[1]})", kNot, "#: no value"},
      {R"({"type":"array","minItems":3,"maxItems":2})", kNot, "#: no value"},
      {R"({"type":"array","minItems":1,"items":false})", kNot, "#/items: no value"},
      {R"({"type":"array","uniqueItems":true,"items":{"enum":[1,2]},"minItems":3})", kNot,
       "#: no value"},
      {R"({"type":"array","uniqueItems":true,"minItems":1,)"
       R"("items":{"type":"string","pattern":"^a$","minLength":2}})",
       kNot, "#"},
      {R"({"type":"array","contains":false})", kNot, "#: no value"},
      {R"({"type":"object","required":["a"],"properties":{"a":{"type":"string","const":1}}})", kNot,
       "#/properties/a"},
      {R"({"type":"object","required":["a"],"additionalProperties":false})", kNot, "#"},
      {R"({"type":"object","required":["a","b"],"maxProperties":1})", kNot, "#: no value"},
      {R"({"type":"object","properties":{"a":true,"b":{"type":"array","minItems":1,)"
       R"("items":false}},"additionalProperties":false,"minProperties":2})",
       kNot, "#: no value"},
      {R"({"type":"object","required":["a"],"properties":{"a":{"$ref":"#"}}})", kNot, "#"},
  });
}

TEST(JsonSchemaTest, RefusesCircles) {
  constexpr Status kNot = Status::kUnsupported;
  CheckRefusals({
      {R"({"$ref":"#"})", kNot, "#: "},
      {R"({"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}})", kNot,
       "#"},
      {R"({"allOf":[{"$ref":"#"}]})", kNot, "#"},
      {R"({"not":{"$ref":"#"}})", kNot, "#"},
      {R"({"properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"anyOf":[{"type":"null"},)"
       R"({"$ref":"#/$defs/a"}]}}})",
       kNot, "#/$defs/a: "},
  });
}

}  // namespace
}  // namespace arn
