// libFuzzer: any bytes as text, for the tokenizer of models/fable.
#include <string>
#include <vector>

#include "tests/fuzz/exercise.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/harness/bundles.h"
#include "tests/support/tiny_checkpoint.h"

namespace {

arn::test::ModelPtr MakeModel() {
  const arn::test::TempFolder folder;
  if (!arn::test::Convert(arn::test::SourcePath("models/fable/fable-2m"), folder / "t.arn",
                          {"--tokenizer-only"})) {
    arn::test::EndFuzzing("arenite-convert does not run here");
  }
  return arn::test::OpenModel(folder / "t.arn");
}

std::vector<std::string> TokenizerSeeds() {
  return {"Once upon a time, the fox's den 123 caf\xC3\xA9",
          " \r\n\t\x01\xFF<|im_end|>\xF0\x9F\xA6\x8A"};
}

}  // namespace

ARN_FUZZ_TARGET(tokenizer, TokenizerSeeds) {
  static const arn::test::ModelPtr model = MakeModel();
  std::string problem;
  arn::test::ExerciseTokenizer(model.get(), std::string(data, data + size), &problem);
  arn::test::ExpectNoProblem(problem);
}
