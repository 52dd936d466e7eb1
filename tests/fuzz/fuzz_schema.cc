// libFuzzer: a JSON schema and, after a NUL byte, a text.
// The dictionary helps: -dict=tests/fuzz/schema_dict.txt.
#include "tests/fuzz/exercise_constraint.h"
#include "tests/fuzz/fuzz_target.h"

ARN_FUZZ_TARGET(schema, nullptr) {
  std::string problem;
  arn::test::ExerciseConstraint(arn::ConstraintKind::kJsonSchema, data, size, &problem);
  arn::test::ExpectNoProblem(problem);
}
