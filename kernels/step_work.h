// What a step has to do on a run, whatever backend does it: the bytes that it cannot help reading
// and the arithmetic that it is defined by. What measures speed holds times against it.
#pragma once

#include <cstdint>

#include "kernels/backend.h"
#include "kernels/program.h"

namespace arn {

// Activations are not counted: they stay in caches. A multiplication and the addition of its result
// are two operations; what is done to each element once (norms, activations, RoPE, softmax) is not
// counted either.
struct StepWork {
  uint64_t weight_bytes = 0;  // each weight once a run, and of a table only the rows looked up
  uint64_t kv_bytes = 0;      // each key, value and state once for every sequence that sees it
  uint64_t integer_ops = 0;   // products with int8 and int4 weights; attention to int8, int4, int2
  uint64_t float_ops = 0;     // all other products
};
StepWork& operator+=(StepWork& sum, const StepWork& work);

// `step` is one of StepsOf(program, args.is_source), and args have passed CheckRun. Which experts a
// run uses is only known while it runs: kExperts counts the most that it can be, every chosen
// expert another one as long as there are others.
StepWork WorkOf(const Program& program, const Step& step, const RunArgs& args);

}  // namespace arn
