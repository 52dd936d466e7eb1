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
  // Where matrices in other layouts go that the first run has to repack. Null: there are none.
  std::byte* to_repack = nullptr;
  std::byte* quantized = nullptr;  // QuantizedRows of the current matmul
  uint64_t quantized_bytes = 0;
  // [max_logit_rows + 1, hidden]: from the last run with logits, and of one that may yet be cut.
  float* normed = nullptr;
  std::byte* scratch = nullptr;  // [threads, thread_scratch_bytes]
  uint64_t thread_scratch_bytes = 0;
  float* partials = nullptr;  // [partial_floats]: segments of an attention step
  uint64_t partial_floats = 0;
  float* low_rank = nullptr;   // [max_rows, RankStride of max_rank]
  uint32_t* routes = nullptr;  // RouteWords: rows sorted by expert

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

// True if a run keeps the row that the last logits were computed from until its own head has ended,
// so that the head may be cut.
inline bool KeepsNormed(const RunArgs& args) {
  return args.best_id != nullptr || args.may_lose_logits;
}

// Rows [first_row, first_row + n_rows) of a matmul's quantised input, as its kernel reads them: a
// pair of groups of four bytes begins at values + r * row_stride + i * pair_stride, its second one
// `second` bytes behind it. With split rows, those at odd r are residuals, and the sum of each pair
// of rows is twice their product.
struct QuantizedTile {
  uint32_t first_row, n_rows;
  const std::byte* values;
  size_t row_stride, second, pair_stride;
  const QuantizedRow* rows;  // of split rows, 2 n_rows
};
struct QuantizedInput {
  uint32_t n_tiles = 0;  // 0: the matmul does not quantise
  uint32_t n_rows = 0;
  bool is_split = false;
  bool is_offset = false;  // bytes are 128 more than the integers
  uint32_t group = 0;      // bytes of a row in one piece, 4 or 8; 0: all
  const QuantizedRow* rows = nullptr;
  const std::byte* values = nullptr;
  uint64_t stride_bytes = 0;

  QuantizedTile Tile(uint32_t i) const;
};

// Called around a matmul.
struct AroundMatmul {
  // Once, when the input is ready.
  void (*begin)(const void* context, const QuantizedInput& input) = nullptr;
  // In parallel for columns [first, first + n) of the output, before they are computed; `first` is
  // a multiple of the weight's nr, `panels` are theirs. Returns how many of them to compute, a
  // multiple of nr or all. If it sets `change`, the kernel adds that to them. REQUIRES of a change:
  // rows that are not split; GemmKernel::adds_changes.
  uint32_t (*before)(const void* context, const std::byte* panels, uint32_t first, uint32_t n,
                     TileChange* change) = nullptr;
  // Likewise, once they are complete in all rows. Not called for columns with a `change`.
  void (*after)(const void* context, uint32_t first, uint32_t n) = nullptr;
  const void* context = nullptr;
};
// out[rows, weight.rows] (+)= x[rows, weight.cols] W^T + bias.
void Matmul(const State& state, WeightId weight, const float* x, uint32_t rows, bool accumulate,
            float* out, const AroundMatmul& around = {});

// Rows of a matmul's input and output, and the matrix that multiplies them.
struct MatrixRows {
  WeightId weight;
  uint32_t index;  // of the part, below kMaxMatrixRows; parts that share their input share it
  uint32_t first_in, first_out, n_rows;
};
inline constexpr uint32_t kMaxMatrixRows = 32;
// Called in parallel before rows [first, first + n) of an input are read.
struct RowFill {
  void (*fill)(const void* context, uint32_t first, uint32_t n);
  const void* context;
};
// Convert the input x[max_rows, cols] of several matrices of one type and one shape to what their
// kernel reads, then multiply: out[n_rows, weight.rows] = x[n_rows, weight.cols] W^T + bias of each
// part. All parts make one parallel range of tiles, so that threads wait for each other once; a
// row's bits are those of Matmul() on the rows of its part. Parts may share their input: then it is
// converted as that of one part.
void ConvertEach(const State& state, Span<const MatrixRows> parts, const float* x,
                 const RowFill& fill);
void MultiplyEach(const State& state, Span<const MatrixRows> parts, const float* x, float* out);

// Quantises the input of a matmul, as it would; valid until the next one.
QuantizedInput QuantizeInput(const State& state, WeightId weight, const float* x, uint32_t rows);

// Writes the columns of x[weight.cols] W^T + bias in n_parts parts of `size` columns to `out`,
// which has them all; parts: their indexes.
void MatmulParts(const State& state, WeightId weight, const float* x, const float* parts,
                 uint32_t n_parts, uint32_t size, float* out);

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

// Runs kExperts on all rows of a run.
void RunExperts(const State& state, const Step& step, const RunArgs& args);

// Run kAdapt and kSteer on all rows of a run.
void RunAdapt(const State& state, const Step& step, const RunArgs& args);
void RunSteer(const State& state, const Step& step, const RunArgs& args);
// Runs a kLinear and the kAdapt behind it together, with the same bits: A multiplies the rows that
// the matmul quantised, and each part of the output is changed while it is in a cache. Lets idle
// threads prefetch for `next` once A has been multiplied. Returns false, with nothing done, if no
// row has an adapter for the matrix, or the layout does not suit.
bool RunAdapted(const State& state, const Step& linear, const Step& adapt, const RunArgs& args,
                Span<const Step> next);

// Run kAttention on all rows of a run, and kSelfAttention on all encoder rows.
void RunAttention(const State& state, const Step& step, const RunArgs& args);
void RunSelfAttention(const State& state, const Step& step, const RunArgs& args);

// Runs an encoder-only step: kFeatures to kSelfAttention, and kPool.
void RunEncoderStep(const State& state, const Step& step, const RunArgs& args);

// Runs one step on all rows of a run. REQUIRES: args have passed CheckRun.
void RunStep(const State& state, const Step& step, const RunArgs& args);

// Computes logits f32 [vocab] of the first row for which the last run computed some, or best_id. A
// run that KeepsNormed() and was cancelled does not count.
void ReadLogits(const State& state, float* logits);

}  // namespace arn::cpu
