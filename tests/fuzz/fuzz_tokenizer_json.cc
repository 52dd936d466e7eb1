// libFuzzer: a tokenizer.json, either raw or edited from a small one.
#include <string>
#include <vector>

#include "tests/fuzz/exercise_text.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

std::vector<std::string> TokenizerJsonSeeds() {
  std::vector<std::string> seeds;
  for (size_t i = 0; i < arn::test::SmallTokenizers().size(); ++i) {
    seeds.push_back(std::string(2, '\0') + static_cast<char>(i));
  }
  return seeds;
}

}  // namespace

ARN_FUZZ_TARGET(tokenizer_json, TokenizerJsonSeeds) {
  std::string problem;
  arn::test::ExerciseTokenizerJson(data, size, &problem);
  arn::test::ExpectNoProblem(problem);
}
