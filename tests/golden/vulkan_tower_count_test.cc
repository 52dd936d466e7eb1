// Counts of vision towers against those of the shaders (vulkan_counts.h).
#include <string>
#include <vector>

#include <arenite/profile.h>

#include "runtime/model/model.h"
#include "tests/golden/vision_case.h"
#include "tests/golden/vulkan_counts.h"
#include "tests/support/vulkan_faults.h"

namespace arn::test {
namespace {

class VulkanTowerCountTest : public VisionGoldenTest {
 protected:
  static arn_image_options ImageOptions() {
    arn_image_options options = ARN_IMAGE_OPTIONS_INIT;
    options.backend = ARN_BACKEND_VULKAN;
    options.device = "0";
    options.n_threads = 1;
    options.trust_device = 1;  // no test of the device, whose runs would be counted
    return options;
  }
};

TEST_P(VulkanTowerCountTest, EachShader_DoesForEachTileWhatIsCounted) {
  const std::string problem = NoVulkan();
  if (!problem.empty()) GTEST_SKIP() << problem;
  const arn_image_options options = ImageOptions();
  uint32_t n_dispatches = 0;
  const auto visit = [](void* user, const arn_dispatch_cost*) { ++*static_cast<uint32_t*>(user); };
  const arn_gpu_traits gpu = ARN_GPU_TRAITS_INIT;
  char error[512] = "";
  uint32_t rows = 0;
  ASSERT_EQ(ARN_OK, arn_image_count(model_.get(), &options, &gpu, visit, &n_dispatches, error,
                                    sizeof error, &rows))
      << error;
  EXPECT_LT(0u, rows);
  EXPECT_LT(5u, n_dispatches);

  CountingDevice counting;
  const ImageEncoderPtr encoder = NewImageEncoder(model_.get(), &options);
  ASSERT_NE(nullptr, encoder);
  counting.Reset();
  EncodeOne(encoder.get(), images_[0]);
  arn_image_layout layout = ARN_IMAGE_LAYOUT_INIT;
  ASSERT_EQ(ARN_OK, arn_image_get_layout(model_.get(), images_[0].width, images_[0].height, nullptr,
                                         0, &layout));
  const Model& model = *reinterpret_cast<const Model*>(model_.get());
  const VisionSpec& vision = model.spec.vision;
  Program tower = model.vision;
  tower.max_encoder_rows = rows;
  tower.max_pooled_rows = rows / vision.merged_patches();
  CountedRun run;
  run.is_encoder = true;
  run.n_rows = layout.n_embeddings / layout.n_tiles * vision.merged_patches();
  run.part_rows = vision.window_side * vision.window_side * vision.merged_patches();
  ExpectCounts(counting, tower, run, layout.n_tiles);
}

// The tiles of an image have one size. Of its windows, those at the right edge are narrower, and
// come last.
INSTANTIATE_TEST_SUITE_P(Cases, VulkanTowerCountTest,
                         testing::Values("squares_and_whole", "mean_both_ways",
                                         "patch_budget_clamps", "patch_budget_both_ways",
                                         "pixel_budget_deepstack", "pixel_budget_windows",
                                         "token_budget"),
                         [](const auto& i) { return std::string(i.param); });

}  // namespace
}  // namespace arn::test
