// libFuzzer: a byte that selects format and choice, a JSON array of tools and, after a NUL byte, a
// reply. The dictionary helps: -dict=tests/fuzz/schema_dict.txt.
#include "tests/fuzz/exercise_constraint.h"
#include "tests/fuzz/fuzz_target.h"

ARN_FUZZ_TARGET(tool_calls, nullptr) {
  std::string problem;
  arn::test::ExerciseConstraint(arn::ConstraintKind::kToolCalls, data, size, &problem);
  arn::test::ExpectNoProblem(problem);
}
