// State of the CPU backend between load and unload. Placed in Region::kConstants.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "kernels/contract/backend.h"
#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/threads.h"
#include "kernels/cpu/xnn/gemm.h"

namespace arn::cpu {

struct State {
  const Program* program = nullptr;
  CpuOptions options;
  Memory memory;
  Threads threads;
  GemmKernels gemm;
  SimdKernels simd;
  const std::byte** matrices = nullptr;  // [weights]: addresses in the kernels' layouts
  std::byte* quantized = nullptr;        // QuantizedRows of the current matmul
  // [max_logit_rows + 1, hidden]: from the last run with logits, and of one that may yet be cut.
  float* normed = nullptr;
  std::byte* scratch = nullptr;  // [threads, thread_scratch_bytes]
  uint64_t thread_scratch_bytes = 0;
  float* partials = nullptr;  // [partial_floats]: segments of an attention step
  uint64_t partial_floats = 0;
  float* low_rank = nullptr;  // [max_rows, RankStride of max_rank]

  // The current step's cancel flag; null: the step runs to its end. A part of a step that sees it
  // set does nothing and sets is_cut: the run has failed, even if the flag is cleared meanwhile.
  const std::atomic<uint32_t>* cancel = nullptr;
  mutable std::atomic<bool> is_cut{false};
};

// True if a part of a step is not to run: its results will not be used.
inline bool IsCut(const State& state) {
  if (state.cancel == nullptr || state.cancel->load(std::memory_order_relaxed) == 0) return false;
  state.is_cut.store(true, std::memory_order_relaxed);
  return true;
}

// Called in parallel for columns [first, first + n) of a matmul's output once they are complete in
// all rows. `first` is a multiple of the weight's nr.
struct AfterColumns {
  void (*call)(const void* context, uint32_t first, uint32_t n) = nullptr;
  const void* context = nullptr;
};
// out[rows, weight.rows] (+)= x[rows, weight.cols] W^T + bias.
void Matmul(const State& state, WeightId weight, const float* x, uint32_t rows, bool accumulate,
            float* out, const AfterColumns& after = {});

// Returns the argmax over the columns of x[weight.cols] W^T + bias, the lowest index on ties, after
// scaling and softcap as in a head (Step::factor, softcap). 0 if all are NaN. Does not store the
// columns.
uint32_t BestColumn(const State& state, WeightId weight, const float* x, float factor,
                    float softcap);

// Lets idle threads prefetch the weights of the first matmul among `steps`.
void RequestPrefetch(const State& state, Span<const Step> steps);

// Run kConv, kScan and kLinearAttention on all rows of a run.
void RunConv(const State& state, const Step& step, const RunArgs& args);
void RunScan(const State& state, const Step& step, const RunArgs& args);
void RunLinearAttention(const State& state, const Step& step, const RunArgs& args);

// Runs kAdapt on all rows of a run.
void RunAdapt(const State& state, const Step& step, const RunArgs& args);
// Run a kLinear and the kAdapt behind it together, with the same bits: each part of the output is
// changed while it is in a cache. BeginAdapted multiplies by A, so that idle threads go on to
// prefetch the linear's weights meanwhile. It returns false, with nothing done, if no row has an
// adapter for the matrix, or the layout does not suit; RunAdapted does the rest.
bool BeginAdapted(const State& state, const Step& linear, const Step& adapt, const RunArgs& args);
void RunAdapted(const State& state, const Step& linear, const Step& adapt, const RunArgs& args);

// Run kAttention on all rows of a run, and kSelfAttention on all encoder rows.
void RunAttention(const State& state, const Step& step, const RunArgs& args);
void RunSelfAttention(const State& state, const Step& step, const RunArgs& args);

// Runs an encoder-only step: kFeatures to kSelfAttention, and kPool.
void RunEncoderStep(const State& state, const Step& step, const RunArgs& args);

// Runs one step on all rows of a run. REQUIRES: args have passed CheckRun.
void RunStep(const State& state, const Step& step, const RunArgs& args);

// Computes logits f32 [vocab] of the row for which the last run with logits returned only best_id.
void ReadLogits(const State& state, float* logits);

}  // namespace arn::cpu
