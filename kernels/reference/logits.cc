#include "kernels/check.h"
#include "kernels/reference/state.h"

namespace arn::reference {

// Final norm and head of the rows that want logits.
void Logits(const State& state, const Step& step, const RunArgs& args) {
  const Program& program = *state.program;
  const Weight& norm = program.weights[step.norm];
  const Weight& head = program.weights[step.weight];
  const uint32_t width = program.values[step.in].width;
  const auto* x = state.memory.As<float>(program.values[step.in].slice);
  auto* logits = state.memory.As<float>(program.logits);
  ForEachLogitRow(args, [&](uint32_t row) {
    RmsNorm(x + uint64_t{row} * width, reinterpret_cast<const float*>(norm.data), width,
            step.epsilon, state.normed);
    Linear(state.normed, 1, head, /*accumulate=*/false, logits, state.scratch);
    logits += program.vocab;
  });
}

}  // namespace arn::reference
