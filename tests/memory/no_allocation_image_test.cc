// Checks that an image encoder, and a session that takes its embeddings, allocate nothing after
// their creation.
#include "tests/golden/vision_case.h"
#include "tests/memory/allocation_trap.h"

namespace arn::test {
namespace {

class NoAllocationImageTest : public VisionGoldenTest {};

TEST_P(NoAllocationImageTest, EncodeAndPrefill) {
  arn_image_options options = ARN_IMAGE_OPTIONS_INIT;
  options.n_threads = 2;
  const ImageEncoderPtr encoder = NewImageEncoder(model_.get(), &options);
  const SessionPtr session = NewSession(model_.get(), Options(ARN_BACKEND_CPU));
  ASSERT_NE(nullptr, session);
  arn_image_info info = ARN_IMAGE_INFO_INIT;
  ASSERT_EQ(ARN_OK, arn_image_get_info(model_.get(), &info));
  std::vector<float> rows(uint64_t{n_places()} * info.width);
  size_t at = 0;
  bool succeeded = true;
  g_calls = 0;
  g_trap = true;
  for (const RgbImage& image : images_) {
    const arn_image view = image.view();
    uint32_t n = 0;
    succeeded &=
        arn_image_encode(encoder.get(), &view, rows.data() + at, rows.size() - at, &n) == ARN_OK;
    at += size_t{n} * info.width;
  }
  for (int i = 0; i < 2; ++i) {
    succeeded &=
        arn_session_follow_embeddings(session.get(), golden_.prompt.data(), golden_.prompt.size(),
                                      rows.data(), n_places(), nullptr) == ARN_OK;
    int32_t id = -1;
    succeeded &= arn_session_decode(session.get(), &id) == ARN_OK;
  }
  g_trap = false;
  EXPECT_TRUE(succeeded);
  EXPECT_EQ(rows.size(), at);
  EXPECT_EQ(0u, g_calls.load());
}

INSTANTIATE_TEST_SUITE_P(Cases, NoAllocationImageTest,
                         testing::Values("squares_and_whole", "mean_both_ways", "pixel_budget"),
                         [](const auto& param) { return std::string(param.param); });

}  // namespace
}  // namespace arn::test
