// libFuzzer: any bytes as text, for one tokenizer of each type.
#include <string>
#include <vector>

#include "tests/fuzz/exercise_text.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

std::vector<std::string> TextSeeds() {
  std::vector<std::string> seeds;
  const size_t n_tokenizers = arn::test::SmallTokenizers().size() + 4;
  for (size_t i = 0; i < n_tokenizers; ++i) {
    seeds.push_back(static_cast<char>(i) +
                    std::string("Once upon a time, the fox's den 123 caf\xC3\xA9 <s>x</s>[CLS] "
                                "\xE2\x96\x81\xEF\xBC\xA1\xCC\x81\xF0\x9F\xA6\x8A\r\n\t\x01\xFF."));
  }
  return seeds;
}

}  // namespace

ARN_FUZZ_TARGET(text, TextSeeds) {
  std::string problem;
  arn::test::ExerciseSmallTokenizer(data, size, &problem);
  arn::test::ExpectNoProblem(problem);
}
