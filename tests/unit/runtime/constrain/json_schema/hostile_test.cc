// Schemas made to take time or memory: each ends with a clear error or a constraint, within the
// block and in 100 ms a kilobyte.
#include <string>

#include <gtest/gtest.h>
#include "schema_matcher.h"
#include "tests/support/test_time.h"

namespace arn {
namespace {

std::string Repeated(const std::string& text, int n) {
  std::string all;
  for (int i = 0; i < n; ++i) all += text;
  return all;
}

// text with each '#' replaced by 0 to n - 1, separated by commas.
std::string List(const std::string& text, int n) {
  std::string all;
  for (int i = 0; i < n; ++i) {
    if (i > 0) all += ',';
    for (const char c : text) {
      if (c == '@') {
        all += std::to_string(i);
      } else {
        all += c;
      }
    }
  }
  return all;
}

class HostileSchemaTest : public testing::TestWithParam<size_t> {};

TEST_P(HostileSchemaTest, EndsInTimeWithAnErrorOrAConstraint) {
  std::string chain = R"({"$ref":"#/$defs/d20","$defs":{"d0":{"type":"string"})";
  for (int i = 1; i <= 20; ++i) {
    const std::string ref = R"({"$ref":"#/$defs/d)" + std::to_string(i - 1) + R"("})";
    chain += ",\"d" + std::to_string(i) + "\":{\"anyOf\":[" + ref + "," + ref + "]}";
  }
  chain += "}}";
  const std::string schemas[] = {
      Repeated("{\"items\":", 200) + "{}" + Repeated("}", 200),
      Repeated("{\"not\":", 250) + "{}" + Repeated("}", 250),
      Repeated("{\"items\":", 100'000),
      Repeated("[", 100'000),
      "{\"anyOf\":[" + List("{\"const\":\"value @\"}", 100'000) + "]}",
      "{\"enum\":[" + List("\"value @\"", 100'000) + "]}",
      "{\"enum\":[" + List("@", 100'000) + "]}",
      "{\"not\":{\"enum\":[" + List("@", 10'000) + "]}}",
      "{\"oneOf\":[" + List("{\"required\":[\"k@\"]}", 1'000) + "]}",
      "{\"oneOf\":[" +
          List("{\"properties\":{\"a\":{\"minimum\":@},\"b@\":{\"maxLength\":@}}}", 30) + "]}",
      "{\"allOf\":[" +
          List("{\"anyOf\":[{\"minLength\":@},{\"minimum\":@},{\"minItems\":@}]}", 30) + "]}",
      "{\"allOf\":[" +
          List("{\"if\":{\"properties\":{\"p@\":{\"const\":1}}},\"then\":{\"required\":[\"q@\"]}}",
               30) +
          "]}",
      "{\"allOf\":[" + List("{\"pattern\":\"a.{@}b\"}", 30) + "]}",
      "{\"dependentRequired\":{" + List("\"p@\":[\"q@\"]", 30) + "}}",
      "{\"patternProperties\":{" + List("\"a@|b\":{\"minimum\":@}", 30) + "}}",
      "{\"properties\":{" + List("\"p@\":{\"type\":\"string\"}", 100'000) + "}}",
      "{\"required\":[" + List("\"p@\"", 10'000) + "]}",
      "{\"prefixItems\":[" + List("{\"const\":@}", 10'000) + "]}",
      chain,
      "{\"minimum\":" + Repeated("9", 100'000) + "}",
      "{\"minimum\":" + Repeated("9", 900) + "}",
      "{\"minimum\":1e999999999}",
      "{\"type\":\"string\",\"minLength\":4000000000}",
      "{\"type\":\"string\",\"minLength\":100000000000000000000}",
      "{\"type\":\"string\",\"minLength\":100000000,\"pattern\":\"^a*$\"}",
      "{\"type\":\"array\",\"minItems\":4000000000}",
      "{\"allOf\":[" + List("{\"multipleOf\":1@}", 9) + "]}",
      "{\"pattern\":\"((a{1000}){1000}){1000}\"}",
      "{\"pattern\":\"(a|aa)*(a|aa)*(a|aa)*b{0,1000}c\"}",
      "{\"$ref\":\"#/a/b/c\"}",
  };
  for (const std::string& schema : schemas) {
    SchemaMatcher matcher;
    const double start = test::ThreadSeconds();
    const Status status = matcher.Compile(schema, {.block_bytes = GetParam()});
    const double time = test::ThreadSeconds() - start;
    const std::string what = schema.substr(0, 60);
    const double kilobytes = std::max(1.0, static_cast<double>(schema.size()) / 1024.0);
    // A tenth of a second a kilobyte, and as much a megabyte of the block to fill.
    const double megabytes = static_cast<double>(GetParam()) / (1 << 20);
    EXPECT_LT(time, 0.1 * test::kSlowdown * (kilobytes + megabytes)) << what;
    if (status != Status::kOk) {
      EXPECT_NE("", std::string(matcher.error())) << what;
      EXPECT_NE(Status::kInternal, status) << what;
      continue;
    }
    // What is compiled can be used, or says that the block is full.
    matcher.Accepts("{\"p1\":[1,[\"value 77\"]],\"q1\":1}");
    matcher.Accepts("[[[\"aaaaaaaaaaaaaaaab\"]]]");
    matcher.Accepts("\"value 77\"");
  }
}

INSTANTIATE_TEST_SUITE_P(Blocks, HostileSchemaTest,
                         testing::Values(size_t{256} << 10, size_t{1} << 20, size_t{16} << 20),
                         [](const testing::TestParamInfo<size_t>& block) {
                           return std::to_string(block.param >> 10) + "KiB";
                         });

}  // namespace
}  // namespace arn
