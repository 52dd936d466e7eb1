// The minimum work of a step in a run, independent of the backend: bytes that must be read and
// arithmetic operations. Benchmarks compare measured times with it (roofline).
#pragma once

#include <cstdint>

#include "kernels/contract/backend.h"
#include "kernels/contract/program.h"

namespace arn {

// Activations are not counted: they stay in caches. A multiply-add is two operations. Elementwise
// work (norms, activations, RoPE, softmax) is not counted.
struct StepWork {
  uint64_t weight_bytes = 0;  // each weight once per run; of an embedding table, only the rows
                              // looked up
  uint64_t kv_bytes = 0;      // each key, value and state once per sequence that reads it
  uint64_t integer_ops = 0;   // matmuls with int8 and int4 weights; attention over int8, int4, int2
  uint64_t float_ops = 0;     // all other matmuls
};
StepWork& operator+=(StepWork& sum, const StepWork& work);

// `step` is one of StepsOf(program, args.is_encoder). REQUIRES: args have passed CheckRun. The
// experts used are known only at run time, so kExperts counts the upper bound: every chosen expert
// is a different one, up to n_experts.
StepWork WorkOf(const Program& program, const Step& step, const RunArgs& args);

}  // namespace arn
