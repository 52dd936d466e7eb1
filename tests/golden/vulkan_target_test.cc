// Bundles packed for the device (--target vulkan): the same logits, bit for bit, as one packed for
// any CPU, on the device and on the CPU; and the device has no copy of their weights.
#include <algorithm>
#include <cmath>
#include <ostream>
#include <string>
#include <vector>

#include "tests/golden/golden_case.h"
#include "tests/golden/vulkan_reason.h"

namespace arn::test {
namespace {

// Each type of weights, and each kind of table and of rows that stay rows.
struct TargetCase {
  const char* model;
  const char* weights;
};
void PrintTo(const TargetCase& c, std::ostream* out) { *out << c.model << " in " << c.weights; }
constexpr TargetCase kCases[] = {
    {"odd_sizes", "f32"},
    {"odd_sizes", "f16"},
    {"odd_sizes", "bf16"},
    {"odd_sizes", "int8"},
    {"odd_sizes", "int4"},
    {"untied", "int8"},
    {"scan", "int4"},
    {"learned_positions", "bf16"},
    {"experts_in_some_layers", "int8"},
    {"latent_attention", "int4"},
    {"latent_depth_factors_odd", "f16"},
};

class VulkanTargetTest : public testing::TestWithParam<TargetCase> {
 protected:
  void SetUp() override {
    ARN_NEEDS_CONVERTER();
    golden_ = LoadGolden(GetParam().model);
  }

  ModelPtr Make(const char* target) {
    const std::filesystem::path file = folder_ / (std::string(target) + ".arn");
    if (!ConvertGolden(golden_, ConfigStyle::kTransformers5, folder_ / "checkpoint", file,
                       {"--weights", GetParam().weights, "--target", target})) {
      return nullptr;
    }
    return OpenModel(file);
  }

  static arn_session_options Options(uint32_t backend) {
    arn_session_options options = GoldenOptions(backend, 16);
    options.trust_device = 1;
    return options;
  }

  static arn_memory_plan PlanOf(const arn_model* model, uint32_t backend) {
    const arn_session_options options = Options(backend);
    arn_memory_plan plan = ARN_MEMORY_PLAN_INIT;
    EXPECT_EQ(ARN_OK, arn_session_plan(model, &options, nullptr, 0, &plan));
    return plan;
  }

  // Sets *imported to what the device reads in the file. Empty: there is no Vulkan here.
  // piece: tokens of a call.
  std::vector<float> LogitsOn(const arn_model* model, uint32_t backend, uint64_t* imported,
                              uint32_t piece = 16) {
    const arn_session_options options = Options(backend);
    arn_session* created = nullptr;
    char error[512] = "";
    const arn_status status =
        arn_session_create(model, &options, nullptr, 0, error, sizeof error, &created);
    const SessionPtr session(created);
    if (status == ARN_UNSUPPORTED && HasNoVulkan(error)) return {};
    EXPECT_EQ(ARN_OK, status) << error;
    if (status != ARN_OK) return {};
    arn_backend_info info = ARN_BACKEND_INFO_INIT;
    EXPECT_EQ(ARN_OK, arn_session_backend(session.get(), &info));
    *imported = info.imported_bytes;
    device_ = info.device;
    return AllLogits(session.get(), golden_.vocab(), piece, golden_.all_ids());
  }

  TempFolder folder_;
  GoldenCase golden_;
  std::string device_;
};

TEST_P(VulkanTargetTest, SameLogitsAsAnyTarget_AndNoCopyOfTheWeights) {
  const ModelPtr portable = Make("portable"), packed = Make("vulkan");
  ASSERT_TRUE(portable != nullptr && packed != nullptr);
  uint32_t n_packed = 0;
  for (uint32_t i = 0; i < arn_model_tensor_count(packed.get()); ++i) {
    arn_tensor_info info = ARN_TENSOR_INFO_INIT;
    ASSERT_EQ(ARN_OK, arn_model_get_tensor(packed.get(), i, &info));
    n_packed += std::string(info.layout) == "device rows" ? 1 : 0;
    EXPECT_EQ(0u, info.offset % 256) << info.name;
  }
  EXPECT_GT(n_packed, 4u);
  uint64_t imported = 0;
  const std::vector<float> expected = LogitsOn(portable.get(), ARN_BACKEND_VULKAN, &imported);
  if (expected.empty()) GTEST_SKIP() << "no Vulkan";
  EXPECT_EQ(0u, imported);
  EXPECT_EQ(expected, LogitsOn(packed.get(), ARN_BACKEND_VULKAN, &imported));
  const arn_memory_plan plan = PlanOf(packed.get(), ARN_BACKEND_VULKAN);
  EXPECT_EQ(0u, PlanOf(portable.get(), ARN_BACKEND_VULKAN).importable_bytes);
  EXPECT_GT(plan.importable_bytes, plan.weights_bytes / 2);
  EXPECT_LT(plan.importable_bytes, plan.device_bytes);
  if (device_.find("llvmpipe") != std::string::npos) {
    EXPECT_EQ(plan.importable_bytes, imported);
  }
  EXPECT_EQ(LogitsOn(portable.get(), ARN_BACKEND_CPU, &imported),
            LogitsOn(packed.get(), ARN_BACKEND_CPU, &imported));
  EXPECT_EQ(0u, imported);
}

// Both read the weights in the file: the GPU in prompts, the CPU token by token.
TEST_P(VulkanTargetTest, SharedWithTheCpu_WeightsAreThereOnce) {
  const ModelPtr packed = Make("vulkan");
  ASSERT_NE(nullptr, packed);
  uint64_t imported = 0;
  const std::vector<float> both = LogitsOn(packed.get(), ARN_BACKEND_VULKAN_CPU, &imported, 1);
  if (both.empty()) GTEST_SKIP() << "no Vulkan";
  const arn_memory_plan shared = PlanOf(packed.get(), ARN_BACKEND_VULKAN_CPU);
  EXPECT_EQ(PlanOf(packed.get(), ARN_BACKEND_VULKAN).importable_bytes, shared.importable_bytes);
  EXPECT_EQ(0u, shared.repacked_bytes);
  // A CPU that computes alone has panels.
  EXPECT_GT(PlanOf(packed.get(), ARN_BACKEND_CPU).repacked_bytes, 0u);
  EXPECT_GT(PlanOf(packed.get(), ARN_BACKEND_AUTO).repacked_bytes, 0u);
  if (device_.find("llvmpipe") != std::string::npos) {
    EXPECT_EQ(shared.importable_bytes, imported);
  }
  const std::vector<float> alone = LogitsOn(packed.get(), ARN_BACKEND_CPU, &imported, 1);
  ASSERT_EQ(alone.size(), both.size());
  float largest = 0.0f, error = 0.0f;
  for (size_t i = 0; i < alone.size(); ++i) {
    largest = std::max(largest, std::fabs(alone[i]));
    error = std::max(error, std::fabs(alone[i] - both[i]));
  }
  const bool is_integer = std::string(GetParam().weights).substr(0, 3) == "int";
  EXPECT_LE(error, (is_integer ? 0.02f : 1e-4f) * largest);
}

INSTANTIATE_TEST_SUITE_P(Cases, VulkanTargetTest, testing::ValuesIn(kCases), [](const auto& p) {
  return std::string(p.param.model) + "_" + p.param.weights;
});

}  // namespace
}  // namespace arn::test
