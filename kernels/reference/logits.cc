#include <cmath>

#include "kernels/contract/check.h"
#include "kernels/reference/reference_state.h"

namespace arn::reference {
namespace {

// Hides the logits of all parts of `size` rows but the n chosen ones.
void KeepParts(const float* chosen, uint32_t n, uint32_t n_parts, uint32_t size, float* logits) {
  for (uint32_t part = 0; part < n_parts; ++part) {
    bool is_chosen = false;
    for (uint32_t i = 0; i < n; ++i) {
      is_chosen = is_chosen || chosen[i] == static_cast<float>(part);
    }
    if (is_chosen) continue;
    for (uint32_t i = 0; i < size; ++i) logits[uint64_t{part} * size + i] = -INFINITY;
  }
}

}  // namespace

// Applies the final norm and the head to the selected rows.
void Logits(const State& state, const Step& step, const RunArgs& args) {
  const Program& program = *state.program;
  const auto& p = step.Get<LogitsParams>();
  const NormArgs norm = {p.norm_kind, state.Vector(p.norm), state.Vector(p.bias), p.epsilon, false};
  const Weight& head = program.weights[p.weight];
  const uint32_t width = program.values[step.in].width;
  const auto* x = state.memory.As<float>(program.values[step.in].slice);
  auto* logits = state.memory.As<float>(program.logits);
  ForEachLogitRow(args, [&](uint32_t row) {
    Norm(norm, x + uint64_t{row} * width, width, state.normed);
    Observe(args, p.weight, state.normed, 1);
    Linear(state.normed, 1, head, program.splits_rows, /*accumulate=*/false, logits, state.scratch);
    for (uint32_t i = 0; i < program.vocab; ++i) {
      logits[i] = Softcap(logits[i] * p.factor, p.softcap);
    }
    if (kHasHeadParts && p.chosen != kNoValue) {
      const Value& chosen = program.values[p.chosen];
      KeepParts(state.memory.As<float>(chosen.slice) + uint64_t{row} * chosen.width,
                chosen.width / 2, p.n_parts, program.vocab / p.n_parts, logits);
    }
    logits += program.vocab;
  });
}

}  // namespace arn::reference
