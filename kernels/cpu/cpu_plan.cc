#include "kernels/cpu/cpu_plan.h"

#include "kernels/contract/check.h"
#include "kernels/contract/code_type.h"
#include "kernels/contract/ops.h"
#include "kernels/cpu/cpu_state.h"
#include "kernels/cpu/repack.h"
#include "kernels/cpu/simd/kernels.h"
#include "kernels/pack/pack.h"
#include "platform/base/arith.h"

namespace arn::cpu {
namespace {

// With blocks of 32 the number of planes does not affect the bytes (kernels/contract/weight.h).
bool SameBytes(WeightLayout a, WeightLayout b) {
  a.planes = b.planes = 0;
  return a == b;
}

}  // namespace

QuantizedLayout QuantizedRows(bool has_sums, uint32_t rows, uint32_t cols, bool is_split,
                              uint32_t n_parts) {
  const uint64_t n = is_split ? 2 * uint64_t{rows} : rows;
  QuantizedLayout q;
  q.stride_bytes = AlignUp(cols, kSliceAlign);
  // A word for each pair of blocks, which have at least half a unit.
  if (has_sums) q.stride_bytes += AlignUp(CeilDiv(cols, kCodeUnit) * 4, kSliceAlign);
  q.rows_offset =
      AlignUp((n + uint64_t{n_parts} * kExtraQuantizedRows) * sizeof(QuantizedRow), kSliceAlign);
  q.bytes = q.left_offset = q.rows_offset + n * q.stride_bytes;
  if (is_split) q.bytes += uint64_t{rows} * cols * sizeof(float);
  return q;
}

uint64_t MatmulRowBytes(DType dtype, uint32_t rows, uint32_t cols, bool is_split,
                        uint32_t n_parts) {
  if (IsInteger(dtype)) {
    return QuantizedRows(kHasLowBits && HasMinimums(dtype), rows, cols, is_split, n_parts).bytes;
  }
  return dtype == DType::kF32 || rows == 1 ? 0 : uint64_t{rows} * cols * sizeof(float);
}

bool ReadsDeviceRows(const Program& program, const CpuOptions& options) {
  return kHasDeviceRows && options.reads_device_rows && !program.splits_rows;
}

bool NeedsRepack(const Weight& weight, const GemmKernels& kernels) {
  return !SameBytes(kernels.For(weight)->layout, weight.layout);
}

uint64_t RepackedBytes(const Weight& weight, const GemmKernels& kernels) {
  uint64_t bytes = 0;
  const WeightLayout& layout = kernels.For(weight)->layout;
  return PackedBytes(weight.dtype, layout, weight.rows, weight.cols, &bytes) ? bytes : 0;
}

bool UsedInMatmul(const Program& program, WeightId id) {
  for (const Step& step : program.steps) {
    if (const auto* linear = step.If<LinearParams>()) {
      if (linear->weight == id) return true;
    } else if (OperandsOf(step).Multiplies(id)) {
      return true;
    }
  }
  return false;
}

uint32_t MatmulRows(const Program& program, WeightId id) {
  uint64_t rows = program.max_rows;
  for (const Step& step : program.steps) {
    const auto* linear = step.If<LinearParams>();
    if (linear == nullptr || linear->weight != id) continue;
    rows = Max(rows, MaxRowsOf(program, program.values[step.out]));
  }
  return static_cast<uint32_t>(rows);
}

uint64_t ThreadScratchBytes(const Program& program) {
  uint64_t bytes = 0;
  for (const AttentionKind& kind : program.kinds) {
    if (kind.n_heads != 0) bytes = Max(bytes, AttentionScratchBytes(kind));
  }
  return bytes;
}

uint64_t RouteWords(const Program& program) {
  uint64_t words = 0;
  for (const Step& step : program.steps) {
    const auto* p = step.If<ExpertsParams>();
    if (p == nullptr) continue;
    words = Max(words, p->n_experts + program.max_rows * (2 * uint64_t{p->n_chosen} + 1));
  }
  return words;
}

Status PlanCpu(const Program& program, const BackendOptions& all_options, Layout* layout,
               BackendPlan* plan, Diag* diag) {
  const CpuOptions& options = all_options.cpu;
  *plan = BackendPlan();
  ARN_TRY(CheckProgram(program, diag));
  if (options.n_threads == 0 || options.n_prefill_threads == 0 ||
      options.max_threads() > kMaxThreads) {
    return diag->Fail(Status::kBadArgument, "%u and %u threads, expected 1 to %u",
                      options.n_threads, options.n_prefill_threads, kMaxThreads);
  }
  GemmKernels kernels;
  ARN_TRY(InitGemmKernels(ReadsDeviceRows(program, options), &kernels, diag));
  uint64_t quantized_bytes = 0;
  uint64_t normed_bytes = 0;
  for (uint32_t i = 0; i < program.weights.size(); ++i) {
    const Weight& w = program.weights[i];
    if (w.is_vector || !UsedInMatmul(program, i)) continue;
    if (kernels.For(w)->tile_rows == 0) {
      return diag->Fail(Status::kUnsupported, "weight %u: this library has no kernels for %s", i,
                        DTypeName(w.dtype));
    }
    quantized_bytes = Max(quantized_bytes, MatmulRowBytes(w.dtype, MatmulRows(program, i), w.cols,
                                                          program.splits_rows));
    if (!NeedsRepack(w, kernels)) continue;
    const uint64_t bytes = RepackedBytes(w, kernels);
    uint64_t padded_total;
    if (bytes == 0 ||
        !CheckedAdd(plan->repacked_weight_bytes, AlignUp(bytes, kSliceAlign), &padded_total)) {
      return diag->Fail(Status::kUnsupported, "weight %u (%s, %u x %u) has no layout on this CPU",
                        i, DTypeName(w.dtype), w.rows, w.cols);
    }
    plan->repacked_weight_bytes = padded_total;
    quantized_bytes = Max(quantized_bytes, RepackScratchBytes(w, kernels.For(w)->layout));
  }
  for (const Step& step : program.steps) {
    if (const auto* experts = step.If<ExpertsParams>()) {
      for (WeightId id = experts->weight; id < experts->gate_up_of(experts->n_experts); ++id) {
        const Weight& w = program.weights[id];
        quantized_bytes = Max(quantized_bytes, MatmulRowBytes(w.dtype, program.max_rows, w.cols,
                                                              program.splits_rows, kMaxMatrixRows));
      }
    }
    if (step.op() != Op::kLogits) continue;
    normed_bytes = Max(normed_bytes, (uint64_t{program.max_logit_rows} + 1) *
                                         program.values[step.in].width * sizeof(float));
  }
  ARN_ASSIGN(plan->slices[kStateSlice], layout->Add(Region::kConstants, sizeof(State)));
  ARN_ASSIGN(plan->slices[kWeightsSlice],
             layout->AddArray(Region::kConstants, program.weights.size(), sizeof(std::byte*)));
  ARN_ASSIGN(plan->slices[kRepackedSlice],
             layout->Add(Region::kConstants, plan->repacked_weight_bytes));
  ARN_ASSIGN(plan->slices[kQuantizedSlice], layout->Add(Region::kActivations, quantized_bytes));
  ARN_ASSIGN(plan->slices[kNormedSlice], layout->Add(Region::kActivations, normed_bytes));
  ARN_ASSIGN(
      plan->slices[kScratchSlice],
      layout->AddArray(Region::kActivations, options.max_threads(), ThreadScratchBytes(program)));
  ARN_ASSIGN(plan->slices[kPartialsSlice],
             layout->AddArray(Region::kActivations, PartialFloats(program, options.max_threads()),
                              sizeof(float)));
  ARN_ASSIGN(plan->slices[kRoutesSlice],
             layout->AddArray(Region::kActivations, RouteWords(program), sizeof(uint32_t)));
  if (kHasAdapters) {
    ARN_ASSIGN(
        plan->slices[kLowRankSlice],
        layout->AddArray(Region::kActivations,
                         uint64_t{program.max_rows} * RankStride(program.max_rank), sizeof(float)));
    plan->adapter_bytes = plan->slices[kLowRankSlice].bytes;
  }
  return Status::kOk;
}

}  // namespace arn::cpu
