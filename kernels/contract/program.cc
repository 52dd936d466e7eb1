#include "kernels/contract/program.h"

#include <cmath>

namespace arn {

const char* ActivationName(Activation activation) {
#define ARN_CASE(enumerator, value, name) \
  case Activation::enumerator: return #name;
  switch (activation) { ARN_ACTIVATIONS(ARN_CASE) }
#undef ARN_CASE
  return "unknown activation";
}

AttentionKind WithoutQueries(AttentionKind kind) {
  kind.n_heads = 0;
  return kind;
}

float QueryTemperature(const AttentionKind& kind, uint32_t position) {
  if (kind.query_temperature == 0.0f) return 1.0f;
  const auto steps =
      static_cast<float>((position + kind.query_temperature_shift) / kind.query_temperature_step);
  return 1.0f + kind.query_temperature * std::log1p(steps);
}

SeenRows RowsSeen(const AttentionKind& kind, uint32_t p, uint32_t rows) {
  const bool has_window = kind.window != 0;
  const uint32_t end = kind.is_causal ? p + 1 : rows;
  return {has_window && p >= kind.window ? p - kind.window + 1 : 0,
          has_window && end - p > kind.window ? p + kind.window : end};
}

Span<const Step> StepsOf(const Program& program, bool is_encoder) {
  const size_t n = program.n_encoder_steps;
  return is_encoder ? program.steps.subspan(0, n)
                    : program.steps.subspan(n, program.steps.size() - n);
}

uint64_t MaxRowsOf(const Program& program, const Value& value) {
  if (value.is_pooled) return program.max_pooled_rows;
  return uint64_t{value.row_factor} *
             (value.is_encoder ? program.max_encoder_rows : program.max_rows) +
         value.more_rows;
}

ValueId ResultOf(const Program& program) {
  const Step& last = program.steps[program.steps.size() - 1];
  return last.out != kNoValue ? last.out : last.in;
}

uint32_t RowFactorOf(const Program& program, const Step& step) {
  const ValueId shape = step.out != kNoValue ? step.out : step.in;
  return shape == kNoValue ? 1 : program.values[shape].row_factor;
}

uint32_t RowsOf(const Program& program, const Step& step, uint32_t n_rows) {
  const ValueId shape = step.out != kNoValue ? step.out : step.in;
  return shape == kNoValue ? n_rows : RowsOf(program.values[shape], n_rows);
}

bool NormsSpanHeads(const Program& program, const QkvRopeParams& params) {
  const WeightId id = params.q_norm != kNoWeight ? params.q_norm : params.k_norm;
  return id != kNoWeight && program.weights[id].cols > program.kinds[params.kind].head_dim;
}

}  // namespace arn
