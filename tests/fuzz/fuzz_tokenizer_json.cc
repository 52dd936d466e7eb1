// libFuzzer: a tokenizer.json, either raw or edited from a small one.
#include <cstdio>
#include <cstdlib>

#include "tests/fuzz/exercise_text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string problem;
  arn::test::ExerciseTokenizerJson(data, size, &problem);
  if (!problem.empty()) {
    std::fprintf(stderr, "%s\n", problem.c_str());
    std::abort();
  }
  return 0;
}
