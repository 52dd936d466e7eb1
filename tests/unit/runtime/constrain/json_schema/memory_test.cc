// Every size of the memory that a schema does not fit is refused as such, wherever it runs out.
#include <string>

#include <gtest/gtest.h>
#include "schema_matcher.h"

namespace arn {
namespace {

// Each needs other tables and terms.
const char* const kSchemas[] = {
    R"({"type":["string","null"],"minLength":2,"maxLength":5,"pattern":"^a.*[0-9]$"})",
    R"({"enum":["a",1,null,[1,{"k":[]}],{"b":2,"a":[true]},"b","bc"],"not":{"enum":["b",1.0]}})",
    R"({"type":"number","minimum":-3.5,"exclusiveMaximum":1e3,"multipleOf":0.25})",
    R"({"type":"integer","not":{"anyOf":[{"minimum":5,"maximum":9},{"multipleOf":3}]}})",
    R"({"type":"array","prefixItems":[{"type":"string"},true],"items":{"type":"boolean"},
        "minItems":1,"maxItems":6,"contains":{"const":true},"minContains":2})",
    R"({"type":"array","uniqueItems":true,"items":{"enum":["a","b","c",1]}})",
    R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"format":"date-time"}},
        "required":["b"],"patternProperties":{"^x":{"minLength":1},"y$":{"type":"string"}},
        "additionalProperties":{"type":"null"},"minProperties":1,"maxProperties":4})",
    R"({"type":"object","propertyNames":{"pattern":"^[a-c]+$","not":{"const":"b"}},
        "dependentRequired":{"a":["c"]},"dependentSchemas":{"c":{"maxProperties":3}},
        "additionalProperties":{"not":{"type":["array","object"]}}})",
    R"({"if":{"properties":{"k":{"const":"n"}},"required":["k"]},
        "then":{"properties":{"v":{"type":"number"}}},"else":{"required":["w"]},
        "type":"object"})",
    R"({"oneOf":[{"type":"string","maxLength":3},{"enum":["abc","abcd"]},
        {"type":"object","required":["a"]}]})",
    R"({"$id":"http://a.example/x/y","$ref":"#/$defs/tree","$defs":{"tree":{"$id":"z#",
        "type":"object","properties":{"l":{"$ref":"../x/z"},"v":{"$anchor":"v","type":"null"},
        "w":{"$ref":"z#v"}},"additionalProperties":false}}})",
    R"({"allOf":[{"properties":{"a":{"minimum":1}}},{"properties":{"a":{"maximum":4}}},
        {"anyOf":[{"required":["a"]},{"properties":{"b":false}}]}],"type":"object"})",
    R"({"not":{"type":"object","properties":{"a":{"const":1},"b":false},"required":["a"],
        "minProperties":2}})",
    R"({"not":{"type":"array","prefixItems":[{"const":1}],"items":{"type":"string"},
        "minItems":1,"maxItems":3}})",
    R"({"not":{"contains":{"type":"integer"}},"type":"array","minItems":1})",
    R"({"anyOf":[{"format":"uuid"},{"format":"ipv4"},{"format":"email"},{"format":"date"}],
        "type":"string","not":{"pattern":"^0"}})",
    R"({"minItems":1,"maxLength":3,"minimum":2,"required":["a"],"dependentRequired":{"a":["b"]}})",
    R"({"anyOf":[{"items":{"type":"integer"},"minContains":0,"contains":{"const":1}},
        {"prefixItems":[{"enum":[1,"x",[2]]}],"items":false},{"const":[{"a":[1,{}]}]}],
        "not":{"const":[1]}})",
    R"({"properties":{"a":{"$ref":"#/$defs/n"},"b/c":{"$ref":"#/properties/a"}},"$defs":{"n":{
        "oneOf":[{"type":"integer","multipleOf":2},{"type":"number","exclusiveMinimum":10}]}},
        "propertyNames":{"maxLength":4},"additionalProperties":{"enum":["p",{"q":2}]},
        "type":"object"})",
    R"({"allOf":[{"not":{"required":["a","b"]}},{"not":{"properties":{"c":{"type":"string"}}}},
        {"if":{"minProperties":3},"then":{"maxProperties":5},"else":{"required":["c"]}}],
        "type":"object"})",
    R"({"type":["integer","array"],"minimum":1,"maximum":9,"uniqueItems":true,
        "items":{"type":"string","maxLength":2}})",
    R"({"type":"string","contentMediaType":"x","title":"\u00e9\ud83e\udd8a\n",
        "allOf":[{"pattern":"a"},{"not":{"pattern":"b"}},{"not":{"minLength":9}}]})",
};

constexpr size_t kPlenty = size_t{192} << 10;

void ExpectEverySize(bool of_tables, bool any_way) {
  for (const char* schema : kSchemas) {
    SCOPED_TRACE(schema);
    SchemaMatcher whole;
    SchemaMatcher::Options options = {any_way, any_way, any_way, 2 * kPlenty, kPlenty};
    ASSERT_EQ(Status::kOk, whole.Compile(schema, options)) << whole.error();
    const size_t enough = of_tables ? whole.table_bytes() : whole.term_bytes();
    size_t n_refused = 0;
    // Allocations are multiples of 8 bytes.
    const size_t step = of_tables ? 8 + enough / 300 / 8 * 8 : 64 + enough / 200 / 64 * 64;
    for (size_t bytes = step; bytes <= enough + 256; bytes += step) {
      options.table_bytes = of_tables ? bytes : kPlenty;
      options.block_bytes = of_tables ? 2 * kPlenty : kPlenty + bytes;
      SchemaMatcher matcher;
      const Status status = matcher.Compile(schema, options);
      if (status == Status::kOk) continue;
      ASSERT_EQ(Status::kOutOfMemory, status) << bytes << " bytes: " << matcher.error();
      ++n_refused;
    }
    EXPECT_GT(n_refused, 5u);
  }
}

TEST(JsonSchemaMemory, TablesOfEverySize) { ExpectEverySize(true, false); }
TEST(JsonSchemaMemory, TablesOfEverySize_AnySpelling) { ExpectEverySize(true, true); }
TEST(JsonSchemaMemory, TermsOfEverySize) { ExpectEverySize(false, false); }
TEST(JsonSchemaMemory, TermsOfEverySize_AnySpelling) { ExpectEverySize(false, true); }

}  // namespace
}  // namespace arn
