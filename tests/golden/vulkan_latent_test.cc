// Sessions of models with latent attention on a device: their pages hold keys without values, and
// are saved, shared, moved and shifted as those of the CPU.
#include <string>
#include <vector>

#include "tests/golden/golden_case.h"
#include "tests/golden/vulkan_reason.h"
#include "tests/support/state_support.h"

namespace arn::test {
namespace {

// The CPU first: what the others are held against.
constexpr uint32_t kLatentBackends[] = {ARN_BACKEND_CPU, ARN_BACKEND_VULKAN,
                                        ARN_BACKEND_VULKAN_CPU};

class VulkanLatentTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    ARN_NEEDS_CONVERTER();
    golden_ = LoadGolden(GetParam());
    ASSERT_TRUE(ConvertGolden(golden_, ConfigStyle::kTransformers5, folder_ / "checkpoint",
                              folder_ / "model.arn", {"--weights", "f32"}));
    model_ = OpenModel(folder_ / "model.arn");
    ASSERT_NE(nullptr, model_);
  }

  // Returns null after a test failure, or if the test is skipped without a driver.
  SessionPtr New(uint32_t backend, uint32_t sequences = 1, uint32_t overflow = ARN_OVERFLOW_STOP) {
    arn_session_options options = ARN_SESSION_OPTIONS_INIT;
    options.backend = backend;
    options.kv_type = ARN_KV_F32;
    options.n_threads = 1;
    options.context_tokens = kContext;
    options.kv_page_tokens = 8;
    options.prefill_chunk = 13;
    options.max_sequences = sequences;
    options.overflow = overflow;
    options.trust_device = 1;
    return CreateOrSkip(model_.get(), options);
  }

  void Prefill(arn_session* session, size_t first, size_t n) const {
    std::vector<int32_t> ids;
    for (size_t i = first; i < first + n; ++i) {
      ids.push_back(static_cast<int32_t>((i * 7 + 3) % golden_.vocab()));
    }
    ASSERT_EQ(ARN_OK, arn_session_prefill(session, ids.data(), ids.size()))
        << arn_session_last_error(session);
  }

  static constexpr uint32_t kContext = 64;

 private:
  TempFolder folder_;
  GoldenCase golden_;
  ModelPtr model_;
};

TEST_P(VulkanLatentTest, SavedOnOneBackend_RestoredOnTheOther_GoesOn) {
  const uint32_t backends[2] = {ARN_BACKEND_VULKAN, ARN_BACKEND_CPU};
  for (uint32_t first = 0; first < 2; ++first) {
    SCOPED_TRACE(first);
    const SessionPtr saved = New(backends[first]);
    if (saved == nullptr) return;
    Prefill(saved.get(), 0, 29);
    Decode(saved.get(), 3);
    const std::vector<uint8_t> state = Save(saved.get());
    const std::vector<int32_t> expected = Decode(saved.get(), 10);
    const SessionPtr restored = New(backends[1 - first]);
    if (restored == nullptr) return;
    Prefill(restored.get(), 5, 9);
    ASSERT_EQ(ARN_OK, Restore(restored.get(), state)) << arn_session_last_error(restored.get());
    EXPECT_EQ(state, Save(restored.get()));
    EXPECT_EQ(expected, Decode(restored.get(), 10));
  }
}

TEST_P(VulkanLatentTest, ForkedAndRewound_EachGoesOnAsOnTheCpu) {
  std::vector<std::vector<int32_t>> expected;
  for (const uint32_t backend : kLatentBackends) {
    SCOPED_TRACE(backend);
    const SessionPtr session = New(backend, 3);
    if (session == nullptr) return;
    Prefill(session.get(), 0, 27);
    for (const uint32_t to : {1u, 2u}) {
      ASSERT_EQ(ARN_OK, arn_session_fork(session.get(), 0, to));
      ASSERT_EQ(ARN_OK, arn_session_select(session.get(), to));
      Prefill(session.get(), 40 + to, to + 2);
    }
    ASSERT_EQ(ARN_OK, arn_session_rewind(session.get(), 21));
    Prefill(session.get(), 3, 4);
    std::vector<std::vector<int32_t>> found;
    for (const uint32_t s : {0u, 1u, 2u}) {
      ASSERT_EQ(ARN_OK, arn_session_select(session.get(), s));
      found.push_back(Decode(session.get(), 10));
    }
    if (expected.empty()) expected = found;
    EXPECT_EQ(expected, found);
  }
}

TEST_P(VulkanLatentTest, ShiftedContext_GoesOnAsOnTheCpu) {
  std::vector<int32_t> expected;
  for (const uint32_t backend : kLatentBackends) {
    SCOPED_TRACE(backend);
    const SessionPtr session = New(backend, 1, ARN_OVERFLOW_SHIFT);
    if (session == nullptr) return;
    Prefill(session.get(), 0, kContext - 4);
    const std::vector<int32_t> found = Decode(session.get(), 20);
    if (expected.empty()) expected = found;
    EXPECT_EQ(expected, found);
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, VulkanLatentTest,
                         testing::Values("latent_attention", "latent_attention_halves"),
                         [](const auto& p) { return std::string(p.param); });

}  // namespace
}  // namespace arn::test
