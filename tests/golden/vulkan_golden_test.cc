// The golden cases on the Vulkan backend: transformers' logits and greedy tokens with float weights
// and a float cache, and with quantised ones what the reference backend makes of them.
#include <algorithm>
#include <cmath>

#include "tests/golden/golden_case.h"
#include "tests/golden/vulkan_reason.h"

namespace arn::test {
namespace {

constexpr double kTolerance = 2e-4;

class VulkanGoldenTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    ARN_NEEDS_CONVERTER();
    golden_ = LoadGolden(GetParam());
    Open({"--weights", "f32"});
    arn_session* session = nullptr;
    char error[512] = "";
    arn_session_options options = Options(ARN_BACKEND_VULKAN, ARN_KV_F32, 16);
    const arn_status status =
        arn_session_create(model_.get(), &options, nullptr, 0, error, sizeof error, &session);
    arn_session_destroy(session);
    if (status == ARN_UNSUPPORTED && HasNoVulkan(error)) GTEST_SKIP() << error;
    ASSERT_EQ(ARN_OK, status) << error;
  }

  void Open(const std::vector<std::string>& convert) {
    ASSERT_TRUE(ConvertGolden(golden_, ConfigStyle::kTransformers5, folder_ / "checkpoint",
                              folder_ / "model.arn", convert));
    model_ = OpenModel(folder_ / "model.arn");
    ASSERT_NE(nullptr, model_);
  }

  arn_session_options Options(uint32_t backend, uint32_t kv, uint32_t chunk) const {
    arn_session_options options = ARN_SESSION_OPTIONS_INIT;
    options.backend = backend;
    options.kv_type = kv;
    options.prefill_chunk = chunk;
    options.n_threads = 1;
    options.all_logits = 1;
    options.trust_device = 1;
    return options;
  }

  std::vector<float> Logits(uint32_t backend, uint32_t kv) {
    const SessionPtr session = NewSession(model_.get(), Options(backend, kv, 16));
    return AllLogits(session.get(), golden_.vocab(), 16, golden_.all_ids());
  }

  TempFolder folder_;
  GoldenCase golden_;
  ModelPtr model_;
};

TEST_P(VulkanGoldenTest, Prefill_GivesTheReferencesLogits) {
  const std::vector<int32_t> ids = golden_.all_ids();
  for (const uint32_t chunk : {1u, 7u, 64u}) {
    SCOPED_TRACE(chunk);
    const SessionPtr session =
        NewSession(model_.get(), Options(ARN_BACKEND_VULKAN, ARN_KV_F32, chunk));
    ASSERT_NE(nullptr, session);
    const std::vector<float> logits = AllLogits(session.get(), golden_.vocab(), chunk, ids);
    ASSERT_EQ(ids.size() * golden_.vocab(), logits.size());
    for (size_t i = 0; i < ids.size(); ++i) {
      ExpectLogits(golden_, i, logits.data() + i * golden_.vocab(), kTolerance);
    }
  }
}

TEST_P(VulkanGoldenTest, Generate_GivesTheReferencesTokens) {
  const SessionPtr session = NewSession(model_.get(), Options(ARN_BACKEND_VULKAN, ARN_KV_F32, 0));
  ASSERT_NE(nullptr, session);
  const auto max_tokens = static_cast<uint32_t>(golden_.greedy.size());
  const Generated generated =
      GenerateGreedy(session.get(), golden_.prompt, max_tokens, /*ignore_eos=*/true);
  EXPECT_EQ(golden_.greedy, generated.ids);
}

// An int8 value may fall on the other side of a border between two steps (docs/architecture.md).
TEST_P(VulkanGoldenTest, QuantisedWeightsAndCaches_GiveTheReferenceBackendsLogits) {
  for (const char* weights : {"int8", "int4"}) {
    Open({"--weights", weights});
    for (const uint32_t kv : {ARN_KV_F16, ARN_KV_INT8, ARN_KV_INT4}) {
      SCOPED_TRACE(testing::Message() << weights << ", kv " << kv);
      const std::vector<float> expected = Logits(ARN_BACKEND_REFERENCE, kv);
      const std::vector<float> found = Logits(ARN_BACKEND_VULKAN, kv);
      ASSERT_EQ(expected.size(), found.size());
      float largest = 0.0f, worst = 0.0f;
      for (size_t i = 0; i < found.size(); ++i) {
        ASSERT_FALSE(std::isnan(found[i]));
        largest = std::max(largest, std::fabs(expected[i]));
        worst = std::max(worst, std::fabs(found[i] - expected[i]));
      }
      EXPECT_LE(worst, 0.05f * largest);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, VulkanGoldenTest, testing::ValuesIn(GoldenNames()),
                         [](const auto& p) { return p.param; });

}  // namespace
}  // namespace arn::test
