// libFuzzer: a regular expression and, after a NUL byte, a text.
#include "tests/fuzz/exercise_constraint.h"
#include "tests/fuzz/fuzz_target.h"

ARN_FUZZ_TARGET(regex, nullptr) {
  std::string problem;
  arn::test::ExerciseConstraint(arn::ConstraintKind::kRegex, data, size, &problem);
  arn::test::ExpectNoProblem(problem);
}
