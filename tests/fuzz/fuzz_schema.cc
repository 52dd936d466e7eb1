// libFuzzer: a JSON schema and, after a NUL byte, a text.
// The dictionary helps: -dict=tests/fuzz/schema_dict.txt.
#include <cstdio>
#include <cstdlib>

#include "tests/fuzz/exercise_constraint.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string problem;
  arn::test::ExerciseConstraint(arn::ConstraintKind::kJsonSchema, data, size, &problem);
  if (!problem.empty()) {
    std::fprintf(stderr, "%s\n", problem.c_str());
    std::abort();
  }
  return 0;
}
