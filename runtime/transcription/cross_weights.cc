#include "runtime/transcription/cross_weights.h"

#include <cmath>

#include "kernels/contract/kv_page.h"
#include "kernels/kv/kv_rows.h"
#include "platform/base/arith.h"

namespace arn {
namespace {

float DotOf(const float* a, const float* b, uint32_t n) {
  constexpr uint32_t kLanes = 8;
  float lanes[kLanes] = {};
  uint32_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (uint32_t l = 0; l < kLanes; ++l) lanes[l] += a[i + l] * b[i + l];
  }
  float sum = 0.0f;
  for (; i < n; ++i) sum += a[i] * b[i];
  for (const float lane : lanes) sum += lane;
  return sum;
}

void SoftmaxOf(float* x, uint32_t n) {
  float most = x[0];
  for (uint32_t i = 1; i < n; ++i) most = Max(most, x[i]);
  float sum = 0.0f;
  for (uint32_t i = 0; i < n; ++i) sum += x[i] = std::exp(x[i] - most);
  for (uint32_t i = 0; i < n; ++i) x[i] /= sum;
}

}  // namespace

void CrossWeights::Record(const RunArgs& args, const Step& step) {
  const auto& params = step.Get<AttentionParams>();
  const Program& program = session_.plan().program;
  if (!program.kinds[params.kind].is_cross_attention || args.sequences.size() != 1) return;
  const SequenceRows& rows = args.sequences[0];
  if (rows.first_position + rows.n_rows <= n_before_) return;
  for (uint32_t i = 0; i < spec_.n_alignment_heads; ++i) {
    const AlignmentHead head = AlignmentHeadAt(session_.model(), i);
    if (session_.model().spec.layers[head.layer].cross_layer != params.group_layer) continue;
    RecordHead(rows, step, head.head, i);
  }
}

void CrossWeights::RecordHead(const SequenceRows& rows, const Step& step, uint32_t head,
                              uint32_t index) {
  const auto& params = step.Get<AttentionParams>();
  const Program& program = session_.plan().program;
  const AttentionKind& kind = program.kinds[params.kind];
  const KvGroup& group = program.kv_groups[kind.group];
  const uint32_t skipped = n_before_ - Min(n_before_, rows.first_position);
  const uint32_t first = rows.first_position + skipped - n_before_;
  const uint32_t n =
      Min(rows.n_rows - skipped, weights_.most_tokens - Min(first, weights_.most_tokens));
  const uint32_t n_rows = Min(rows.encoder_rows, weights_.stride);
  const Value& queries = program.values[step.in];
  const float* q = session_.memory().As<float>(queries.slice) + size_t{skipped} * queries.width +
                   size_t{head} * kind.head_dim;
  const KvHeadBlock keys =
      KvPageAt(group, KvPoolsOf(group, session_.memory()), rows.tables[kind.group].pages[0],
               params.group_layer, head / (kind.n_heads / kind.n_kv_heads))
          .k;
  float key[kMaxHeadDim];
  for (uint32_t r = 0; r < n_rows; ++r) {
    LoadKvRow(group, /*keys=*/true, keys, r, key);
    for (uint32_t t = 0; t < n; ++t) {
      weights_.Row(index, first + t)[r] =
          kind.attention_scale * DotOf(q + size_t{t} * queries.width, key, kind.head_dim);
    }
  }
  for (uint32_t t = 0; t < n; ++t) SoftmaxOf(weights_.Row(index, first + t), n_rows);
  weights_.n_tokens = Max(weights_.n_tokens, first + n);
  weights_.n_rows = n_rows;
}

}  // namespace arn
