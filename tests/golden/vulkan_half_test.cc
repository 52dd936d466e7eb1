// Whole models with f16 and bf16 weights whose prompts multiply in f16 (arn_session_options.
// half_products), against the same with f32 products.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "kernels/vulkan/backend_vulkan.h"
#include "kernels/vulkan/lower/matmul_variants.h"
#include "runtime/session/session.h"
#include "tests/golden/golden_case.h"
#include "tests/support/vulkan_faults.h"

namespace arn::test {
namespace {

struct HalfCase {
  const char* golden;  // "fable": the trained model of models/
  const char* weights;
  double error;       // of the logits, relative (root mean square)
  double divergence;  // of a token's choices, in nats
};
void PrintTo(const HalfCase& c, std::ostream* out) { *out << c.golden << " " << c.weights; }

class VulkanHalfModelTest : public testing::TestWithParam<HalfCase> {
 protected:
  void SetUp() override {
    ARN_NEEDS_CONVERTER();
    const std::string problem = NoVulkan();
    if (!problem.empty()) GTEST_SKIP() << problem;
    const std::vector<std::string> convert = {"--weights", GetParam().weights};
    const std::filesystem::path bundle = folder_ / "model.arn";
    if (std::string(GetParam().golden) == "fable") {
      ASSERT_TRUE(Convert(SourcePath("models/fable/fable-2m"), bundle, convert));
      const auto expected =
          nlohmann::json::parse(ReadText(SourcePath("models/fable/expected.json")));
      for (const char* part : {"ids_used", "greedy_ids"}) {
        for (const int32_t id : expected["prompts"][0][part]) ids_.push_back(id);
      }
    } else {
      const GoldenCase golden = LoadGolden(GetParam().golden);
      ASSERT_TRUE(ConvertGolden(golden, ConfigStyle::kTransformers5, folder_ / "checkpoint", bundle,
                                convert));
      ids_ = golden.all_ids();
    }
    model_ = OpenModel(folder_ / "model.arn");
    ASSERT_NE(nullptr, model_);
    vocab_ = VocabSize(model_.get());
  }

  std::vector<float> Logits(uint32_t variant, std::string* kernels) {
    SessionOptions options;
    options.k_type = options.v_type = KvType::kF32;
    options.n_threads = 1;
    options.all_logits = true;
    options.trusts_device = true;
    SessionPlan plan;
    Diag diag;
    const auto& model = *reinterpret_cast<const Model*>(model_.get());
    const Backend* backend = vulkan::VariantBackend(variant);
    EXPECT_EQ(Status::kOk, PlanSession(model, backend, options, Session::Objects(), &plan, &diag))
        << diag.text();
    std::vector<std::byte> block(plan.TotalBytes() + kRegionAlign);
    void* at = block.data();
    size_t room = block.size();
    std::align(kRegionAlign, plan.TotalBytes(), at, room);
    Session* made = nullptr;
    EXPECT_EQ(Status::kOk,
              Session::Create(model, plan, {static_cast<std::byte*>(at), plan.TotalBytes()}, {},
                              &made, &diag))
        << diag.text();
    const SessionPtr session(reinterpret_cast<arn_session*>(made));
    arn_backend_info info = ARN_BACKEND_INFO_INIT;
    EXPECT_EQ(ARN_OK, arn_session_backend(session.get(), &info));
    *kernels = info.kernels;
    return AllLogits(session.get(), vocab_, 64, ids_);
  }

  TempFolder folder_;
  ModelPtr model_;
  uint32_t vocab_ = 0;
  std::vector<int32_t> ids_;
};

// Kullback-Leibler divergence of the softmax of two rows of logits, in nats.
double Divergence(const float* p, const float* q, uint32_t n) {
  const auto log_sum = [n](const float* x) {
    const double most = static_cast<double>(*std::max_element(x, x + n));
    double sum = 0;
    for (uint32_t i = 0; i < n; ++i) sum += std::exp(static_cast<double>(x[i]) - most);
    return most + std::log(sum);
  };
  const double of_p = log_sum(p), of_q = log_sum(q);
  double total = 0;
  for (uint32_t i = 0; i < n; ++i) {
    const double log_p = static_cast<double>(p[i]) - of_p;
    total += std::exp(log_p) * (log_p - static_cast<double>(q[i]) + of_q);
  }
  return total;
}

TEST_P(VulkanHalfModelTest, Logits_AreNearThoseOfF32Products) {
  std::string kernels;
  const std::vector<float> expected = Logits(0, &kernels);
  uint32_t variant = 0;
  while (!vulkan::GemmVariantOf(variant).is_half) ++variant;
  const std::vector<float> found = Logits(variant, &kernels);
  if (kernels.find("gemm-half") == std::string::npos) GTEST_SKIP() << kernels;
  ASSERT_EQ(expected.size(), found.size());
  double errors = 0, squares = 0, worst = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    const auto value = static_cast<double>(expected[i]);
    const double off = static_cast<double>(found[i]) - value;
    errors += off * off;
    squares += value * value;
  }
  for (size_t i = 0; i < found.size(); i += vocab_) {
    worst = std::max(worst, Divergence(&expected[i], &found[i], vocab_));
  }
  const double error = std::sqrt(errors / squares);
  RecordProperty("error", std::to_string(error));
  RecordProperty("divergence", std::to_string(worst));
  EXPECT_GT(error, 1e-6) << "not in f16";
  EXPECT_LT(error, GetParam().error);
  EXPECT_LT(worst, GetParam().divergence);
}

// Random weights spread the errors more than trained ones.
INSTANTIATE_TEST_SUITE_P(
    Cases, VulkanHalfModelTest,
    testing::Values(HalfCase{"tied", "f16", 6e-3, 1e-4}, HalfCase{"odd_sizes", "f16", 6e-3, 1e-4},
                    HalfCase{"qk_norm", "bf16", 6e-3, 1e-4}, HalfCase{"fable", "f16", 2e-3, 3e-5}),
    [](const auto& i) { return std::string(i.param.golden) + "_" + i.param.weights; });

}  // namespace
}  // namespace arn::test
