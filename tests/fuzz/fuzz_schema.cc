// libFuzzer: a JSON schema and, after a NUL byte, a text.
// The dictionary helps: -dict=tests/fuzz/schema_dict.txt.
#include <string>
#include <vector>

#include "tests/fuzz/exercise_constraint.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

std::vector<std::string> SchemaSeeds() {
  const auto seed = [](const std::string& schema, const std::string& text) {
    return schema + '\0' + text;
  };
  return {
      seed(
          R"({"type":"object","properties":{"a":{"type":"integer","minimum":0},"b":{"$ref":"#"}}})",
          R"({"a":10,"b":{}})"),
      seed(R"({"oneOf":[{"enum":["a",1.5,[]]},{"not":{"type":"string"},"maxItems":2}]})", "1.5"),
      seed(R"({"items":{"anyOf":[{"const":19},{"pattern":"^a{2}"}]},"contains":{"minLength":1}})",
           R"([19,"aab"])"),
      seed(R"({"patternProperties":{"^a":false},"required":["b"],"if":{"minProperties":2}})",
           R"({"b":null})"),
      seed(R"({"type":"string","format":"date-time"})", "\"2024-02-29T00:00:00Z\""),
      seed(R"({"type":"number","multipleOf":0.25,"exclusiveMaximum":1e3})", "0.75")};
}

}  // namespace

ARN_FUZZ_TARGET(schema, SchemaSeeds) {
  std::string problem;
  arn::test::ExerciseConstraint(arn::ConstraintKind::kJsonSchema, data, size, &problem);
  arn::test::ExpectNoProblem(problem);
}
