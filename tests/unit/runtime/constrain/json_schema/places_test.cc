// A mistake is found and named wherever it is: in each keyword, affirmed and denied, at each place
// of a schema.
#include <string>

#include <gtest/gtest.h>
#include "schema_matcher.h"

namespace arn {
namespace {

struct Place {
  const char* begin;    // of a schema, before the schema with the mistake
  const char* end;      // after it
  const char* pointer;  // to it
};
// Affirmed, and denied for as long as something else is asked for too.
constexpr Place kPlaces[] = {
    {"", "", "#"},
    {R"({"not":)", "}", "#/not"},
    {R"({"allOf":[true,)", "]}", "#/allOf/1"},
    {R"({"not":{"allOf":[)", "]}}", "#/not/allOf/0"},
    {R"({"anyOf":[true,)", "]}", "#/anyOf/1"},
    {R"({"not":{"anyOf":[)", "]}}", "#/not/anyOf/0"},
    {R"({"oneOf":[)", R"(,{"type":"null"}]})", "#/oneOf/0"},
    {R"({"oneOf":[{"type":"null"},)", "]}", "#/oneOf/1"},
    {R"({"not":{"oneOf":[)", ",true]}}", "#/not/oneOf/0"},
    {R"({"not":{"oneOf":[true,)", "]}}", "#/not/oneOf/1"},
    {R"({"if":)", R"(,"then":true})", "#/if"},
    {R"({"if":{"type":"null"},"then":)", "}", "#/then"},
    {R"({"if":{"type":"null"},"else":)", "}", "#/else"},
    {R"({"not":{"if":)", R"(,"then":false}})", "#/not/if"},
    {R"({"not":{"if":{"type":"null"},"else":)", "}}", "#/not/else"},
    {R"({"not":{"not":)", "}}", "#/not/not"},
    {R"({"dependentSchemas":{"a":)", "}}", "#/dependentSchemas/a"},
    {R"({"not":{"dependentSchemas":{"a":)", "}}}", "#/not/dependentSchemas/a"},
    {R"({"properties":{"a":)", "}}", "#/properties/a"},
    {R"({"not":{"properties":{"a":)", "}}}", "#/not/properties/a"},
    {R"({"patternProperties":{"a":)", "}}", "#/patternProperties/a"},
    {R"({"additionalProperties":)", "}", "#/additionalProperties"},
    {R"({"propertyNames":)", "}", "#/propertyNames"},
    {R"({"items":)", "}", "#/items"},
    {R"({"not":{"items":)", "}}", "#/not/items"},
    {R"({"prefixItems":[true,)", "]}", "#/prefixItems/1"},
    {R"({"not":{"prefixItems":[)", "]}}", "#/not/prefixItems/0"},
    {R"({"contains":)", "}", "#/contains"},
    {R"({"not":{"contains":)", "}}", "#/not/contains"},
    {R"({"$ref":"#/$defs/d","$defs":{"d":)", "}}", "#/$defs/d"},
    {R"({"minLength":1,"$ref":"#/$defs/d","$defs":{"d":)", "}}", "#/$defs/d"},
    {R"({"not":{"minLength":1,"$ref":"#/$defs/d"},"$defs":{"d":)", "}}", "#/$defs/d"},
};

struct Mistake {
  const char* schema;
  const char* pointer;  // from the schema
  Status status = Status::kBadArgument;
};
constexpr Mistake kMistakes[] = {
    {"3", ""},
    {R"({"allOf":{}})", "/allOf"},
    {R"({"anyOf":{}})", "/anyOf"},
    {R"({"oneOf":{}})", "/oneOf"},
    {R"({"allOf":[3]})", "/allOf/0"},
    {R"({"dependentRequired":[]})", "/dependentRequired"},
    {R"({"dependentRequired":{"a":[3]}})", "/dependentRequired/a/0"},
    {R"({"dependentSchemas":{"a":3}})", "/dependentSchemas/a"},
    {R"({"dependencies":3})", "/dependencies"},
    {R"({"enum":{}})", "/enum"},
    {R"({"type":3})", "/type"},
    {R"({"type":["null","x"]})", "/type/1"},
    {R"({"minimum":"3"})", "/minimum"},
    {R"({"maximum":[]})", "/maximum"},
    {R"({"exclusiveMinimum":"3"})", "/exclusiveMinimum"},
    {R"({"exclusiveMaximum":null})", "/exclusiveMaximum"},
    {R"({"multipleOf":-1})", "/multipleOf"},
    {R"({"minLength":[]})", "/minLength"},
    {R"({"maxLength":-1})", "/maxLength"},
    {R"({"minItems":0.5})", "/minItems"},
    {R"({"maxItems":true})", "/maxItems"},
    {R"({"minProperties":"1"})", "/minProperties"},
    {R"({"maxProperties":-2})", "/maxProperties"},
    {R"({"pattern":3})", "/pattern"},
    {R"({"format":3})", "/format"},
    {R"({"contains":3})", "/contains"},
    {R"({"contains":true,"minContains":-1})", "/minContains"},
    {R"({"contains":true,"maxContains":"1"})", "/maxContains"},
    {R"({"items":3})", "/items"},
    {R"({"prefixItems":3})", "/prefixItems"},
    {R"({"prefixItems":[3]})", "/prefixItems/0"},
    {R"({"properties":3})", "/properties"},
    {R"({"properties":{"b":3}})", "/properties/b"},
    {R"({"patternProperties":3})", "/patternProperties"},
    {R"({"patternProperties":{"b":3}})", "/patternProperties/b"},
    {R"({"additionalProperties":3})", "/additionalProperties"},
    {R"({"additionalProperties":{},"properties":[]})", "/properties"},
    {R"({"additionalProperties":{},"patternProperties":[]})", "/patternProperties"},
    {R"({"propertyNames":3})", "/propertyNames"},
    {R"({"required":3})", "/required"},
    {R"({"required":[3]})", "/required/0"},
    {R"({"not":3})", "/not"},
    {R"({"if":3,"else":true})", "/if"},
    {R"({"unevaluatedItems":false})", "/unevaluatedItems", Status::kUnsupported},
    {R"({"prefixItems":[true],"items":[true]})", "/items", Status::kUnsupported},
    {R"({"$ref":3,"minLength":1})", "/$ref", Status::kUnsupported},
    {R"({"$ref":"#/none","minLength":1})", "/$ref", Status::kUnsupported},
};

TEST(JsonSchemaPlaces, EachMistake_IsNamedAtEachPlace) {
  for (const Place& place : kPlaces) {
    for (const Mistake& mistake : kMistakes) {
      const std::string schema = std::string(place.begin) + mistake.schema + place.end;
      SCOPED_TRACE(schema);
      SchemaMatcher matcher;
      EXPECT_EQ(mistake.status, matcher.Compile(schema, {})) << matcher.error();
      const std::string start =
          std::string("JSON schema: ") + place.pointer + mistake.pointer + ": ";
      EXPECT_EQ(0u, std::string(matcher.error()).find(start)) << matcher.error();
    }
  }
}

}  // namespace
}  // namespace arn
