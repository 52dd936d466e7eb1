// libFuzzer: a byte that selects format and choice, a JSON array of tools and, after a NUL byte, a
// reply. The dictionary helps: -dict=tests/fuzz/schema_dict.txt.
#include <cstdio>
#include <cstdlib>

#include "tests/fuzz/exercise_constraint.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string problem;
  arn::test::ExerciseConstraint(arn::ConstraintKind::kToolCalls, data, size, &problem);
  if (!problem.empty()) {
    std::fprintf(stderr, "%s\n", problem.c_str());
    std::abort();
  }
  return 0;
}
