// Youtu's padding token: transformers 5.12 zeroes its row of the embedding, which is the output
// matrix too, after a checkpoint is loaded (modeling_youtu.py, YoutuPreTrainedModel._init_weights).
#include <algorithm>

#include "tests/golden/golden_case.h"

namespace arn::test {
namespace {

TEST(PaddingRow, OfYoutu_IsZerosWhateverTheCheckpointHas) {
  ARN_NEEDS_CONVERTER();
  constexpr int32_t kPadding = 508;
  GoldenCase golden = LoadGolden("latent_attention_halves");
  const std::vector<int32_t> ids = golden.all_ids();
  ASSERT_EQ(0, std::count(ids.begin(), ids.end(), kPadding));
  const TempFolder folder;
  std::vector<float> logits[2];
  for (const bool has_padding : {false, true}) {
    if (has_padding) golden.config["pad_token_id"] = kPadding;
    const std::filesystem::path bundle = folder / (has_padding ? "padding.arn" : "none.arn");
    ASSERT_TRUE(ConvertGolden(golden, ConfigStyle::kTransformers5, folder / "checkpoint", bundle,
                              {"--weights", "f32"}));
    const ModelPtr model = OpenModel(bundle);
    ASSERT_NE(nullptr, model);
    const SessionPtr session = NewSession(model.get(), GoldenOptions(ARN_BACKEND_CPU, 64));
    ASSERT_NE(nullptr, session);
    logits[has_padding] = AllLogits(session.get(), golden.vocab(), 64, ids);
    ASSERT_EQ(ids.size() * golden.vocab(), logits[has_padding].size());
  }
  for (size_t i = kPadding; i < logits[0].size(); i += golden.vocab()) {
    EXPECT_NE(0.0f, logits[0][i]);
    logits[0][i] = 0.0f;
  }
  EXPECT_EQ(logits[0], logits[1]);
}

}  // namespace
}  // namespace arn::test
