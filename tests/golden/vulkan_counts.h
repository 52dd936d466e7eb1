// What CostOps counts for each shader, against what the shaders count themselves
// (counting_device.h).
#pragma once

#include <gtest/gtest.h>

#include "kernels/vulkan/count/dispatch_work.h"
#include "kernels/vulkan/device/device.h"
#include "kernels/vulkan/lower/traits.h"
#include "tests/support/counting_device.h"

namespace arn::test {

inline constexpr const char* kShaderNames[vulkan::kShaderCount] = {
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
    is_counted_ = (step < program_.n_encoder_steps) == run_.is_encoder;
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
    const uint32_t kind = vulkan::RunKindOf(run_.n_rows, run_.n_before,
                                            run_.is_encoder ? 0 : vulkan::kAttentionSegment);
    const uint32_t pooled = program_.pool_rows == 0 ? 1 : run_.n_rows / program_.pool_rows;
    const uint32_t rows = RowsOf(vulkan::GridOf(d), {run_.n_rows, pooled, 1, 1});
    if (!is_counted_ || !d.IsIn(kind) || rows == 0) return Status::kOk;
    const KernelWork work = WorkOf(d, rows, context_);
    KernelWork& sum = work_[static_cast<uint32_t>(d.shader)];
    sum.loaded += work.loaded;
    sum.stored += work.stored;
    sum.int_products += work.int_products;
    sum.float_products += work.float_products;
    return Status::kOk;
  }

  bool has_experts() const { return has_experts_; }
  const KernelWork& Of(vulkan::Shader shader) const { return work_[static_cast<uint32_t>(shader)]; }

 private:
  const Program& program_;
  const CountedRun run_;
  vulkan::WorkContext context_;
  bool is_counted_ = true, has_experts_ = false;
  KernelWork work_[vulkan::kShaderCount];
};

// Counts the run as the lowering does for the device.
inline Sums Expected(const Program& program, const CountedRun& run) {
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

// Expects a shader's products to be those that were counted.
inline void ExpectProducts(vulkan::Shader shader, const KernelWork& work,
                           const ShaderCounts& found) {
  EXPECT_EQ(work.int_products, found.int_products);
  if (shader == vulkan::Shader::kGemvFloat || shader == vulkan::Shader::kGemmFloat ||
      shader == vulkan::Shader::kHeadLinear) {
    EXPECT_EQ(work.float_products, found.dots);
  } else if (shader == vulkan::Shader::kAttention) {
    EXPECT_EQ(work.float_products, 2 * found.dots);  // values are multiplied by a scalar
  } else if (shader == vulkan::Shader::kAttentionTile) {
    EXPECT_EQ(work.float_products, found.dots + found.vector_fmas);
  }
}

// Expects every shader's counts to be those of the run.
inline void ExpectCounts(const CountingDevice& counting, const Program& program,
                         const CountedRun& run, uint32_t n_runs = 1) {
  const Sums expected = Expected(program, run);
  for (uint32_t s = 0; s < vulkan::kShaderCount; ++s) {
    SCOPED_TRACE(testing::Message() << kShaderNames[s] << ", " << run.n_rows << " rows");
    const auto shader = static_cast<vulkan::Shader>(s);
    KernelWork work = expected.Of(shader);
    work.loaded *= n_runs;
    work.stored *= n_runs;
    work.int_products *= n_runs;
    work.float_products *= n_runs;
    EXPECT_EQ(work.loaded, counting.Of(shader).loaded);
    EXPECT_EQ(work.stored, counting.Of(shader).stored);
    ExpectProducts(shader, work, counting.Of(shader));
  }
}

}  // namespace arn::test
