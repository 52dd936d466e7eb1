#include "runtime/session/work_meter.h"

#include "kernels/contract/kv_page.h"
#include "kernels/contract/step_work.h"

namespace arn {

// Weight bytes depend only on the shape of the run, and most
// runs have the shape of the previous one; those recount only steps that read KV or state.
void WorkMeter::Count(const Program& program, const RunArgs& args, uint64_t* weight_bytes,
                      uint64_t* kv_bytes) {
  const bool is_like_last =
      !args.is_encoder && !args.tokens.empty() && args.tokens.size() == counted_.n_tokens &&
      args.sequences.size() == counted_.n_sequences && args.logit_rows == counted_.logit_rows;
  if (!is_like_last) counted_ = {};
  for (const Step& step : StepsOf(program, args.is_encoder)) {
    const bool reads_cache = step.op() == Op::kAttention || step.op() == Op::kConv ||
                             step.op() == Op::kScan || step.op() == Op::kLinearAttention;
    if (is_like_last && !reads_cache) continue;
    const StepWork work = WorkOf(program, step, args);
    *kv_bytes += work.kv_bytes;
    if (!is_like_last) counted_.weight_bytes += work.weight_bytes;
  }
  *weight_bytes += counted_.weight_bytes;
  if (args.is_encoder) {
    counted_ = {};
    return;
  }
  counted_.n_tokens = args.tokens.size();
  counted_.n_sequences = args.sequences.size();
  counted_.logit_rows = args.logit_rows;
}

uint64_t WeightBytesPerToken(const Program& program) {
  uint64_t bytes = 0;
  for (const Step& step : StepsOf(program, false)) {
    const StepOperands operands = OperandsOf(step);
    for (uint32_t i = 0; i < operands.n_weights; ++i) {
      bytes += program.weights[operands.weights[i]].bytes;
    }
    const auto* experts = step.If<ExpertsParams>();
    const uint64_t n_used = experts == nullptr ? 1 : experts->n_chosen;
    const uint32_t n_matrices = experts == nullptr ? operands.n_matrices : 2;
    for (uint32_t i = 0; i < n_matrices; ++i) {
      bytes += n_used * program.weights[operands.first_matrix + i].bytes;
    }
  }
  return bytes;
}

uint64_t KvBytesReadPerToken(const Program& program, const KvCache& cache, uint32_t sequence) {
  const uint32_t length = cache.length(sequence);
  uint64_t bytes = 0;
  for (const Step& step : program.steps) {
    const auto* params = step.If<AttentionParams>();
    if (params == nullptr) continue;
    const AttentionKind& kind = program.kinds[params->kind];
    const KvGroup& group = program.kv_groups[kind.group];
    if (kind.is_cross_attention) {
      bytes +=
          uint64_t{cache.encoder_rows(sequence)} * group.active.layer_bytes / group.page_tokens;
      continue;
    }
    const uint32_t first = FirstSeen(length, kind, group, cache.tables(sequence)[kind.group]);
    const uint64_t seen = length - first;
    const KvPages& pages = group.quantised.n_pages != 0 ? group.quantised : group.active;
    bytes += seen * pages.layer_bytes / group.page_tokens;
  }
  for (const KvGroup& group : program.kv_groups) {
    if (group.state_floats != 0) bytes += group.active.page_bytes;
  }
  return bytes;
}

}  // namespace arn
