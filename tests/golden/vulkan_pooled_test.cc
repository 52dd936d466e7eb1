// Embedding models and rerankers on the Vulkan backend: the vectors and scores of the reference.
#include "tests/golden/pooled_case.h"
#include "tests/golden/vulkan_reason.h"

namespace arn::test {
namespace {

constexpr double kVulkanTolerance = 3e-4;  // of the largest element

class VulkanPooledTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    ARN_NEEDS_CONVERTER();
    case_ = LoadPooled(std::string("pooled/") + GetParam());
    const std::filesystem::path bundle = folder_ / "f32.arn";
    ASSERT_TRUE(
        ConvertPooled(case_, folder_ / "f32", bundle, {"--weights", "f32", "--embedding", "f32"}));
    model_ = OpenModel(bundle);
    ASSERT_NE(nullptr, model_);
  }

  static arn_embed_options OptionsOf(uint32_t max_texts) {
    arn_embed_options options = ARN_EMBED_OPTIONS_INIT;
    options.backend = ARN_BACKEND_VULKAN;
    options.n_threads = 2;
    options.max_texts = max_texts;
    return options;
  }
  // Returns null if there is no driver, and after a failure.
  EmbedderPtr New(uint32_t max_texts) {
    const arn_embed_options options = OptionsOf(max_texts);
    arn_embedder* embedder = nullptr;
    char error[512] = "";
    Skip(arn_embedder_create(model_.get(), &options, nullptr, 0, error, sizeof error, &embedder),
         error);
    return EmbedderPtr(embedder);
  }
  static void Skip(arn_status status, const char* error) {
    if (status == ARN_UNSUPPORTED && HasNoVulkan(error)) GTEST_SKIP() << error;
    ASSERT_EQ(ARN_OK, status) << error;
  }

  TempFolder folder_;
  PooledCase case_;
  ModelPtr model_;
};

// The self-test compares another text with the CPU's results.
TEST_P(VulkanPooledTest, AnyBatch_GivesTheReferencesResults) {
  for (const uint32_t max_texts : {2u, 32u}) {
    const EmbedderPtr embedder = New(max_texts);
    if (embedder == nullptr) return;
    ExpectResults(case_, EmbedCase(case_, embedder.get()), kVulkanTolerance);
    ExpectResults(case_, EmbedCase(case_, embedder.get()), kVulkanTolerance);
  }
}

TEST_P(VulkanPooledTest, Plan_LeavesActivationsOnTheDevice) {
  char error[512] = "";
  arn_embed_plan_data on_device = ARN_EMBED_PLAN_DATA_INIT, on_host = ARN_EMBED_PLAN_DATA_INIT;
  arn_embed_options options = OptionsOf(4);
  const arn_status status = arn_embed_plan(model_.get(), &options, error, sizeof error, &on_device);
  if (status == ARN_UNSUPPORTED && HasNoVulkan(error)) GTEST_SKIP() << error;
  ASSERT_EQ(ARN_OK, status) << error;
  options.backend = ARN_BACKEND_CPU;
  ASSERT_EQ(ARN_OK, arn_embed_plan(model_.get(), &options, error, sizeof error, &on_host));
  EXPECT_GT(on_device.activations_bytes, 0u);
  EXPECT_EQ(on_device.constants_bytes + on_device.io_bytes, on_device.total_bytes);
  EXPECT_EQ(on_host.constants_bytes + on_host.io_bytes + on_host.activations_bytes,
            on_host.total_bytes);
}

// A row of each: token types and a Dense, scores, windows, both ways, the last token.
const char* const kCases[] = {"bert_first_dense",    "bert_score",      "mpnet_mean",
                              "modern_bert_windows", "gemma_both_ways", "qwen3_score"};
INSTANTIATE_TEST_SUITE_P(Cases, VulkanPooledTest, testing::ValuesIn(kCases),
                         [](const auto& p) { return std::string(p.param); });

TEST(VulkanPooledRefusalTest, OtherBackends_AreNamed) {
  ARN_NEEDS_CONVERTER();
  const PooledCase c = LoadPooled("pooled/bert_mean");
  const TempFolder folder;
  ASSERT_TRUE(ConvertPooled(c, folder / "c", folder / "m.arn", {"--weights", "f32"}));
  const ModelPtr model = OpenModel(folder / "m.arn");
  for (const uint32_t backend : {ARN_BACKEND_AUTO, ARN_BACKEND_VULKAN_CPU}) {
    arn_embed_options options = ARN_EMBED_OPTIONS_INIT;
    options.backend = backend;
    char error[512] = "";
    arn_embed_plan_data plan = ARN_EMBED_PLAN_DATA_INIT;
    EXPECT_EQ(ARN_UNSUPPORTED, arn_embed_plan(model.get(), &options, error, sizeof error, &plan));
    EXPECT_NE(std::string::npos, std::string(error).find("embedders run on one backend")) << error;
  }
}

}  // namespace
}  // namespace arn::test
