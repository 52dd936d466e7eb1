// Bundles with a vision tower and one changed byte of the index: an error or a correct run, never a
// crash. The changes are the same in every run.
#include <cstring>

#include "runtime/bundle/bundle.h"
#include "tests/fuzz/exercise.h"
#include "tests/golden/vision_case.h"
#include "tests/harness/bundles.h"
#include "tests/support/tiny_bundle.h"

namespace arn::test {
namespace {

constexpr uint32_t kStride = 7;  // between the bytes that change

class VisionDamageTest : public VisionGoldenTest {};

TEST_P(VisionDamageTest, ChangedIndex_NeverCrashes) {
  const std::vector<uint8_t> file = ReadFile(folder_ / "model.arn");
  const BundleBytes whole(file);
  std::string problem;
  EXPECT_EQ(Outcome::kRan, ExerciseBundle(whole.data(), whole.size(), &problem));
  EXPECT_EQ("", problem);
  BundleHeader header;
  std::memcpy(&header, file.data(), sizeof header);
  uint32_t n_ran = 0, n_refused = 0;
  for (uint64_t k = 0; k < header.index_bytes; k += kStride) {
    std::vector<uint8_t> damaged = file;
    // Each bit in turn, and now and then all of them.
    damaged[header.index_offset + k] ^= k % 5 == 0 ? 0xFF : 1u << (k / kStride % 8);
    RepairHashes(damaged.data(), damaged.size());
    const BundleBytes aligned(damaged);
    const Outcome outcome = ExerciseBundle(aligned.data(), aligned.size(), &problem);
    ASSERT_EQ("", problem) << "byte " << k << " of the index";
    ++(outcome == Outcome::kRan ? n_ran : n_refused);
  }
  EXPECT_GT(n_ran, 0u);
  EXPECT_GT(n_refused, 0u);
}

INSTANTIATE_TEST_SUITE_P(Cases, VisionDamageTest,
                         testing::Values("squares_and_whole", "mean_both_ways", "token_budget",
                                         "pixel_budget_deepstack", "pixel_budget_windows",
                                         "patch_budget_clamps"),
                         [](const auto& param) { return std::string(param.param); });

}  // namespace
}  // namespace arn::test
