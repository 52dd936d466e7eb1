// The golden cases on the Vulkan backend: transformers' logits and greedy tokens with float weights
// and a float cache, the reference backend's logits with quantised ones.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

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

  // Returns null after a test failure, or if the test is skipped without a driver.
  SessionPtr Create(const arn_session_options& options) {
    arn_session* session = nullptr;
    char error[512] = "";
    const arn_status status =
        arn_session_create(model_.get(), &options, nullptr, 0, error, sizeof error, &session);
    SkipOrFail(status, error);
    return SessionPtr(session);
  }

  static void SkipOrFail(arn_status status, const char* error) {
    if (status == ARN_UNSUPPORTED && HasNoVulkan(error)) GTEST_SKIP() << error;
    ASSERT_EQ(ARN_OK, status) << error;
  }

  TempFolder folder_;
  GoldenCase golden_;
  ModelPtr model_;
};

TEST_P(VulkanGoldenTest, FloatWeights_GiveTheReferencesLogitsAndTokens) {
  Open({"--weights", "f32"});
  const std::vector<int32_t> ids = golden_.all_ids();
  for (const uint32_t chunk : {1u, 7u, 64u}) {
    SCOPED_TRACE(chunk);
    const SessionPtr session = Create(Options(ARN_BACKEND_VULKAN, ARN_KV_F32, chunk));
    if (session == nullptr) return;
    const std::vector<float> logits = AllLogits(session.get(), golden_.vocab(), chunk, ids);
    ASSERT_EQ(ids.size() * golden_.vocab(), logits.size());
    for (size_t i = 0; i < ids.size(); ++i) {
      ExpectLogits(golden_, i, logits.data() + i * golden_.vocab(), kTolerance);
    }
    ASSERT_EQ(ARN_OK, arn_session_reset(session.get()));
    const auto max_tokens = static_cast<uint32_t>(golden_.greedy.size());
    EXPECT_EQ(golden_.greedy, GenerateGreedy(session.get(), golden_.prompt, max_tokens,
                                             /*ignore_eos=*/true)
                                  .ids);
  }
}

// An int8 value may round to the other of two steps (docs/architecture.md).
TEST_P(VulkanGoldenTest, QuantisedWeightsAndCaches_GiveTheReferenceBackendsLogits) {
  const std::vector<int32_t> ids = golden_.all_ids();
  const std::pair<const char*, uint32_t> cases[] = {
      {"int8", ARN_KV_INT8}, {"int4", ARN_KV_INT4}, {"int4", ARN_KV_F16}};
  for (const auto& [weights, kv] : cases) {
    SCOPED_TRACE(testing::Message() << weights << ", kv " << kv);
    Open({"--weights", weights});
    std::vector<float> logits[2];
    const uint32_t backends[2] = {ARN_BACKEND_VULKAN, ARN_BACKEND_REFERENCE};
    for (uint32_t b = 0; b < 2; ++b) {
      const SessionPtr session = Create(Options(backends[b], kv, 16));
      if (session == nullptr) return;
      logits[b] = AllLogits(session.get(), golden_.vocab(), 16, ids);
    }
    ASSERT_EQ(logits[0].size(), logits[1].size());
    float largest = 0.0f, worst = 0.0f;
    for (size_t i = 0; i < logits[0].size(); ++i) {
      ASSERT_FALSE(std::isnan(logits[0][i]));
      largest = std::max(largest, std::fabs(logits[1][i]));
      worst = std::max(worst, std::fabs(logits[0][i] - logits[1][i]));
    }
    EXPECT_LE(worst, 0.05f * largest);
  }
}

// Models with a step that has no shader are refused with a reason. ARN_BACKEND_AUTO runs them on
// the CPU, whatever the device.
class VulkanRefusalTest : public VulkanGoldenTest {};

TEST_P(VulkanRefusalTest, StepsWithoutAShader_AreRefusedAndRunOnTheCpu) {
  Open({"--weights", "f32"});
  const arn_session_options options = Options(ARN_BACKEND_VULKAN, ARN_KV_F32, 16);
  arn_session* refused = nullptr;
  char error[512] = "";
  EXPECT_EQ(ARN_UNSUPPORTED,
            arn_session_create(model_.get(), &options, nullptr, 0, error, sizeof error, &refused));
  EXPECT_EQ(nullptr, refused);
  EXPECT_TRUE(HasNoVulkan(error) || std::string(error).find("has no shader") != std::string::npos)
      << error;
  const std::vector<int32_t> ids = golden_.all_ids();
  const SessionPtr session = NewSession(model_.get(), Options(ARN_BACKEND_AUTO, ARN_KV_F32, 16));
  ASSERT_NE(nullptr, session);
  const std::vector<float> logits = AllLogits(session.get(), golden_.vocab(), 16, ids);
  ASSERT_EQ(ids.size() * golden_.vocab(), logits.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    ExpectLogits(golden_, i, logits.data() + i * golden_.vocab(), kTolerance);
  }
}

// Cases with linear attention.
constexpr const char* kRefused[] = {
    "delta_rule",   "delta_rule_fused", "delta_rule_odd",          "hybrid_indices",
    "hybrid_types", "linear_attention", "linear_attention_limits", "parallel_heads",
    "single_blocks"};

std::vector<std::string> NamesWith(bool is_refused) {
  std::vector<std::string> names;
  for (const std::string& name : GoldenNames()) {
    const bool is_listed =
        std::find(std::begin(kRefused), std::end(kRefused), name) != std::end(kRefused);
    if (is_listed == is_refused) names.push_back(name);
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Cases, VulkanGoldenTest, testing::ValuesIn(NamesWith(false)),
                         [](const auto& p) { return p.param; });
INSTANTIATE_TEST_SUITE_P(Cases, VulkanRefusalTest, testing::ValuesIn(NamesWith(true)),
                         [](const auto& p) { return p.param; });

}  // namespace
}  // namespace arn::test
