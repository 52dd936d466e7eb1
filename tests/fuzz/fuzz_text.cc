// libFuzzer: any bytes as text, for one tokenizer of each type.
#include "tests/fuzz/exercise_text.h"
#include "tests/fuzz/fuzz_target.h"

ARN_FUZZ_TARGET(text, nullptr) {
  std::string problem;
  arn::test::ExerciseSmallTokenizer(data, size, &problem);
  arn::test::ExpectNoProblem(problem);
}
