#include "kernels/contract/step_work.h"

#include "kernels/contract/check.h"
#include "kernels/contract/ops/op_contract.h"

namespace arn {
namespace {

void AddOps(uint64_t ops, DType type, StepWork* work) {
  (IsInteger(type) ? work->integer_ops : work->float_ops) += ops;
}

// Returns the rows of the step's output, or of the value it works on in place.
uint64_t WrittenRows(const Program& program, const Step& step, const RunArgs& args) {
  if (IsPooled(program, step)) return args.sequences.size();
  return RowsOf(program, step, RunRows(args));
}

}  // namespace

StepWork& operator+=(StepWork& sum, const StepWork& work) {
  sum.weight_bytes += work.weight_bytes;
  sum.kv_bytes += work.kv_bytes;
  sum.integer_ops += work.integer_ops;
  sum.float_ops += work.float_ops;
  return sum;
}

void AddMatmul(const Weight& weight, uint64_t rows, StepWork* work) {
  AddOps(2 * rows * weight.rows * weight.cols, weight.dtype, work);
}

void AddAttention(const AttentionKind& kind, DType type, uint64_t pairs, StepWork* work) {
  AddOps(4 * pairs * kind.n_heads * kind.head_dim, type, work);
}

uint64_t SequencesUnderWay(const RunArgs& args) {
  uint64_t n = 0;
  for (const SequenceRows& s : args.sequences) n += s.first_position != 0 ? 1 : 0;
  return n;
}

StepWork WorkOf(const Program& program, const Step& step, const RunArgs& args) {
  StepWork work;
  const uint64_t rows = WrittenRows(program, step, args);
  if (rows == 0) return work;
  const StepOperands operands = OperandsOf(step);
  for (uint32_t i = 0; i < operands.n_weights; ++i) {
    work.weight_bytes += program.weights[operands.weights[i]].bytes;
  }
  ContractOf(step.op()).work({program, step, args, rows}, &work);
  return work;
}

}  // namespace arn
