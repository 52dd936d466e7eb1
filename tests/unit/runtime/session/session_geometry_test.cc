// The geometry of a real small model (SmolLM2-135M) on the GPU: 30 layers and its matrix sizes.
// Uses bf16 weights and an f32 cache: with integer matmuls, values that round the other way make
// any two backends differ (docs/vulkan.md), and random weights leave the top two tokens close.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/session_support.h"
#include "tests/support/vulkan_faults.h"

namespace arn::test {
namespace {

constexpr uint32_t kVocab = 49152;

struct Choice {
  std::vector<int32_t> tokens;
  std::vector<std::vector<float>> logits;  // before each choice
};

Choice Greedy16(const arn_model* model, uint32_t backend) {
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.backend = backend;
  options.kv_type = ARN_KV_F32;
  options.context_tokens = 64;
  options.trust_device = 1;
  const SessionPtr session = NewSession(model, options);
  const std::vector<int32_t> ids = SomeIds(21, kVocab);
  EXPECT_EQ(ARN_OK, arn_session_prefill(session.get(), ids.data(), ids.size()));
  Choice choice;
  for (int i = 0; i < 16; ++i) {
    const float* logits = nullptr;
    int32_t id = 0;
    EXPECT_EQ(ARN_OK, arn_session_logits(session.get(), &logits));
    choice.logits.emplace_back(logits, logits + kVocab);
    EXPECT_EQ(ARN_OK, arn_session_decode(session.get(), &id));
    choice.tokens.push_back(id);
  }
  return choice;
}

TEST(VulkanGeometryTest, Decoder135M_16GreedyTokens_AreTheCpus) {
  const std::string problem = NoVulkan();
  if (!problem.empty()) GTEST_SKIP() << problem;
  if (kIsSanitized) GTEST_SKIP() << "minutes under a sanitizer";
  TinyBundle bundle;
  bundle.layers = 30;
  bundle.hidden = 576;
  bundle.heads = 9;
  bundle.kv_heads = 3;
  bundle.head_dim = 64;
  bundle.ffn = 1536;
  bundle.vocab = kVocab;
  bundle.weights = DType::kBf16;
  const BundleBytes bytes = MakeTinyBundle(bundle);
  const ModelPtr model = OpenBytes(bytes);
  const Choice expected = Greedy16(model.get(), ARN_BACKEND_CPU);
  const Choice found = Greedy16(model.get(), ARN_BACKEND_VULKAN);
  for (size_t i = 0; i < expected.logits.size(); ++i) {
    std::vector<float> best = expected.logits[i];
    std::partial_sort(best.begin(), best.begin() + 2, best.end(), std::greater<>());
    float worst = 0.0f;
    for (uint32_t t = 0; t < kVocab; ++t) {
      worst = std::max(worst, std::fabs(expected.logits[i][t] - found.logits[i][t]));
    }
    // The difference is too small to change the argmax.
    ASSERT_LT(2.0f * worst, best[0] - best[1]) << "token " << i;
    EXPECT_LT(worst, 1e-3f * std::fabs(best[0])) << "token " << i;
  }
  EXPECT_EQ(expected.tokens, found.tokens);
}

}  // namespace
}  // namespace arn::test
