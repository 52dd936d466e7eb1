// Counts what a run would cost on a GPU, from the backend's own kernels and without the device
// (docs/vulkan.md, "Counting").
#pragma once

#include <cstdint>

#include "kernels/contract/program.h"
#include "platform/base/diag.h"

namespace arn {

#ifdef ARENITE_NO_COUNTS
inline constexpr bool kHasCounts = false;
#else
inline constexpr bool kHasCounts = true;
#endif

// Properties of a GPU that decide which kernels it would run.
struct GpuTraits {
  uint32_t subgroup_size = 0;  // 0: without subgroup arithmetic
  bool has_full_subgroups = false;
  bool has_dot = false;                // integer dot products
  bool is_unified = false;             // shares the host's memory
  uint32_t max_lanes = 128;            // of a workgroup
  uint32_t shared_memory = 16 * 1024;  // of a workgroup, bytes
  // Rows, outputs and summed columns of an int8 cooperative matrix; 0: none.
  uint32_t coop_m = 0, coop_n = 0, coop_k = 0;
  uint32_t half_coop_m = 0, half_coop_n = 0, half_coop_k = 0;  // likewise of f16, with f32 sums
  bool has_half = false;        // f16 arithmetic that matmuls may use
  uint32_t matmul_variant = 0;  // of the backend's; the first one where it is not usable
};

// A run of one sequence: n_rows tokens after n_before others; the last one has logits. Or an
// encoder's run of n_rows rows.
struct CountedRun {
  uint32_t n_rows = 1;
  uint32_t n_before = 0;
  uint32_t encoder_rows = 0;  // that cross-attention reads
  bool is_encoder = false;
  uint32_t part_rows = 0;  // of an encoder with windows: rows that see each other; 0: all
};

// Work of one dispatch of a kernel. Bytes are of buffers; the words that describe the run (page
// tables, positions) are left out.
struct KernelWork {
  uint64_t groups = 0;          // workgroups
  uint64_t loaded = 0;          // bytes that all invocations load, the same byte each time
  uint64_t stored = 0;          // bytes that they store
  uint64_t least = 0;           // bytes of all operands: each once
  uint64_t far_loaded = 0;      // part of `loaded`: an operand that workgroups load as a whole, one
                                // after another
  uint64_t far_bytes = 0;       // its size: if no cache holds it, all of far_loaded is memory's
  uint64_t int_products = 0;    // int8 multiplications of matmuls
  uint64_t float_products = 0;  // of matmuls, attention and scans
  uint64_t half_products = 0;   // f16 multiplications of matmuls
  uint64_t half_matrix_products = 0;  // f16 multiplications of cooperative matrices, in attention
  uint64_t reductions = 0;            // of a value over a workgroup

  bool operator==(const KernelWork&) const = default;
};

struct DispatchCost {
  const char* kernel = "";      // "gemv", "attention_tile" ...
  const char* dtype = "";       // of its weights; "" if it is no matmul
  uint32_t rows = 0, cols = 0;  // of its matrix: outputs and inputs
  bool waits = true;            // for the dispatches before it: a barrier
  KernelWork work;
};

// Capability of a backend. REQUIRES: a program that the backend's plan() accepts.
struct CostOps {
  // Calls visit(user, cost) for each dispatch of the decoder's steps, or of the encoder's, in their
  // order. The pointers are valid during the call. kNotFound: no such matmul_variant.
  Status (*count)(const Program& program, const GpuTraits& gpu, const CountedRun& run,
                  void (*visit)(void* user, const DispatchCost& cost), void* user, Diag* diag);
};

}  // namespace arn
