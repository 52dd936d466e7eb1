// Images: transformers' texts, embeddings, logits and tokens, and the embeddings that a session
// holds.
#include "tests/golden/vision_case.h"

#include <algorithm>

namespace arn::test {
namespace {

constexpr double kTolerance = 3e-4;

constexpr const char* kCases[] = {"squares_and_whole",
                                  "whole",
                                  "mean_both_ways",
                                  "token_budget",
                                  "token_budget_plain",
                                  "pixel_budget",
                                  "pixel_budget_chunks",
                                  "pixel_budget_windows",
                                  "pixel_budget_attention",
                                  "pixel_budget_deepstack",
                                  "pixel_budget_deepstack_experts",
                                  "patch_budget_clamps",
                                  "patch_budget_both_ways"};

// Runs the prompt and the greedy tokens, and compares the logits after each.
void ExpectGolden(const GoldenCase& golden, arn_session* session, double tolerance) {
  size_t position = golden.prompt.size() - 1;
  for (const int32_t id : golden.greedy) {
    const float* logits = nullptr;
    ASSERT_EQ(ARN_OK, arn_session_logits(session, &logits)) << arn_session_last_error(session);
    ExpectLogits(golden, position++, logits, tolerance);
    ASSERT_EQ(ARN_OK, arn_session_prefill(session, &id, 1)) << arn_session_last_error(session);
  }
}

TEST_P(VisionGoldenTest, Text_IsTheReferences) {
  for (size_t i = 0; i < images_.size(); ++i) {
    const std::string expected = json_.at("texts").at(i);
    std::string text(expected.size() + 100, '\0');
    size_t n = 0;
    ASSERT_EQ(ARN_OK, arn_image_text(model_.get(), images_[i].width, images_[i].height, text.data(),
                                     text.size(), &n));
    EXPECT_EQ(expected, text.substr(0, n));
    EXPECT_EQ(ARN_BUFFER_TOO_SMALL,
              arn_image_text(model_.get(), images_[i].width, images_[i].height, text.data(),
                             expected.size() - 1, &n));
    EXPECT_EQ(expected.size(), n);
  }
}

TEST_P(VisionGoldenTest, Embeddings_AreTheReferences) {
  const std::vector<std::vector<float>> expected = json_.at("embeddings");
  arn_image_info info = ARN_IMAGE_INFO_INIT;
  ASSERT_EQ(ARN_OK, arn_image_get_info(model_.get(), &info));
  for (const uint32_t backend : kBackends) {
    const std::vector<float> rows = Encode(backend);
    ASSERT_EQ(expected.size() * info.width, rows.size());
    double worst = 0.0;
    for (size_t r = 0; r < expected.size(); ++r) {
      for (size_t i = 0; i < expected[r].size(); ++i) {
        const auto found = static_cast<double>(rows[r * info.width + 5 * i]);
        worst = std::max(worst, std::abs(found - static_cast<double>(expected[r][i])));
      }
    }
    RecordProperty("worst", std::to_string(worst));
    EXPECT_LT(worst, kTolerance) << "backend " << backend;
  }
}

TEST_P(VisionGoldenTest, Logits_AreTheReferences) {
  for (const uint32_t backend : kBackends) {
    SCOPED_TRACE(testing::Message() << "backend " << backend);
    const std::vector<float> rows = Encode(backend);
    // An image whose tokens see all of it runs whole.
    for (const uint32_t chunk : {64u, SeesBothWays() ? 60u : 17u}) {
      arn_session_options options = Options(backend);
      options.prefill_chunk = chunk;
      const SessionPtr session = NewSession(model_.get(), options);
      ASSERT_NE(nullptr, session);
      ASSERT_EQ(ARN_OK,
                arn_session_prefill_embeddings(session.get(), golden_.prompt.data(),
                                               golden_.prompt.size(), rows.data(), n_places()))
          << arn_session_last_error(session.get());
      ExpectGolden(golden_, session.get(), kTolerance);
    }
  }
}

TEST_P(VisionGoldenTest, Generate_GivesTheReferencesTokens) {
  const std::vector<float> rows = Encode(ARN_BACKEND_CPU);
  for (const uint32_t no_cache : {0u, 1u}) {
    arn_session_options options = Options(ARN_BACKEND_CPU);
    options.no_cache = no_cache;
    if (no_cache == 1 && SeesBothWays()) continue;  // refused
    const SessionPtr session = NewSession(model_.get(), options);
    ASSERT_NE(nullptr, session);
    ASSERT_EQ(ARN_OK,
              arn_session_prefill_embeddings(session.get(), golden_.prompt.data(),
                                             golden_.prompt.size(), rows.data(), n_places()));
    for (const int32_t expected : golden_.greedy) {
      int32_t id = -1;
      ASSERT_EQ(ARN_OK, arn_session_decode(session.get(), &id));
      EXPECT_EQ(expected, id);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, VisionGoldenTest, testing::ValuesIn(kCases),
                         [](const auto& param) { return std::string(param.param); });

}  // namespace
}  // namespace arn::test
