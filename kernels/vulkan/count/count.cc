#include "kernels/vulkan/count/count.h"

#include "kernels/vulkan/count/dispatch_work.h"
#include "kernels/vulkan/lower/lower.h"
#include "kernels/vulkan/lower/traits.h"
#include "platform/base/arith.h"

namespace arn::vulkan {
namespace {

const char* NameOf(Shader shader) {
  switch (shader) {
    case Shader::kEmbed: return "embed";
    case Shader::kRopeAngles: return "rope_angles";
    case Shader::kNorm: return "norm";
    case Shader::kQuantize: return "quantize";
    case Shader::kGemvFloat:
    case Shader::kGemvInt: return "gemv";
    case Shader::kGemmFloat:
    case Shader::kGemmInt: return "gemm";
    case Shader::kGemmCoop: return "gemm_coop";
    case Shader::kGemmHalf: return "gemm_half";
    case Shader::kQkvRope: return "qkv_rope";
    case Shader::kAttention: return "attention";
    case Shader::kAttentionTile: return "attention_tile";
    case Shader::kGatedAct: return "act";
    case Shader::kKvEdit: return "kv_edit";
    case Shader::kChoose: return "choose";
    case Shader::kRoute: return "route";
    case Shader::kExperts: return "experts";
    case Shader::kConv: return "conv";
    case Shader::kScan: return "scan";
    case Shader::kLinearAttention: return "linear_attention";
    case Shader::kGate: return "gate";
    case Shader::kIm2col: return "im2col";
    case Shader::kAddPositions: return "add_positions";
    case Shader::kScaleRow: return "scale_row";
    case Shader::kMultiply: return "multiply";
    case Shader::kColumns: return "columns";
    case Shader::kAddEmbeddings: return "add_embeddings";
    case Shader::kClamp: return "clamp";
    case Shader::kPool: return "pool";
    case Shader::kHeadLinear: return "head_linear";
    case Shader::kAttentionCoop: return "attention_coop";
  }
  return "";
}

bool IsMatmul(Shader shader) {
  return shader == Shader::kGemvFloat || shader == Shader::kGemvInt ||
         shader == Shader::kGemmFloat || shader == Shader::kGemmInt ||
         shader == Shader::kGemmCoop || shader == Shader::kGemmHalf;
}

void Describe(const Dispatch& d, DispatchCost* out) {
  out->kernel = NameOf(d.shader);
  if (IsMatmul(d.shader)) {
    const auto push = d.Push<MatmulPush>();
    out->dtype = DTypeName(static_cast<DType>(d.constants[kMatmulTypeId]));
    out->rows = push.n_outs;
    out->cols = push.cols;
  }
  if (d.shader == Shader::kHeadLinear) {
    const auto push = d.Push<HeadLinearPush>();
    out->dtype = DTypeName(static_cast<DType>(d.constants[kHeadTypeId]));
    out->rows = push.n_outs;
    out->cols = push.cols;
  }
  const bool is_merge = d.shader == Shader::kAttention && d.constants[kAttentionIsMergeId] == 1;
  if (is_merge) out->kernel = "attention_merge";
}

class WorkCounter final : public DispatchSink {
 public:
  WorkCounter(const Program& program, const CountedRun& run,
              void (*visit)(void* user, const DispatchCost& cost), void* user)
      : program_(program), visit_(visit), user_(user) {
    context_.run = run;
    kind_ = RunKindOf(run.n_rows, run.n_before, run.is_encoder ? 0 : kAttentionSegment);
  }

  Status BeginStep(uint32_t step) override {
    is_counted_ = (step < program_.n_encoder_steps) == context_.run.is_encoder;
    const auto* experts = program_.steps[step].If<ExpertsParams>();
    context_.n_experts = experts == nullptr ? 0 : experts->n_experts;
    return Status::kOk;
  }
  Status BeginEdits(uint32_t) override {
    is_counted_ = false;
    return Status::kOk;
  }
  Status BeginChoice(uint32_t* n_dispatches) override {
    *n_dispatches = n_lowered_;
    is_counted_ = context_.run.n_rows == 1 && !context_.run.is_encoder;
    return Status::kOk;
  }

  Status Add(const Dispatch& d, Diag*) override {
    ++n_lowered_;
    if (!is_counted_ || !d.IsIn(kind_)) return Status::kOk;
    const uint32_t n_rows = context_.run.n_rows;
    const uint32_t pooled = program_.pool_rows == 0 ? 1 : n_rows / program_.pool_rows;
    const uint32_t logits = program_.max_logit_rows == 0 ? 0 : 1;
    const uint32_t rows = RowsOf(GridOf(d), {n_rows, pooled, logits, 1});
    DispatchCost cost;
    Describe(d, &cost);
    cost.waits = !d.joins_previous;
    // A grid without rows is dispatched too, and does nothing.
    if (rows != 0) cost.work = WorkOf(d, rows, context_);
    SequenceRows sequence = {0, n_rows, context_.run.n_before};
    sequence.encoder_rows = context_.run.encoder_rows;
    if (d.segments.positions != 0) {
      const uint32_t n = CountSegments(d.segments, {&sequence, 1}, n_rows);
      const bool is_merge = d.rows == GridRows::kShared;
      if (is_merge && n == 1) cost.work = KernelWork();
      if (!is_merge) cost.work.groups *= n;
    }
    visit_(user_, cost);
    return Status::kOk;
  }

 private:
  const Program& program_;
  void (*const visit_)(void* user, const DispatchCost& cost);
  void* const user_;
  WorkContext context_;
  uint32_t kind_ = 0, n_lowered_ = 0;
  bool is_counted_ = false;
};

}  // namespace

Status CountRun(const Program& program, const GpuTraits& gpu, const CountedRun& run,
                void (*visit)(void* user, const DispatchCost& cost), void* user, Diag* diag) {
  if (gpu.matmul_variant >= Max(kGemvVariants, kGemmVariants)) {
    return diag->Fail(Status::kNotFound, "there is no variant %u of matmuls", gpu.matmul_variant);
  }
  Traits traits;
  SetTraits(gpu, &traits);
  for (auto& of_mode : traits.choices.of) {
    for (uint8_t& choice : of_mode) choice = static_cast<uint8_t>(gpu.matmul_variant);
  }
  WorkCounter counter(program, run, visit, user);
  const Workspace nowhere = {};
  Lowering lowering(program, {}, nowhere, traits);
  return lowering.Run(&counter, diag);
}

}  // namespace arn::vulkan
