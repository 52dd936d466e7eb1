// The counts of CostOps against those of the shaders themselves, which count what they execute on a
// software device (counting_device.h): runs of many rows, a few and one.
#include <memory>
#include <string>
#include <vector>

#include "kernels/vulkan/backend_vulkan.h"
#include "kernels/vulkan/count/dispatch_work.h"
#include "kernels/vulkan/device/device.h"
#include "kernels/vulkan/lower/traits.h"
#include "runtime/session/session.h"
#include "tests/golden/golden_case.h"
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

constexpr const char* kShaderNames[vulkan::kShaderCount] = {
    "embed",         "rope_angles",    "norm",
    "quantize",      "gemv_float",     "gemv_int",
    "gemm_float",    "gemm_int",       "qkv_rope",
    "attention",     "gated_act",      "kv_edit",
    "choose",        "route",          "experts",
    "conv",          "scan",           "im2col",
    "add_positions", "scale_row",      "multiply",
    "columns",       "add_embeddings", "clamp",
    "pool",          "attention_tile", "linear_attention",
    "gate",          "gemm_coop",      "gemm_half",
    "head_linear",   "attention_coop"};

// Adds up the work of each shader over the steps.
class Sums final : public vulkan::DispatchSink {
 public:
  Sums(const Program& program, const CountedRun& run) : program_(program), run_(run) {}

  Status BeginStep(uint32_t step) override {
    const auto* experts = program_.steps[step].If<ExpertsParams>();
    has_experts_ |= experts != nullptr;
    context_.run = run_;
    context_.n_experts = experts == nullptr ? 0u : experts->n_experts;
    return Status::kOk;
  }
  Status BeginEdits(uint32_t) override {
    is_counted_ = false;
    return Status::kOk;
  }
  Status BeginChoice(uint32_t* n) override {
    is_counted_ = false;
    *n = 0;
    return Status::kOk;
  }
  Status Add(const vulkan::Dispatch& d, Diag*) override {
    const auto mode = static_cast<uint32_t>(vulkan::ModeOf(run_.n_rows));
    const uint32_t rows = RowsOf(vulkan::GridOf(d), {run_.n_rows, 0, 1, 1});
    if (!is_counted_ || (d.modes >> mode & 1) == 0 || rows == 0) return Status::kOk;
    const KernelWork work = WorkOf(d, rows, context_);
    KernelWork& sum = work_[static_cast<uint32_t>(d.shader)];
    sum.loaded += work.loaded;
    sum.stored += work.stored;
    sum.int_products += work.int_products;
    sum.float_products += work.float_products;
    return Status::kOk;
  }

  bool has_experts() const { return has_experts_; }
  const KernelWork& Of(Shader shader) const { return work_[static_cast<uint32_t>(shader)]; }

 private:
  const Program& program_;
  const CountedRun run_;
  vulkan::WorkContext context_;
  bool is_counted_ = true, has_experts_ = false;
  KernelWork work_[vulkan::kShaderCount];
};

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

  // Counts the run as the lowering does for the device.
  Sums Expected(const Program& program, const CountedRun& run) {
    vulkan::Device device;
    Diag diag;
    EXPECT_EQ(Status::kOk, device.Open(vulkan::DeviceChoice(), &diag)) << diag.text();
    vulkan::Traits traits;
    vulkan::SetTraits(vulkan::GpuTraitsOf(device), &traits);
    device.Close();
    Sums sums(program, run);
    const vulkan::Workspace nowhere = {};
    vulkan::Lowering lowering(program, {}, nowhere, traits);
    EXPECT_EQ(Status::kOk, lowering.Run(&sums, &diag)) << diag.text();
    return sums;
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
      EXPECT_EQ(work.int_products, found.int_products);
      if (shader == Shader::kGemvFloat || shader == Shader::kGemmFloat ||
          shader == Shader::kHeadLinear) {
        EXPECT_EQ(work.float_products, found.dots);
      } else if (shader == Shader::kAttention) {
        EXPECT_EQ(work.float_products, 2 * found.dots);  // values are multiplied by a scalar
      } else if (shader == Shader::kAttentionTile) {
        EXPECT_EQ(work.float_products, found.dots + found.vector_fmas);
      }
    }
    run.n_before += n_rows;
  }
}

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
