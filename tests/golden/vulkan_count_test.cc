// The counts of CostOps against those of the shaders themselves, which count what they execute on a
// software device (counting_device.h): runs of many rows, a few and one, and of encoders.
#include <memory>
#include <string>
#include <vector>

#include "kernels/vulkan/backend_vulkan.h"
#include "runtime/session/session.h"
#include "tests/golden/encoder_case.h"
#include "tests/golden/golden_case.h"
#include "tests/golden/vulkan_counts.h"
#include "tests/support/counting_device.h"
#include "tests/support/vulkan_faults.h"

namespace arn::test {
namespace {

using vulkan::Shader;

struct CountCase {
  const char* golden;
  const char* weights;
  uint32_t kv;
};
void PrintTo(const CountCase& c, std::ostream* out) { *out << c.golden << " " << c.weights; }

class VulkanCountTest : public testing::TestWithParam<CountCase> {
 protected:
  void SetUp() override {
    ARN_NEEDS_CONVERTER();
    const std::string problem = NoVulkan();
    if (!problem.empty()) GTEST_SKIP() << problem;
    const GoldenCase golden = LoadGolden(GetParam().golden);
    vocab_ = golden.vocab();
    ASSERT_TRUE(ConvertGolden(golden, ConfigStyle::kTransformers5, folder_ / "checkpoint",
                              folder_ / "model.arn", {"--weights", GetParam().weights}));
    model_ = OpenModel(folder_ / "model.arn");
    ASSERT_NE(nullptr, model_);
  }

  TempFolder folder_;
  ModelPtr model_;
  uint32_t vocab_ = 0;
};

TEST_P(VulkanCountTest, EachShader_DoesWhatIsCounted) {
  CountingDevice counting;
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.backend = ARN_BACKEND_VULKAN;
  options.device = "0";
  options.kv_type = GetParam().kv;
  const bool has_quantised_pages = GetParam().kv >= ARN_KV_INT4;
  // The counts have all whole pages before a run quantised.
  const uint32_t first_rows = has_quantised_pages ? 41 : 40;
  options.prefill_chunk = first_rows;
  if (has_quantised_pages) {
    options.kv_page_tokens = 8;
    options.kv_residual = 1;
  }
  options.n_threads = 1;
  options.trust_device = 1;  // no test of the device, whose runs would be counted
  char error[512] = "";
  arn_session* made = nullptr;
  ASSERT_EQ(ARN_OK,
            arn_session_create(model_.get(), &options, nullptr, 0, error, sizeof error, &made))
      << error;
  const SessionPtr session(made);
  const Program& program = reinterpret_cast<const Session*>(made)->plan().program;
  CountedRun run;
  for (const uint32_t n_rows : {first_rows, 5u, 1u}) {
    SCOPED_TRACE(testing::Message() << n_rows << " rows after " << run.n_before);
    run.n_rows = n_rows;
    std::vector<int32_t> ids(n_rows);
    for (uint32_t i = 0; i < n_rows; ++i) ids[i] = static_cast<int32_t>((7 * i + n_rows) % vocab_);
    counting.Reset();
    ASSERT_EQ(ARN_OK, arn_session_prefill(made, ids.data(), ids.size()));
    const Sums expected = Expected(program, run);
    for (uint32_t s = 0; s < vulkan::kShaderCount; ++s) {
      SCOPED_TRACE(kShaderNames[s]);
      const auto shader = static_cast<Shader>(s);
      if (has_quantised_pages && shader == Shader::kKvEdit) continue;
      const ShaderCounts found = counting.Of(shader);
      const KernelWork& work = expected.Of(shader);
      // Many rows: the counts spread them evenly over the experts.
      const bool is_tiled = shader == Shader::kGemmFloat || shader == Shader::kGemmInt;
      if (expected.has_experts() && is_tiled && n_rows > vulkan::kFewRows) {
        EXPECT_NEAR(found.loaded, work.loaded, 0.05 * found.loaded);
        EXPECT_EQ(work.stored, found.stored);
        continue;
      }
      EXPECT_EQ(work.loaded, found.loaded);
      EXPECT_EQ(work.stored, found.stored);
      ExpectProducts(shader, work, found);
    }
    run.n_before += n_rows;
  }
}

// Encoders of token ids and of frames, and decoders that read their rows.
class VulkanEncoderCountTest : public EncoderCaseTest {};

TEST_P(VulkanEncoderCountTest, EachShader_DoesWhatIsCounted) {
  const std::string problem = NoVulkan();
  if (!problem.empty()) GTEST_SKIP() << problem;
  CountingDevice counting;
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.backend = ARN_BACKEND_VULKAN;
  options.device = "0";
  options.kv_type = ARN_KV_F32;
  options.n_threads = 1;
  options.trust_device = 1;
  const SessionPtr session = NewSession(model_.get(), options);
  ASSERT_NE(nullptr, session);
  const Program& program = reinterpret_cast<const Session*>(session.get())->plan().program;
  arn_model_info info = ARN_MODEL_INFO_INIT;
  ASSERT_EQ(ARN_OK, arn_model_get_info(model_.get(), &info));
  const auto inputs = static_cast<uint32_t>(golden_.feature_width == 0
                                                ? golden_.encoder_ids.size()
                                                : golden_.features.size() / golden_.feature_width);
  CountedRun run;
  run.encoder_rows = (inputs - info.encoder_more_frames) / info.encoder_row_frames;
  counting.Reset();
  ASSERT_TRUE(EncodeInput(golden_, session.get()));
  run.is_encoder = true;
  run.n_rows = run.encoder_rows;
  ExpectCounts(counting, program, run);

  run.is_encoder = false;
  for (const uint32_t n_rows : {20u, 5u, 1u}) {
    run.n_rows = n_rows;
    const std::vector<int32_t> ids(n_rows, golden_.prompt[0]);
    counting.Reset();
    ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), ids.data(), ids.size()));
    ExpectCounts(counting, program, run);
    run.n_before += n_rows;
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, VulkanEncoderCountTest,
                         testing::Values("features", "relative_bias", "relative_bias_gated",
                                         "windows_both_ways"),
                         [](const auto& i) { return std::string(i.param); });

INSTANTIATE_TEST_SUITE_P(
    Cases, VulkanCountTest,
    testing::Values(
        CountCase{"tied", "int8", ARN_KV_INT8}, CountCase{"window_from_layer", "int4", ARN_KV_F16},
        CountCase{"learned_positions", "f16", ARN_KV_F32},
        CountCase{"odd_sizes", "f32", ARN_KV_F32}, CountCase{"qk_norm", "bf16", ARN_KV_INT8},
        CountCase{"sinks", "int8", ARN_KV_F32}, CountCase{"scan", "int8", ARN_KV_F32},
        CountCase{"short_convolutions", "int4", ARN_KV_INT8},
        CountCase{"per_layer_embeddings", "int8", ARN_KV_F16},
        CountCase{"xielu", "f32", ARN_KV_F32}, CountCase{"alibi", "int8", ARN_KV_F32},
        CountCase{"chunks", "int4", ARN_KV_F16}, CountCase{"experts", "int8", ARN_KV_F32},
        CountCase{"corrected_routing", "int4", ARN_KV_F32},
        CountCase{"shared_expert_gate", "f16", ARN_KV_F32},
        CountCase{"global_heads", "bf16", ARN_KV_F32},
        CountCase{"parallel_residual", "int8", ARN_KV_F16},
        CountCase{"delta_rule", "int8", ARN_KV_F16},
        CountCase{"delta_rule_split_odd", "f32", ARN_KV_F32},
        CountCase{"linear_attention", "int8", ARN_KV_F32},
        CountCase{"linear_attention_limits", "f32", ARN_KV_F32},
        CountCase{"parallel_heads", "int4", ARN_KV_INT8},
        CountCase{"head_gates_odd", "bf16", ARN_KV_F32},
        CountCase{"single_blocks_experts", "f32", ARN_KV_F32},
        CountCase{"latent_attention", "int8", ARN_KV_F16},
        CountCase{"latent_depth_factors_odd", "bf16", ARN_KV_F32},
        CountCase{"router_groups", "int8", ARN_KV_F32}, CountCase{"odd_sizes", "int4", ARN_KV_INT4},
        CountCase{"qk_norm", "int8", ARN_KV_INT4}, CountCase{"tied", "int4", ARN_KV_INT2}),
    [](const testing::TestParamInfo<CountCase>& p) {
      return std::string(p.param.golden) + "_" + p.param.weights;
    });

}  // namespace
}  // namespace arn::test
