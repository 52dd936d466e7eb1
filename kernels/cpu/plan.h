// What the CPU backend needs besides the Program, measured once and placed by the same code.
#pragma once

#include "kernels/backend.h"
#include "kernels/cpu/xnn/gemm.h"

namespace arn::cpu {

// Indices into BackendPlan::slices.
enum PlanSlice : uint32_t {
  kStateSlice,      // State
  kWeightsSlice,    // const std::byte* [weights]: where each matrix lies for its kernel
  kRepackedSlice,   // matrices whose stored layout is not this CPU's
  kQuantizedSlice,  // activations as products read them; at load, a slab of a matrix on its way
  kNormedSlice,     // normalised rows for the head
  kScratchSlice,    // attention, one part a thread
  kPartialsSlice,   // segments of the tokens that attention shares among threads
};

// The parts of kQuantizedSlice: one entry per row and some more, then the rows.
struct QuantizedLayout {
  uint64_t stride_bytes = 0;  // from one row of integers to the next
  uint64_t rows_offset = 0;
  uint64_t bytes = 0;
};
QuantizedLayout QuantizedRows(uint32_t rows, uint32_t cols);
// Bytes of kQuantizedSlice that a product needs for its rows: QuantizedRows, or with f16 and bf16
// weights the rows interleaved.
uint64_t ProductRowBytes(DType dtype, uint32_t rows, uint32_t cols);

// True when a product with `weight` must not use Weight::data.
bool NeedsRepack(const Weight& weight, const GemmKernels& kernels);
// Bytes of `weight` in the layout of its kernel. The caller knows that it needs repacking.
uint64_t RepackedBytes(const Weight& weight, const GemmKernels& kernels);
// True when some product uses the weight.
bool UsedInProduct(const Program& program, WeightId id);
// Rows that a matrix is multiplied with at most.
uint32_t ProductRows(const Program& program, WeightId id);
// Bytes of scratch that one thread needs.
uint64_t ThreadScratchBytes(const Program& program);
// Room for what attention gathers in segments; 0 when there are none, or no threads to share them.
uint64_t PartialFloats(const Program& program, uint32_t n_threads);

Status PlanCpu(const Program& program, const BackendOptions& options, Layout* layout,
               BackendPlan* plan, Diag* diag);

}  // namespace arn::cpu
