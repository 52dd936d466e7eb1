#include "kernels/contract/kv_page.h"
#include "kernels/contract/ops/op_contract.h"
#include "platform/base/arith.h"

namespace arn {
namespace {

// Bytes of n tokens of one layer in a page.
uint64_t TokenBytes(const KvGroup& group, const KvPages& pages, uint64_t n) {
  return n * pages.layer_bytes / group.page_tokens;
}

// Bytes of positions [first, end), each page in its stored format.
uint64_t BytesOfPositions(const KvGroup& group, const PageTable& table, uint32_t first,
                          uint32_t end) {
  uint64_t bytes = 0;
  for (uint32_t p = first; p < end;) {
    const uint32_t n = Min(group.page_tokens - p % group.page_tokens, end - p);
    bytes += TokenBytes(group, group.pages(KindOfPage(KvPageOf(group, table, p))), n);
    p += n;
  }
  return bytes;
}

struct AttentionContract : OpDefaults<AttentionParams> {
  static void Operands(const AttentionParams& p, StepOperands* out) {
    out->AddWeight(p.sinks);
    out->AddWeight(p.relative_position_bias);
  }

  static Status Check(const AttentionParams& p, const StepCheck& check) {
    const AttentionKind* kind = nullptr;
    ARN_TRY(check.PagedKind(p.kind, p.group_layer, p.shares_kv, &kind));
    if (p.sinks != kNoWeight) ARN_TRY(check.Vector("sinks", p.sinks, kind->n_heads));
    ARN_TRY(check.RelativePositionBias(p.relative_position_bias, *kind, false));
    return check.HasWidth("output width", check.step().out,
                          uint64_t{kind->n_heads} * kind->head_dim);
  }

  static void Work(const AttentionParams& p, const StepInRun& run, StepWork* work) {
    const AttentionKind& kind = run.program.kinds[p.kind];
    const KvGroup& group = run.program.kv_groups[kind.group];
    for (const SequenceRows& s : run.args.sequences) {
      if (s.n_rows == 0) continue;
      if (kind.is_cross_attention) {
        work->kv_bytes += TokenBytes(group, group.active, s.encoder_rows);
        AddAttention(kind, group.k_type, uint64_t{s.n_rows} * s.encoder_rows, work);
        continue;
      }
      const PageTable& table = s.tables[kind.group];
      uint64_t pairs = 0;
      for (uint32_t i = 0; i < s.n_rows; ++i) {
        const uint32_t position = s.first_position + i;
        pairs += position + 1 - FirstSeen(position, kind, group, table);
      }
      AddAttention(kind, group.k_type, pairs, work);
      // The first row sees furthest back.
      work->kv_bytes +=
          BytesOfPositions(group, table, FirstSeen(s.first_position, kind, group, table),
                           s.first_position + s.n_rows);
    }
  }

  static void Dump(const AttentionParams& p, const Step& step, StepText* text) {
    text->PrintWeight("relative_position_bias", p.relative_position_bias);
    text->PrintWeight("sinks", p.sinks);
    text->Print(" kind %u layer %u", p.kind, step.layer);
    if (p.shares_kv) text->Print(" shares kv %u", p.group_layer);
  }
};

}  // namespace

constinit const OpContract kAttentionOp =
    MakeOp<AttentionContract>("attention", kHasIn | kHasOut | kInDecoder);

}  // namespace arn
