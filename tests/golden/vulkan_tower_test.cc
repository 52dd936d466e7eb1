// Vision towers on a device that fails or computes wrongly.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cpu/backend_cpu.h"
#include "runtime/session/session.h"
#include "runtime/vision/image_encoder.h"
#include "tests/golden/vision_case.h"
#include "tests/support/vulkan_faults.h"

namespace arn::test {
namespace {

constexpr float kTolerance = 3e-4f;

Status LoadFaultyTower(const Program& program, const BackendOptions& options,
                       const BackendPlan& plan, const Memory& memory, void** state, Diag* diag) {
  const Status status = VulkanBackend()->load(program, options, plan, memory, state, diag);
  if (status == Status::kOk) InstallFaults(*state);
  return status;
}

const Backend* FaultyTowerBackend() {
  static const Backend backend = [] {
    Backend b = *VulkanBackend();
    b.load = LoadFaultyTower;
    return b;
  }();
  return &backend;
}

// Its first value is wrong.
Status ReadWrongValues(void* state, Slice from, Span<std::byte> to, Diag* diag) {
  ARN_TRY(VulkanBackend()->device->read_values(state, from, to, diag));
  reinterpret_cast<float*>(to.data())[0] += 1e3f;
  return Status::kOk;
}

const Backend* WrongTowerBackend() {
  static const DeviceOps wrong = [] {
    DeviceOps ops = *VulkanBackend()->device;
    ops.read_values = ReadWrongValues;
    return ops;
  }();
  static const Backend backend = [] {
    Backend b = *VulkanBackend();
    b.device = &wrong;
    return b;
  }();
  return &backend;
}

class VulkanLostTowerTest : public VisionGoldenTest {
 protected:
  void SetUp() override {
    const std::string problem = NoVulkan();
    if (!problem.empty()) GTEST_SKIP() << problem;
    VisionGoldenTest::SetUp();
    fault_plan = FaultPlan();
    if (model_ != nullptr) expected_ = Encode(ARN_BACKEND_CPU);
  }

  // Creates an encoder in block_.
  Status New(const TowerBackends& backends, bool trusts_device, ImageEncoder** out, Diag* diag) {
    ImageOptions options;
    options.n_threads = 2;
    options.trusts_device = trusts_device;
    ImagePlan plan;
    const auto& model = *reinterpret_cast<const Model*>(model_.get());
    ARN_TRY(PlanImageEncoder(model, backends, options, sizeof(ImageEncoder), &plan, diag));
    block_.assign(plan.TotalBytes() + kRegionAlign, std::byte{0xA5});
    void* at = block_.data();
    size_t room = block_.size();
    std::align(kRegionAlign, plan.TotalBytes(), at, room);
    return ImageEncoder::Create(model, plan, {static_cast<std::byte*>(at), plan.TotalBytes()}, {},
                                out, diag);
  }

  ImageEncoderPtr Owned(ImageEncoder* encoder) {
    return {reinterpret_cast<arn_image_encoder*>(encoder), &arn_image_encoder_destroy};
  }

  Status EncodeFirst(ImageEncoder* encoder) {
    std::vector<float> out(expected_.size());
    const RgbImage& image = images_[0];
    uint32_t n = 0;
    return encoder->Encode(
        {image.pixels.data(), image.width, image.height, uint64_t{kPixelChannels} * image.width},
        {out.data(), out.size()}, &n);
  }

  std::vector<float> EncodeAll(arn_image_encoder* encoder) {
    std::vector<float> all;
    for (const RgbImage& image : images_) {
      const std::vector<float> rows = EncodeOne(encoder, image);
      all.insert(all.end(), rows.begin(), rows.end());
    }
    return all;
  }

  void ExpectRows(const std::vector<float>& rows) {
    ASSERT_EQ(expected_.size(), rows.size());
    for (size_t i = 0; i < rows.size(); ++i) ASSERT_NEAR(expected_[i], rows[i], kTolerance) << i;
  }

  std::vector<float> expected_;
  std::vector<std::byte> block_;
};

// At each submission of a tile, in each way.
TEST_P(VulkanLostTowerTest, WithAFallback_TheCpuGoesOn) {
  const TowerBackends backends = {FaultyTowerBackend(), CpuBackend(), CpuBackend()};
  for (uint32_t fault = 0; fault < kFaultCount; ++fault) {
    SCOPED_TRACE(testing::Message() << "fault " << fault);
    fault_plan = FaultPlan();
    Diag diag;
    ImageEncoder* created = nullptr;
    ASSERT_EQ(Status::kOk, New(backends, true, &created, &diag)) << diag.text();
    const ImageEncoderPtr encoder = Owned(created);
    fault_plan.FailAt(static_cast<Fault>(fault), fault % 2);
    ExpectRows(EncodeAll(encoder.get()));
    EXPECT_STREQ("cpu", created->tower().backend().name);
    EXPECT_STRNE("", created->tower().reason());
    // All of it on the CPU.
    EXPECT_EQ(expected_, EncodeAll(encoder.get()));
  }
}

TEST_P(VulkanLostTowerTest, WithoutAFallback_EveryCallFails) {
  Diag diag;
  ImageEncoder* created = nullptr;
  ASSERT_EQ(Status::kOk, New({FaultyTowerBackend(), nullptr, CpuBackend()}, true, &created, &diag))
      << diag.text();
  const ImageEncoderPtr encoder = Owned(created);
  ExpectRows(EncodeAll(encoder.get()));
  fault_plan.FailAt(Fault::kSubmitLost, 0);
  EXPECT_EQ(Status::kDeviceLost, EncodeFirst(created));
  EXPECT_STRNE("", created->diag()->text());
  fault_plan = FaultPlan();
  EXPECT_EQ(Status::kDeviceLost, EncodeFirst(created));
}

TEST_P(VulkanLostTowerTest, DeviceThatComputesWrongly_IsRefusedByTheSelfTest) {
  Diag diag;
  ImageEncoder* created = nullptr;
  EXPECT_EQ(Status::kDevice,
            New({WrongTowerBackend(), nullptr, CpuBackend()}, false, &created, &diag));
  EXPECT_NE(std::string::npos, std::string(diag.text()).find("failed the self-test: the value 0"))
      << diag.text();
  EXPECT_EQ(nullptr, created);
  diag.Clear();
  ASSERT_EQ(Status::kOk,
            New({WrongTowerBackend(), CpuBackend(), CpuBackend()}, false, &created, &diag))
      << diag.text();
  const ImageEncoderPtr encoder = Owned(created);
  EXPECT_STREQ("cpu", created->tower().backend().name);
  EXPECT_NE(nullptr, std::strstr(created->tower().reason(), "failed the self-test"));
  EXPECT_EQ(expected_, EncodeAll(encoder.get()));
}

// A device that fails during its test is lost, not wrong.
TEST_P(VulkanLostTowerTest, LostInTheSelfTest_IsTheCpu) {
  fault_plan.FailAt(Fault::kSubmitLost, 0);
  Diag diag;
  ImageEncoder* created = nullptr;
  ASSERT_EQ(Status::kOk,
            New({FaultyTowerBackend(), CpuBackend(), CpuBackend()}, false, &created, &diag))
      << diag.text();
  const ImageEncoderPtr encoder = Owned(created);
  EXPECT_STREQ("cpu", created->tower().backend().name);
  EXPECT_EQ(expected_, EncodeAll(encoder.get()));
}

INSTANTIATE_TEST_SUITE_P(Cases, VulkanLostTowerTest, testing::Values("pixel_budget_windows"),
                         [](const auto& param) { return std::string(param.param); });

// A session whose device is lost computes its tokens again on the CPU, those of images with their
// embeddings and places.
class VulkanLostImagesTest : public VulkanLostTowerTest {};

TEST_P(VulkanLostImagesTest, WhileItDecodes_TheTokensAreTheReferences) {
  SessionOptions options;
  options.k_type = options.v_type = KvType::kF32;
  options.n_threads = 1;
  options.embedding_rows = n_places();
  options.trusts_device = true;
  options.fallback = CpuBackend();
  SessionPlan plan;
  Diag diag;
  const auto& model = *reinterpret_cast<const Model*>(model_.get());
  ASSERT_EQ(Status::kOk,
            PlanSession(model, FaultyTowerBackend(), options, Session::Objects(), &plan, &diag))
      << diag.text();
  block_.assign(plan.TotalBytes() + kRegionAlign, std::byte{0xA5});
  void* at = block_.data();
  size_t room = block_.size();
  std::align(kRegionAlign, plan.TotalBytes(), at, room);
  Session* created = nullptr;
  ASSERT_EQ(Status::kOk,
            Session::Create(model, plan, {static_cast<std::byte*>(at), plan.TotalBytes()}, {},
                            &created, &diag))
      << diag.text();
  const SessionPtr session(reinterpret_cast<arn_session*>(created));
  ASSERT_EQ(ARN_OK,
            arn_session_prefill_embeddings(session.get(), golden_.prompt.data(),
                                           golden_.prompt.size(), expected_.data(), n_places()))
      << arn_session_last_error(session.get());
  for (size_t i = 0; i < golden_.greedy.size(); ++i) {
    if (i == 2) fault_plan.FailAt(Fault::kSubmitLost, 0);
    int32_t id = -1;
    ASSERT_EQ(ARN_OK, arn_session_decode(session.get(), &id))
        << arn_session_last_error(session.get());
    EXPECT_EQ(golden_.greedy[i], id) << i;
  }
  arn_backend_info info = ARN_BACKEND_INFO_INIT;
  ASSERT_EQ(ARN_OK, arn_session_backend(session.get(), &info));
  EXPECT_STREQ("cpu", info.name);
  EXPECT_STRNE("", info.reason);
}

INSTANTIATE_TEST_SUITE_P(Cases, VulkanLostImagesTest,
                         testing::Values("pixel_budget_deepstack", "mean_both_ways"),
                         [](const auto& param) { return std::string(param.param); });

}  // namespace
}  // namespace arn::test
