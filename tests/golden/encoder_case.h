// Fixture for encoder-decoder models: a golden case, and sessions that have run its encoder.
#pragma once

#include <string>
#include <vector>

#include "tests/golden/golden_case.h"

namespace arn::test {

class EncoderCaseTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    ARN_NEEDS_CONVERTER();
    golden_ = LoadGolden(std::string("encoder/") + GetParam());
    Open("f32");
  }

  void Open(const char* weights) {
    ASSERT_TRUE(ConvertGolden(golden_, ConfigStyle::kTransformers5, folder_ / "checkpoint",
                              folder_ / "model.arn", {"--weights", weights}));
    model_ = OpenModel(folder_ / "model.arn");
    ASSERT_NE(nullptr, model_);
  }

  SessionPtr Encoded(const arn_session_options& options) const {
    SessionPtr session = NewSession(model_.get(), options);
    if (session != nullptr && !EncodeInput(golden_, session.get())) return nullptr;
    return session;
  }

  // Returns the greedy tokens after the prompt of the selected sequence.
  std::vector<int32_t> Greedy(arn_session* session) const {
    const auto n = static_cast<uint32_t>(golden_.greedy.size());
    return GenerateGreedy(session, golden_.prompt, n, /*ignore_eos=*/true).ids;
  }

  TempFolder folder_;
  GoldenCase golden_;
  ModelPtr model_;
};

}  // namespace arn::test
