// Counts the work of a dispatch from its constants and push constants, as the shaders do it. The
// counts are held against instrumented shaders (tests/conformance/vulkan_count_test.cc).
#pragma once

#include "kernels/contract/cost.h"
#include "kernels/vulkan/lower/dispatch.h"
#include "kernels/vulkan/lower/grid.h"

namespace arn::vulkan {

// Tells what a dispatch does not say.
struct WorkContext {
  CountedRun run;
  uint32_t n_experts = 0;  // of the step
};

// rows: those that the workgroups share (RowsOf), above 0.
KernelWork WorkOf(const Dispatch& dispatch, uint32_t rows, const WorkContext& context);

// By kind of shader. They leave `groups` to WorkOf().
KernelWork MatmulWork(const Dispatch& dispatch, uint32_t rows, const WorkContext& context);
KernelWork HeadLinearWork(const Dispatch& dispatch, uint32_t rows);
KernelWork AttentionWork(const Dispatch& dispatch, uint32_t rows, const WorkContext& context);

// Adds the attention of one row that ends a matmul (shaders/gemv_rows.glsl).
void AddEndingAttention(const Dispatch& matmul, const WorkContext& context, KernelWork* work);

// Returns the work of shaders/rope_head.glsl: heads of rows, whose elements are read and written.
KernelWork RotationWork(const Dispatch& dispatch, uint32_t rows, uint64_t key_heads,
                        uint64_t value_heads);

// Adds the norm of rows of n elements that ends them (shaders/norm_row.glsl).
void AddNextNorm(const uint32_t* constants, uint64_t n, uint32_t next_words, uint64_t rows,
                 KernelWork* work);

// Bytes that the last workgroup to end stores in its counter (shaders/arrivals.glsl).
inline constexpr uint64_t kArrivalBytes = 4;

// The bytes that one row of f32, quantised to int8, takes: kernels/vulkan/lower/lower.h.
constexpr uint64_t QuantisedRowBytes(uint32_t words) { return 4 * uint64_t{words} + 8; }

}  // namespace arn::vulkan
