// libFuzzer: a byte that selects format and choice, a JSON array of tools and, after a NUL byte, a
// reply. The dictionary helps: -dict=tests/fuzz/schema_dict.txt.
#include <string>
#include <vector>

#include "tests/fuzz/exercise_constraint.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

std::vector<std::string> ToolCallsSeeds() {
  std::vector<std::string> seeds;
  for (int choice = 0; choice < 256; choice += 17) {
    seeds.push_back(static_cast<char>(choice) +
                    std::string(R"([{"type":"function","function":{"name":"f","parameters":)"
                                R"({"type":"object","properties":{"x":{"type":"integer"}}}}}])") +
                    '\0' + "hm<call>f({\"x\":1})</call>");
  }
  return seeds;
}

}  // namespace

ARN_FUZZ_TARGET(tool_calls, ToolCallsSeeds) {
  std::string problem;
  arn::test::ExerciseConstraint(arn::ConstraintKind::kToolCalls, data, size, &problem);
  arn::test::ExpectNoProblem(problem);
}
