// Every size of the memory that a schema does not fit is refused as such, wherever it runs out, and
// so is every number of steps and every amount of work.
#include <string>

#include <gtest/gtest.h>
#include "schema_costs.h"
#include "schema_matcher.h"
#include "tests/support/failing_arena.h"

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
    R"({"not":{"dependencies":{"a":["b"],"c":{"required":["d"]}},"$ref":"#/$defs/n"},
        "type":["object","array"],"propertyNames":{"enum":["a","b","c","q1","z"]},
        "$defs":{"n":{"propertyNames":{"maxLength":2},"patternProperties":{"^q":false},
        "properties":{"q1":true,"z":{"type":"null"}}}}})",
    R"({"not":{"if":{"required":["a"]},"then":{"maxProperties":2},"else":{"minProperties":1}},
        "type":"object","minProperties":2,"properties":{"a":true,"b":true,"c":true},
        "additionalProperties":false})",
    R"({"not":{"oneOf":[{"type":"array"},{"minItems":2}],"uniqueItems":false,"contains":{
        "const":[1]},"maxContains":3},"type":"array"})",
    R"({"dependencies":{"a":["b"],"c":{"properties":{"d":{"type":"integer","format":"int32"}}}},
        "type":"object","propertyNames":{"enum":["a","b","c","d"]}})",
    R"({"$schema":"http://json-schema.org/draft-04/schema#","id":"http://a/b","type":"number",
        "minimum":1,"exclusiveMinimum":true,"maximum":7.5,"not":{"enum":[2,3]}})",
    R"({"oneOf":[{"properties":{"k":{"const":"a"}},"required":["k"],"type":"object"},
        {"properties":{"k":{"enum":["b",1.5]}},"required":["k"],"type":"object"},
        {"type":"object","allOf":[{"$ref":"#/$defs/c"}]}],"$defs":{"c":{"properties":{"k":{
        "const":1}},"required":["k"]}}})",
    R"({"type":"object","minProperties":3,"propertyNames":{"pattern":"^[a-z]{1,2}$"},
        "properties":{"a":{"type":"null"},"c":true,"d":{"type":"integer"}},
        "not":{"additionalProperties":{"type":"string"},"properties":{"a":true,"b":true},
        "patternProperties":{"^b$":{"type":"null"}}},"additionalProperties":false})",
    R"({"type":"object","minProperties":3,"propertyNames":{"pattern":"^[a-z]{1,2}$"},
        "properties":{"a":{"type":"null"}},"patternProperties":{"^b":{"type":"boolean"}}})",
    R"({"type":["array","null"],"uniqueItems":true,"items":{"type":"string","pattern":"^a$",
        "minLength":2}})",
    R"({"type":"array","uniqueItems":true,"items":{"enum":["a","b"]},"allOf":[
        {"items":{"maxLength":1}},{"items":{"maxLength":2}},{"items":{"maxLength":3}}]})",
    R"({"type":"string","allOf":[{"minLength":1},{"minLength":2},{"minLength":3},{"minLength":4},
        {"minLength":5},{"maxLength":6},{"maxLength":7},{"maxLength":8},{"maxLength":9}]})",
    R"({"not":{"oneOf":[{"minimum":1,"maximum":9},{"minimum":2},{"minimum":3,"multipleOf":2},
        {"minimum":4},{"maximum":5},{"maximum":6}]},"type":"integer"})",
    R"({"type":"array","uniqueItems":true,"minItems":2,"items":{"pattern":"^[ab]+$",
        "type":"string"}})",
    R"({"not":{"enum":[[1],[2],{"a":1},[3],[4],[5],{"b":1,"c":2,"d":3,"e":4,"f":5}]},
        "type":["array","object"],"maxItems":1,"maxProperties":5})",
    R"({"enum":[[1],[2],[3],[4],[5],{"a":1,"b":2,"c":3,"d":4,"e":5}]})",
    R"({"not":{"allOf":[{"minimum":1},{"minimum":2},{"minimum":3},{"minimum":4},{"minimum":5}]},
        "type":"integer"})",
    R"({"not":{"oneOf":[{"minimum":1},{"minimum":2},{"minimum":3},{"minimum":4},{"maximum":5}]},
        "type":"integer"})",
    R"({"enum":[-3,-2,-1,0]})",
    R"({"$schema":"http://json-schema.org/draft-07/schema#","$ref":"#b","definitions":{
        "1":{"$id":"#a"},"2":{"$id":"#b","type":"null"},"3":{"$id":"#c"},"4":{"$id":"#d"},
        "5":{"$id":"#e"},"6":{"$id":"f"},"7":{"$id":"g"},"8":{"$id":"h"},"9":{"$id":"i"},
        "10":{"$id":"j"}}})",
    R"({"type":"object","not":{"propertyNames":{"not":{"enum":["a","b","c","d","e"]}}},
        "additionalProperties":false,"properties":{"a":true},"patternProperties":{"^b":true,
        "^c":true}})",
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
    const size_t step = 8 + enough / 300 / 8 * 8;
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

// The n-th allocation fails alone, which no size of the tables brings about: what was allocated
// before it may have been given back.
void ExpectEveryAllocation(bool any_way) {
  const SchemaMatcher::Options options = {any_way, any_way, any_way, 3 * kPlenty, kPlenty};
  for (const char* schema : kSchemas) {
    SCOPED_TRACE(schema);
    SchemaMatcher matcher;
    uint64_t n = 0;
    for (;; n += 1 + n / 200) {
      const test::FailingAllocation failing(n);
      const Status status = matcher.Compile(schema, options);
      if (!failing.has_failed()) {
        ASSERT_EQ(Status::kOk, status) << matcher.error();
        break;
      }
      // What is only looked at to save work may do without.
      if (status == Status::kOk) continue;
      ASSERT_EQ(Status::kOutOfMemory, status) << n << ": " << matcher.error();
    }
    EXPECT_GT(n, 20u);
  }
}

TEST(JsonSchemaMemory, AnyAllocationFails) { ExpectEveryAllocation(false); }
TEST(JsonSchemaMemory, AnyAllocationFails_AnySpelling) { ExpectEveryAllocation(true); }

// Terms that fail, at whichever cell, end the compilation with their reason: those of a cancel look
// like this, too.
void ExpectEveryAmountOfWork(bool any_way) {
  for (const char* schema : kSchemas) {
    SCOPED_TRACE(schema);
    SchemaMatcher::Options options = {any_way, any_way, any_way, 3 * kPlenty, kPlenty};
    for (options.max_work = 0;; options.max_work += 1 + options.max_work / 150) {
      SchemaMatcher matcher;
      const Status status = matcher.Compile(schema, options);
      if (status == Status::kOk) break;
      ASSERT_EQ(Status::kUnsupported, status) << options.max_work << ": " << matcher.error();
      ASSERT_NE(std::string(matcher.error()).find("was put off"), std::string::npos)
          << options.max_work << ": " << matcher.error();
    }
    EXPECT_GT(options.max_work, 5u);
  }
}

TEST(JsonSchemaMemory, EveryAmountOfWork) { ExpectEveryAmountOfWork(false); }
TEST(JsonSchemaMemory, EveryAmountOfWork_AnySpelling) { ExpectEveryAmountOfWork(true); }

TEST(JsonSchemaMemory, EveryNumberOfSteps) {
  for (const char* schema : kSchemas) {
    SCOPED_TRACE(schema);
    SchemaMatcher::Options options = {true, true, true, 3 * kPlenty, kPlenty};
    uint64_t steps = 0;
    for (;; steps += 1 + steps / 200) {
      options.max_steps = steps;
      SchemaMatcher matcher;
      const Status status = matcher.Compile(schema, options);
      if (status == Status::kOk) break;
      ASSERT_EQ(Status::kUnsupported, status) << steps << ": " << matcher.error();
      ASSERT_NE(std::string(matcher.error()).find("too many"), std::string::npos)
          << steps << ": " << matcher.error();
    }
    EXPECT_GT(steps, 5u);
  }
}

// What each costs is in the list of costs.
TEST(JsonSchemaMemory, Costs) {
  for (const char* schema : kSchemas) {
    for (const bool any_way : {false, true}) {
      const SchemaMatcher::Options options = {any_way, any_way, any_way, 3 * kPlenty, kPlenty};
      SchemaMatcher matcher;
      ASSERT_EQ(Status::kOk, matcher.Compile(schema, options)) << matcher.error();
      SchemaCosts::Expect(schema, options, matcher.term_bytes(), 0);
    }
  }
}

}  // namespace
}  // namespace arn
