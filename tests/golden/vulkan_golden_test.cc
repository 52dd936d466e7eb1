// The golden cases on the Vulkan backend: transformers' logits and greedy tokens with float weights
// and a float cache, the reference backend's logits with quantised ones.
#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/golden/golden_case.h"
#include "tests/golden/vulkan_reason.h"

namespace arn::test {
namespace {

constexpr double kTolerance = 2e-4;

// Cases with a step that this backend has no shader for, and its message.
const std::map<std::string, std::string>& Refused() {
  static const std::map<std::string, std::string> refused = {
      {"sparse_mixer", "Vulkan: layer 0, step route: routing by a sparse mixer"},
      {"residual_streams", "Vulkan: layer 0, step match_rms: has no shader"},
      {"residual_streams_odd", "Vulkan: layer 0, step match_rms: has no shader"},
  };
  return refused;
}

std::vector<std::string> Supported() {
  std::vector<std::string> names = GoldenNames();
  std::erase_if(names, [](const std::string& name) { return Refused().contains(name); });
  return names;
}

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

  SessionPtr Create(const arn_session_options& options) {
    return CreateOrSkip(model_.get(), options);
  }

  TempFolder folder_;
  GoldenCase golden_;
  ModelPtr model_;
};

// Pieces of 1, 7 and 64 tokens go through the matrix-vector shaders and through both kinds of
// tiles. One session runs all of them: what takes time is to compile its shaders.
TEST_P(VulkanGoldenTest, FloatWeights_GiveTheReferencesLogitsAndTokens) {
  Open({"--weights", "f32"});
  const std::vector<int32_t> ids = golden_.all_ids();
  const SessionPtr session = Create(Options(ARN_BACKEND_VULKAN, ARN_KV_F32, 64));
  if (session == nullptr) return;
  for (const uint32_t piece : {1u, 7u, 64u}) {
    SCOPED_TRACE(piece);
    ASSERT_EQ(ARN_OK, arn_session_reset(session.get()));
    const std::vector<float> logits = AllLogits(session.get(), golden_.vocab(), piece, ids);
    ASSERT_EQ(ids.size() * golden_.vocab(), logits.size());
    for (size_t i = 0; i < ids.size(); ++i) {
      ExpectLogits(golden_, i, logits.data() + i * golden_.vocab(), kTolerance);
    }
  }
  ASSERT_EQ(ARN_OK, arn_session_reset(session.get()));
  const auto max_tokens = static_cast<uint32_t>(golden_.greedy.size());
  EXPECT_EQ(golden_.greedy, GenerateGreedy(session.get(), golden_.prompt, max_tokens,
                                           /*ignore_eos=*/true)
                                .ids);
}

// The pairs of models in which an int8 value that rounds to the other of two steps chooses another
// expert for some row with the pair of their turn.
const std::map<std::string, size_t>& PairsOfClosePeers() {
  static const std::map<std::string, size_t> pairs = {{"experts_beside_wide", 1},
                                                      {"post_norms_experts", 2}};
  return pairs;
}

// Each model takes one of the three pairs, in turn: types of weights and of pages meet in no
// shader, and the types of either have tests of their own (tests/conformance). An int8 value may
// round to the other of two steps (docs/architecture.md), and where two experts are as good, the
// other one is chosen: then the CPU's logits of that row differ half as much at least.
TEST_P(VulkanGoldenTest, QuantisedWeightsAndCaches_GiveTheReferenceBackendsLogits) {
  const std::vector<int32_t> ids = golden_.all_ids();
  const std::pair<const char*, uint32_t> cases[] = {
      {"int8", ARN_KV_INT8}, {"int4", ARN_KV_INT4}, {"int4", ARN_KV_F16}};
  const std::vector<std::string> models = Supported();
  auto turn = static_cast<size_t>(std::ranges::find(models, GetParam()) - models.begin());
  const auto pinned = PairsOfClosePeers().find(GetParam());
  if (pinned != PairsOfClosePeers().end()) turn = pinned->second;
  const auto& [weights, kv] = cases[turn % std::size(cases)];
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
  float largest = 0.0f;
  for (size_t at = 0; at < logits[0].size(); ++at) {
    ASSERT_FALSE(std::isnan(logits[0][at]));
    largest = std::max(largest, std::fabs(logits[1][at]));
  }
  const auto worst_of = [&](const std::vector<float>& found, size_t row) {
    float worst = 0.0f;
    for (size_t at = row * golden_.vocab(); at < (row + 1) * golden_.vocab(); ++at) {
      worst = std::max(worst, std::fabs(found[at] - logits[1][at]));
    }
    return worst;
  };
  std::vector<float> of_cpu;
  for (size_t row = 0; row < ids.size(); ++row) {
    const float worst = worst_of(logits[0], row);
    if (worst <= 0.05f * largest) continue;
    if (of_cpu.empty()) {
      const SessionPtr session = Create(Options(ARN_BACKEND_CPU, kv, 16));
      of_cpu = AllLogits(session.get(), golden_.vocab(), 16, ids);
      ASSERT_EQ(logits[1].size(), of_cpu.size());
    }
    EXPECT_LE(worst, 2.0f * worst_of(of_cpu, row)) << "row " << row;
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, VulkanGoldenTest, testing::ValuesIn(Supported()),
                         [](const auto& p) { return p.param; });

// The plan gives the reason, and ARN_BACKEND_AUTO takes the CPU.
TEST(VulkanRefusalTest, StepsWithoutAShader_AreRefusedAndAutoIsTheCpu) {
  ARN_NEEDS_CONVERTER();
  for (const auto& [name, reason] : Refused()) {
    SCOPED_TRACE(name);
    const TempFolder folder;
    const GoldenCase golden = LoadGolden(name);
    ASSERT_TRUE(ConvertGolden(golden, ConfigStyle::kTransformers5, folder / "checkpoint",
                              folder / "model.arn", {"--weights", "f32"}));
    const ModelPtr model = OpenModel(folder / "model.arn");
    ASSERT_NE(nullptr, model);
    arn_session_options options = ARN_SESSION_OPTIONS_INIT;
    options.trust_device = 1;
    options.kv_type = ARN_KV_F32;
    options.backend = ARN_BACKEND_VULKAN;
    arn_session* refused = nullptr;
    char error[512] = "";
    EXPECT_EQ(ARN_UNSUPPORTED,
              arn_session_create(model.get(), &options, nullptr, 0, error, sizeof error, &refused));
    if (HasNoVulkan(error)) GTEST_SKIP() << error;
    EXPECT_NE(std::string::npos, std::string(error).find(reason)) << error;
    options.backend = ARN_BACKEND_AUTO;
    const SessionPtr session = NewSession(model.get(), options);
    ASSERT_NE(nullptr, session);
    arn_backend_info info = ARN_BACKEND_INFO_INIT;
    ASSERT_EQ(ARN_OK, arn_session_backend(session.get(), &info));
    EXPECT_EQ(uint32_t{ARN_BACKEND_CPU}, info.backend);
    EXPECT_EQ(golden.greedy, GenerateGreedy(session.get(), golden.prompt,
                                            static_cast<uint32_t>(golden.greedy.size()),
                                            /*ignore_eos=*/true)
                                 .ids);
  }
}

}  // namespace
}  // namespace arn::test
