// Loses a device together with a session's encoder outputs.
#include <memory>
#include <string>
#include <vector>

#include "kernels/cpu/backend_cpu.h"
#include "runtime/session/session.h"
#include "tests/golden/golden_case.h"
#include "tests/support/vulkan_faults.h"

namespace arn::test {
namespace {

Status LoadFaulty(const Program& program, const BackendOptions& options, const BackendPlan& plan,
                  const Memory& memory, void** state, Diag* diag) {
  const Status status = VulkanBackend()->load(program, options, plan, memory, state, diag);
  if (status == Status::kOk) InstallFaults(*state);
  return status;
}

const Backend* FaultyBackend() {
  static const Backend backend = [] {
    Backend b = *VulkanBackend();
    b.load = LoadFaulty;
    return b;
  }();
  return &backend;
}

class LostEncoderTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    ARN_NEEDS_CONVERTER();
    const std::string problem = NoVulkan();
    if (!problem.empty()) GTEST_SKIP() << problem;
    fault_plan = FaultPlan();
    golden_ = LoadGolden(std::string("encoder/") + GetParam());
    ASSERT_TRUE(ConvertGolden(golden_, ConfigStyle::kTransformers5, folder_ / "checkpoint",
                              folder_ / "model.arn", {"--weights", "f32"}));
    model_ = OpenModel(folder_ / "model.arn");
    ASSERT_NE(nullptr, model_);
  }

  // Creates a session on a failing device with the CPU as fallback.
  SessionPtr New(bool no_cache) {
    SessionOptions options;
    options.k_type = options.v_type = KvType::kF32;
    options.n_threads = 1;
    options.max_sequences = no_cache ? 1 : 2;
    options.no_cache = no_cache;
    options.trusts_device = true;
    options.fallback = CpuBackend();
    SessionPlan plan;
    Diag diag;
    const auto& model = *reinterpret_cast<const Model*>(model_.get());
    EXPECT_EQ(Status::kOk,
              PlanSession(model, FaultyBackend(), options, Session::Objects(), &plan, &diag))
        << diag.text();
    block_.assign(plan.TotalBytes() + kRegionAlign, std::byte{0xA5});
    void* at = block_.data();
    size_t room = block_.size();
    std::align(kRegionAlign, plan.TotalBytes(), at, room);
    Session* session = nullptr;
    EXPECT_EQ(Status::kOk,
              Session::Create(model, plan, {static_cast<std::byte*>(at), plan.TotalBytes()}, {},
                              &session, &diag))
        << diag.text();
    return SessionPtr(reinterpret_cast<arn_session*>(session));
  }

  void ExpectGreedy(arn_session* session) {
    const auto n = static_cast<uint32_t>(golden_.greedy.size());
    EXPECT_EQ(golden_.greedy, GenerateGreedy(session, golden_.prompt, n, true).ids);
  }

  TempFolder folder_;
  GoldenCase golden_;
  ModelPtr model_;
  std::vector<std::byte> block_;  // memory of the session
};

TEST_P(LostEncoderTest, WhileItIsEncoded_TheCpuEncodesIt) {
  const SessionPtr session = New(false);
  fault_plan.FailAt(Fault::kSubmitLost, 0);
  ASSERT_TRUE(EncodeInput(golden_, session.get()));
  ExpectGreedy(session.get());
}

TEST_P(LostEncoderTest, WhileAnotherHasOne_NoneIsLeftAndEncodingAnewWorks) {
  const SessionPtr session = New(false);
  ASSERT_TRUE(EncodeInput(golden_, session.get()));
  ASSERT_EQ(ARN_OK, arn_session_fork(session.get(), 0, 1));
  fault_plan.FailAt(Fault::kFenceLost, 0);
  const arn_status status =
      golden_.feature_width == 0
          ? arn_session_encode_ids(session.get(), golden_.encoder_ids.data(),
                                   golden_.encoder_ids.size())
          : arn_session_encode_features(session.get(), golden_.features.data(), 2,
                                        golden_.feature_width);
  EXPECT_EQ(ARN_DEVICE_LOST, status);
  ASSERT_EQ(ARN_OK, arn_session_select(session.get(), 1));
  EXPECT_EQ(ARN_BAD_STATE,
            arn_session_prefill(session.get(), golden_.prompt.data(), golden_.prompt.size()));
  ASSERT_TRUE(EncodeInput(golden_, session.get()));
  ExpectGreedy(session.get());
}

// With a cache, and without one, where each token recomputes the earlier ones.
TEST_P(LostEncoderTest, InAPrefill_TheErrorSaysSoAndEncodingAnewWorks) {
  for (const bool no_cache : {false, true}) {
    SCOPED_TRACE(no_cache);
    fault_plan = FaultPlan();
    const SessionPtr session = New(no_cache);
    ASSERT_TRUE(EncodeInput(golden_, session.get()));
    fault_plan.FailAt(Fault::kSubmitLost, 0);
    EXPECT_EQ(ARN_DEVICE_LOST,
              arn_session_prefill(session.get(), golden_.prompt.data(), golden_.prompt.size()));
    const std::string error = arn_session_last_error(session.get());
    EXPECT_NE(std::string::npos, error.find("encode them again")) << error;
    EXPECT_EQ(0u, arn_session_length(session.get()));
    ASSERT_TRUE(EncodeInput(golden_, session.get()));
    ExpectGreedy(session.get());
  }
}

INSTANTIATE_TEST_SUITE_P(VulkanCases, LostEncoderTest, testing::Values("relative_bias", "features"),
                         [](const auto& p) { return std::string(p.param); });

}  // namespace
}  // namespace arn::test
