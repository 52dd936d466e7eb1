// Memory needs of the CPU backend besides the Program. The same code measures and places them.
#pragma once

#include "kernels/contract/backend.h"
#include "kernels/cpu/xnn/gemm.h"

namespace arn::cpu {

// Indices into BackendPlan::slices.
enum PlanSlice : uint32_t {
  kStateSlice,      // State
  kWeightsSlice,    // const std::byte* [weights]: the address of each matrix in its kernel's layout
  kRepackedSlice,   // matrices whose stored layout does not suit this CPU
  kQuantizedSlice,  // activations in the format matmuls read; at load, a slab of a matrix being
                    // repacked
  kNormedSlice,     // normalised rows for the head (State::normed)
  kScratchSlice,    // attention scratch, one part per thread
  kPartialsSlice,   // partial results of attention segments computed by different threads
  kLowRankSlice,    // products with the A of adapters
  kRoutesSlice,     // rows sorted by expert
};

// Layout of kQuantizedSlice: one entry per row plus kExtraQuantizedRows per part (MatrixRows; a
// matmul of its own is one part), then the int8 rows, each with room for the sums of its blocks
// (TileArgs::a) if `has_sums`, as weights with HasMinimums take them. With split rows
// (Program::splits_rows) there are twice as many, each row followed by its residual, and then the
// residuals as f32.
struct QuantizedLayout {
  uint64_t stride_bytes = 0;  // stride between rows of integers
  uint64_t rows_offset = 0;
  uint64_t left_offset = 0;  // residuals, f32 [rows, cols]; split rows only
  uint64_t bytes = 0;
};
QuantizedLayout QuantizedRows(bool has_sums, uint32_t rows, uint32_t cols, bool is_split,
                              uint32_t n_parts = 1);
// Bytes of kQuantizedSlice needed for the rows of a matmul: QuantizedRows, or for f16 and bf16
// weights the interleaved rows.
uint64_t MatmulRowBytes(DType dtype, uint32_t rows, uint32_t cols, bool is_split,
                        uint32_t n_parts = 1);

// True if matrices of order kDeviceRows are read in place. Their kernels do not split rows.
bool ReadsDeviceRows(const Program& program, const CpuOptions& options);
// True if a matmul with `weight` cannot use Weight::data in place.
bool NeedsRepack(const Weight& weight, const GemmKernels& kernels);
// Returns the size of `weight` in its kernel's layout. REQUIRES: NeedsRepack(weight).
uint64_t RepackedBytes(const Weight& weight, const GemmKernels& kernels);
// True if a matmul uses the weight.
bool UsedInMatmul(const Program& program, WeightId id);
// Returns the maximum number of rows multiplied by a matrix.
uint32_t MatmulRows(const Program& program, WeightId id);
// Scratch bytes per thread.
uint64_t ThreadScratchBytes(const Program& program);
// Returns the f32 count for the partial results of attention segments; 0 with no attention or with
// one thread.
uint64_t PartialFloats(const Program& program, uint32_t n_threads);

// Returns the u32 count of State::routes; 0 without experts.
uint64_t RouteWords(const Program& program);

Status PlanCpu(const Program& program, const BackendOptions& options, Layout* layout,
               BackendPlan* plan, Diag* diag);

}  // namespace arn::cpu
