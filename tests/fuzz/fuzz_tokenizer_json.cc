// libFuzzer: a tokenizer.json, either raw or edited from a small one.
#include "tests/fuzz/exercise_text.h"
#include "tests/fuzz/fuzz_target.h"

ARN_FUZZ_TARGET(tokenizer_json, nullptr) {
  std::string problem;
  arn::test::ExerciseTokenizerJson(data, size, &problem);
  arn::test::ExpectNoProblem(problem);
}
