// libFuzzer: any bytes as text, for the tokenizer of models/fable.
#include <cstdio>
#include <cstdlib>

#include "tests/fuzz/exercise.h"
#include "tests/harness/bundles.h"
#include "tests/support/tiny_checkpoint.h"

namespace {

arn::test::ModelPtr MakeModel() {
  const arn::test::TempFolder folder;
  if (!arn::test::Convert(arn::test::SourcePath("models/fable/fable-2m"), folder / "t.arn",
                          {"--tokenizer-only"})) {
    std::fprintf(stderr, "arenite-convert does not run here\n");
    std::exit(1);
  }
  return arn::test::OpenModel(folder / "t.arn");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const arn::test::ModelPtr model = MakeModel();
  std::string problem;
  arn::test::ExerciseTokenizer(model.get(), std::string(data, data + size), &problem);
  if (!problem.empty()) {
    std::fprintf(stderr, "%s\n", problem.c_str());
    std::abort();
  }
  return 0;
}
