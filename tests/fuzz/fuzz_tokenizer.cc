// libFuzzer: any bytes as text, for the tokenizer of models/fable.
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

}  // namespace

ARN_FUZZ_TARGET(tokenizer, nullptr) {
  static const arn::test::ModelPtr model = MakeModel();
  std::string problem;
  arn::test::ExerciseTokenizer(model.get(), std::string(data, data + size), &problem);
  arn::test::ExpectNoProblem(problem);
}
