// Vision towers, and sessions with their embeddings, on the Vulkan backend: transformers'
// embeddings and logits, the fallback, and a device that is lost.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "tests/golden/vision_case.h"
#include "tests/golden/vulkan_reason.h"

namespace arn::test {
namespace {

constexpr double kTolerance = 3e-4;

// One case for each mechanism: learned positions and a concatenation, pooled means, a budget of
// tokens with resampled positions, 2-D RoPE, windows, rows behind several layers, clamps.
constexpr const char* kCases[] = {"squares_and_whole",    "mean_both_ways",
                                  "token_budget",         "pixel_budget_chunks",
                                  "pixel_budget_windows", "pixel_budget_deepstack",
                                  "patch_budget_clamps",  "patch_budget_both_ways"};

arn_image_options ImageOptions(uint32_t backend) {
  arn_image_options options = ARN_IMAGE_OPTIONS_INIT;
  options.backend = backend;
  options.n_threads = 2;
  return options;
}

arn_backend_info BackendOf(const arn_image_encoder* encoder) {
  arn_backend_info info = ARN_BACKEND_INFO_INIT;
  EXPECT_EQ(ARN_OK, arn_image_encoder_backend(encoder, &info));
  return info;
}

class VulkanVisionTest : public VisionGoldenTest {
 protected:
  // Embeddings of all images, one after the other.
  std::vector<float> EncodeAll(arn_image_encoder* encoder) {
    std::vector<float> all;
    for (const RgbImage& image : images_) {
      const std::vector<float> rows = EncodeOne(encoder, image);
      all.insert(all.end(), rows.begin(), rows.end());
    }
    return all;
  }

  // Returns null if there is no driver, and after a failure.
  ImageEncoderPtr NewEncoder(const arn_image_options& options) {
    arn_image_encoder* encoder = nullptr;
    char error[512] = "";
    const arn_status status =
        arn_image_encoder_create(model_.get(), &options, nullptr, 0, error, sizeof error, &encoder);
    SkipOrFail(status, error);
    return {encoder, &arn_image_encoder_destroy};
  }

  static void SkipOrFail(arn_status status, const char* error) {
    if (status == ARN_UNSUPPORTED && HasNoVulkan(error)) GTEST_SKIP() << error;
    ASSERT_EQ(ARN_OK, status) << error;
  }
};

// The self-test compares other rows with the CPU's.
TEST_P(VulkanVisionTest, Embeddings_AreTheReferences) {
  const arn_image_options options = ImageOptions(ARN_BACKEND_VULKAN);
  const ImageEncoderPtr encoder = NewEncoder(options);
  if (encoder == nullptr) return;
  EXPECT_STREQ("vulkan", BackendOf(encoder.get()).name);
  EXPECT_STREQ("", BackendOf(encoder.get()).reason);
  const std::vector<float> rows = EncodeAll(encoder.get());
  const std::vector<std::vector<float>> expected = json_.at("embeddings");
  arn_image_info info = ARN_IMAGE_INFO_INIT;
  ASSERT_EQ(ARN_OK, arn_image_get_info(model_.get(), &info));
  ASSERT_EQ(expected.size() * info.width, rows.size());
  double worst = 0.0;
  for (size_t r = 0; r < expected.size(); ++r) {
    for (size_t i = 0; i < expected[r].size(); ++i) {
      const auto found = static_cast<double>(rows[r * info.width + 5 * i]);
      worst = std::max(worst, std::abs(found - static_cast<double>(expected[r][i])));
    }
  }
  RecordProperty("worst", std::to_string(worst));
  EXPECT_LT(worst, kTolerance);
}

// An image whose tokens see all of it runs whole.
TEST_P(VulkanVisionTest, Logits_AreTheReferences) {
  const std::vector<float> rows = Encode(ARN_BACKEND_CPU);
  for (const uint32_t backend : {ARN_BACKEND_VULKAN, ARN_BACKEND_VULKAN_CPU}) {
    SCOPED_TRACE(testing::Message() << "backend " << backend);
    arn_session_options options = Options(backend);
    options.trust_device = 1;
    options.prefill_chunk = SeesBothWays() ? 64 : 17;
    arn_session* created = nullptr;
    char error[512] = "";
    const arn_status status =
        arn_session_create(model_.get(), &options, nullptr, 0, error, sizeof error, &created);
    const SessionPtr session(created);
    SkipOrFail(status, error);
    if (session == nullptr) return;
    arn_backend_info info = ARN_BACKEND_INFO_INIT;
    ASSERT_EQ(ARN_OK, arn_session_backend(session.get(), &info));
    EXPECT_EQ(backend, info.backend) << info.reason;
    ASSERT_EQ(ARN_OK,
              arn_session_prefill_embeddings(session.get(), golden_.prompt.data(),
                                             golden_.prompt.size(), rows.data(), n_places()))
        << arn_session_last_error(session.get());
    size_t position = golden_.prompt.size() - 1;
    for (const int32_t id : golden_.greedy) {
      const float* logits = nullptr;
      ASSERT_EQ(ARN_OK, arn_session_logits(session.get(), &logits));
      ExpectLogits(golden_, position++, logits, kTolerance);
      int32_t chosen = -1;
      ASSERT_EQ(ARN_OK, arn_session_decode(session.get(), &chosen))
          << arn_session_last_error(session.get());
      EXPECT_EQ(id, chosen);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, VulkanVisionTest, testing::ValuesIn(kCases),
                         [](const auto& param) { return std::string(param.param); });

class VulkanTowerTest : public VulkanVisionTest {};

// A plan is equal to what is used: of the block nothing is written past its end, and the device's
// bytes are those that the backend counts for the tower alone.
TEST_P(VulkanTowerTest, Plan_HasTheDevicesBytes_AndTheBlockIsEnough) {
  arn_image_options options = ImageOptions(ARN_BACKEND_VULKAN);
  options.max_side = 128;
  arn_image_plan_data plan = ARN_IMAGE_PLAN_DATA_INIT, host = ARN_IMAGE_PLAN_DATA_INIT;
  char error[512] = "";
  ASSERT_EQ(ARN_OK, arn_image_plan(model_.get(), &options, error, sizeof error, &plan)) << error;
  EXPECT_EQ(plan.total_bytes, plan.constants_bytes + plan.io_bytes);
  EXPECT_EQ(0u, plan.activations_bytes);
  EXPECT_EQ(0u, plan.repacked_bytes);
  options.backend = ARN_BACKEND_CPU;
  ASSERT_EQ(ARN_OK, arn_image_plan(model_.get(), &options, error, sizeof error, &host));
  EXPECT_EQ(0u, host.device_bytes);
  EXPECT_GT(plan.device_bytes, host.activations_bytes);
  options.backend = ARN_BACKEND_VULKAN;
  std::vector<std::byte> memory(plan.total_bytes + plan.alignment + 64, std::byte{0x5a});
  const auto base = reinterpret_cast<uintptr_t>(memory.data());
  std::byte* block = memory.data() + (plan.alignment - base % plan.alignment);
  arn_image_encoder* created = nullptr;
  const arn_status status = arn_image_encoder_create(
      model_.get(), &options, block, plan.total_bytes, error, sizeof error, &created);
  SkipOrFail(status, error);
  if (created == nullptr) return;
  const ImageEncoderPtr encoder(created, &arn_image_encoder_destroy);
  const std::vector<float> rows = EncodeAll(encoder.get());
  for (size_t i = 0; i < 64; ++i) EXPECT_EQ(std::byte{0x5a}, block[plan.total_bytes + i]);
  // Cancelled in between, and used again: the same bits.
  arn_image_encoder_cancel(encoder.get());
  std::vector<float> out(rows.size());
  const arn_image view = images_[0].view();
  uint32_t n = 0;
  EXPECT_EQ(ARN_CANCELLED, arn_image_encode(encoder.get(), &view, out.data(), out.size(), &n));
  EXPECT_EQ(rows, EncodeAll(encoder.get()));
}

// As many patches as published towers take, one more than a grid has rows: rows are in ranges, of
// which these images fill the first.
TEST_P(VulkanTowerTest, Budget_Of65536Patches_AgreesWithTheCpu) {
  constexpr uint32_t kPatchSide = 4, kPatches = 1u << 16;
  json_.at("preprocessor").at("size").at("longest_edge") = kPatches * kPatchSide * kPatchSide;
  ASSERT_TRUE(Make("f32"));
  const ImageEncoderPtr encoder = NewEncoder(ImageOptions(ARN_BACKEND_VULKAN));
  if (encoder == nullptr) return;
  EXPECT_STREQ("vulkan", BackendOf(encoder.get()).name);
  const std::vector<float> expected = Encode(ARN_BACKEND_CPU), found = EncodeAll(encoder.get());
  ASSERT_EQ(expected.size(), found.size());
  for (size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(expected[i], found[i], kTolerance) << i;
}

// An int8 value may round to the other of two steps (docs/architecture.md).
TEST_P(VulkanTowerTest, QuantisedWeights_AgreeWithTheReferenceBackend) {
  ASSERT_TRUE(Make("int8"));
  const ImageEncoderPtr encoder = NewEncoder(ImageOptions(ARN_BACKEND_VULKAN));
  if (encoder == nullptr) return;
  const std::vector<float> found = EncodeAll(encoder.get());
  const std::vector<float> expected = Encode(ARN_BACKEND_REFERENCE);
  ASSERT_EQ(expected.size(), found.size());
  arn_image_info info = ARN_IMAGE_INFO_INIT;
  ASSERT_EQ(ARN_OK, arn_image_get_info(model_.get(), &info));
  constexpr size_t kPlaceFloats = 3;  // behind each row: equal on all backends
  float largest = 0.0f, worst = 0.0f;
  for (size_t i = 0; i < found.size(); ++i) {
    if (i % info.width >= info.width - kPlaceFloats) {
      EXPECT_EQ(expected[i], found[i]);
      continue;
    }
    largest = std::max(largest, std::fabs(expected[i]));
    worst = std::max(worst, std::fabs(found[i] - expected[i]));
  }
  EXPECT_LE(worst, 0.05f * largest);
}

// A software driver is none for AUTO; one that is named is used.
TEST_P(VulkanTowerTest, Auto_IsTheCpuWithAReason_OrTheNamedDevice) {
  const std::vector<float> expected = Encode(ARN_BACKEND_CPU);
  arn_image_options options = ImageOptions(ARN_BACKEND_AUTO);
  options.device = "no such device";
  const ImageEncoderPtr on_cpu = NewEncoder(options);
  ASSERT_NE(nullptr, on_cpu);
  EXPECT_STREQ("cpu", BackendOf(on_cpu.get()).name);
  EXPECT_STRNE("", BackendOf(on_cpu.get()).reason);
  EXPECT_EQ(expected, EncodeAll(on_cpu.get()));
  for (const uint32_t backend : {ARN_BACKEND_AUTO, ARN_BACKEND_VULKAN_CPU}) {
    options.backend = backend;
    options.device = "llvmpipe";
    const ImageEncoderPtr encoder = NewEncoder(options);
    ASSERT_NE(nullptr, encoder);
    const arn_backend_info info = BackendOf(encoder.get());
    if (HasNoVulkan(info.reason)) GTEST_SKIP() << info.reason;
    EXPECT_STREQ("vulkan", info.name) << info.reason;
    const std::vector<float> rows = EncodeAll(encoder.get());
    for (size_t i = 0; i < rows.size(); ++i) ASSERT_NEAR(expected[i], rows[i], kTolerance);
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, VulkanTowerTest, testing::Values("pixel_budget_deepstack"),
                         [](const auto& param) { return std::string(param.param); });

}  // namespace
}  // namespace arn::test
