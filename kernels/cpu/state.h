// What the CPU backend keeps between load and unload; it lies in Region::kConstants.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/backend.h"
#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/threads.h"
#include "kernels/cpu/xnn/gemm.h"

namespace arn::cpu {

struct State {
  const Program* program = nullptr;
  BackendOptions options;
  Memory memory;
  Threads threads;
  GemmKernels gemm;
  SimdKernels simd;
  const std::byte** matrices = nullptr;  // [weights]: in the layout of their kernel
  std::byte* quantized = nullptr;        // QuantizedRows of the product at work
  float* normed = nullptr;               // [max_logit_rows, hidden]: of the last run with logits
  std::byte* scratch = nullptr;          // [threads, thread_scratch_bytes]
  uint64_t thread_scratch_bytes = 0;
  float* partials = nullptr;  // [partial_floats]: of the segments of an attention step
  uint64_t partial_floats = 0;
};

// out[rows, weight.rows] (+)= x[rows, weight.cols] W^T + bias.
void Matmul(const State& state, WeightId weight, const float* x, uint32_t rows, bool accumulate,
            float* out);

// The column of x[weight.cols] W^T + bias with the largest value, the lowest of equals, where each
// is scaled and capped as a head's are (Step::factor, softcap); 0 when all are NaN. No column is
// kept.
uint32_t BestColumn(const State& state, WeightId weight, const float* x, float factor,
                    float softcap);

// The threads that have nothing to do ask for the weights that the first product among `steps`
// reads.
void AskAhead(const State& state, Span<const Step> steps);

// kConv and kScan over all rows of a run.
void RunConv(const State& state, const Step& step, const RunArgs& args);
void RunScan(const State& state, const Step& step, const RunArgs& args);

// kAttention over all rows of a run, and kSelfAttention over all rows of its source.
void RunAttention(const State& state, const Step& step, const RunArgs& args);
void RunSelfAttention(const State& state, const Step& step, const RunArgs& args);

// kFeatures to kSelfAttention, which are steps of the source alone.
void RunSourceStep(const State& state, const Step& step, const RunArgs& args);

// One step over all rows of a run; args have passed CheckRun.
void RunStep(const State& state, const Step& step, const RunArgs& args);

// logits: f32 [vocab], of the row whose best id was all that the last run with logits was asked
// for.
void ReadLogits(const State& state, float* logits);

}  // namespace arn::cpu
