// libFuzzer: any bytes as a SentencePiece model.
#include "tests/fuzz/exercise_text.h"
#include "tests/fuzz/fuzz_target.h"

ARN_FUZZ_TARGET(sentencepiece, nullptr) {
  std::string problem;
  arn::test::ExerciseSentencePiece(data, size, &problem);
  arn::test::ExpectNoProblem(problem);
}
