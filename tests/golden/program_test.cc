// The Program text of some decoders against data/NAME.program.txt, the output of
//   arenite inspect NAME.arn --program --context 64 --prefill-chunk 16
// After an intended change, review the difference and replace the file.
#include "tests/golden/golden_case.h"

namespace arn::test {
namespace {

class ProgramTest : public testing::TestWithParam<const char*> {};

TEST_P(ProgramTest, Dump_IsTheGoldenText) {
  ARN_NEEDS_CONVERTER();
  const GoldenCase golden = LoadGolden(GetParam());
  const TempFolder folder;
  ASSERT_TRUE(ConvertGolden(golden, ConfigStyle::kTransformers5, folder / "checkpoint",
                            folder / "model.arn", {"--weights", "f32"}));
  const ModelPtr model = OpenModel(folder / "model.arn");
  ASSERT_NE(nullptr, model);
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.context_tokens = 64;
  options.prefill_chunk = 16;
  size_t bytes = 0;
  ASSERT_EQ(ARN_BUFFER_TOO_SMALL, arn_program_dump(model.get(), &options, nullptr, 0, &bytes));
  std::string text(bytes, '\0');
  ASSERT_EQ(ARN_OK, arn_program_dump(model.get(), &options, text.data(), text.size(), &bytes));
  ASSERT_EQ(text.size(), bytes);
  const std::string path = std::string("tests/golden/data/") + GetParam() + ".program.txt";
  EXPECT_EQ(ReadText(SourcePath(path)), text);
}

INSTANTIATE_TEST_SUITE_P(Cases, ProgramTest,
                         testing::Values("qk_norm", "window_from_layer", "scan",
                                         "short_convolutions", "delta_rule", "parallel_heads"),
                         [](const testing::TestParamInfo<const char*>& p) {
                           return std::string(p.param);
                         });

}  // namespace
}  // namespace arn::test
