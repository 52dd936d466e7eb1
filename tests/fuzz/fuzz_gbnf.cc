// libFuzzer: a grammar in GBNF and, after a NUL byte, a text.
#include "tests/fuzz/exercise_constraint.h"
#include "tests/fuzz/fuzz_target.h"

ARN_FUZZ_TARGET(gbnf, nullptr) {
  std::string problem;
  arn::test::ExerciseConstraint(arn::ConstraintKind::kGrammar, data, size, &problem);
  arn::test::ExpectNoProblem(problem);
}
