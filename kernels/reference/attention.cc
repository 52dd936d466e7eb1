#include <cmath>

#include "kernels/contract/kv_page.h"
#include "kernels/contract/relative_position_bias.h"
#include "kernels/kv/kv_rows.h"
#include "kernels/reference/ops.h"
#include "platform/base/arith.h"

namespace arn::reference {
namespace {

struct Query {
  const float* q;  // of one head
  uint32_t position;
  bool both_ways;  // bidirectional
};

// One head's attention over positions [first, end): softmax of the scores, then the weighted sum of
// the values. load(position, keys, row) reads a key (keys) or a value into row.
template <typename Load>
void AttendHead(const AttentionArgs& args, const Query& query, uint32_t h, uint32_t first,
                uint32_t end, const Load& load, float* scratch, float* out) {
  const AttentionKind& kind = *args.kind;
  const uint32_t dim = kind.head_dim;
  float row[kMaxHeadDim];
  double y[kMaxHeadDim];
  float largest = args.sinks == nullptr ? -INFINITY : args.sinks[h];
  const auto is_hidden = [&](uint32_t p) {
    return args.visible.cells != nullptr && !args.visible.Has(0, p);
  };
  for (uint32_t p = first; p < end; ++p) {
    if (is_hidden(p)) continue;
    load(p, true, row);
    double dot = 0.0;
    for (uint32_t i = 0; i < dim; ++i) {
      dot += static_cast<double>(query.q[i]) * static_cast<double>(row[i]);
    }
    auto score = static_cast<float>(dot * static_cast<double>(kind.attention_scale));
    if (args.relative_position_bias != nullptr) {
      const RelativePositionBias bias = {args.relative_position_bias, args.n_relative_positions,
                                         kind.n_heads, query.both_ways};
      score += bias.Of(query.position, p, h);
    }
    scratch[p - first] = Softcap(score, kind.softcap);
    largest = Max(largest, scratch[p - first]);
  }
  double sum = args.sinks == nullptr ? 0.0 : static_cast<double>(std::exp(args.sinks[h] - largest));
  for (uint32_t i = 0; i < dim; ++i) y[i] = 0.0;
  for (uint32_t p = first; p < end; ++p) {
    if (is_hidden(p)) continue;
    const auto weight = static_cast<double>(std::exp(scratch[p - first] - largest));
    sum += weight;
    load(p, false, row);
    for (uint32_t i = 0; i < dim; ++i) y[i] += weight * static_cast<double>(row[i]);
  }
  for (uint32_t i = 0; i < dim; ++i) out[i] = static_cast<float>(y[i] / sum);
}

}  // namespace

void Attention(const AttentionArgs& args, uint32_t position, const float* q, float* out,
               float* scratch) {
  const AttentionKind& kind = *args.kind;
  const KvGroup& group = *args.group;
  const uint32_t first =
      kind.is_cross_attention ? 0 : FirstSeen(position, kind, group, *args.table);
  const uint32_t end = kind.is_cross_attention         ? args.encoder_rows
                       : args.visible.cells != nullptr ? args.visible.end
                                                       : position + 1;
  for (uint32_t h = 0; h < kind.n_heads; ++h) {
    const uint32_t kv_head = h / (kind.n_heads / kind.n_kv_heads);
    const uint64_t at = uint64_t{h} * kind.head_dim;
    const auto load = [&](uint32_t p, bool keys, float* row) {
      const KvHeadPage page =
          KvPageAt(group, args.pools, KvPageOf(group, *args.table, p), args.group_layer, kv_head);
      LoadKvRow(group, keys, keys ? page.k : page.v, p % group.page_tokens, row);
    };
    AttendHead(args, {q + at, position, false}, h, first, end, load, scratch, out + at);
  }
}

void SelfAttention(const AttentionArgs& args, uint32_t row, const float* qkv, float* out,
                   float* scratch) {
  const AttentionKind& kind = *args.kind;
  const uint32_t dim = kind.head_dim;
  const uint64_t width = uint64_t{kind.n_heads + 2 * kind.n_kv_heads} * dim;
  const float* q = qkv + row * width;
  for (uint32_t h = 0; h < kind.n_heads; ++h) {
    const uint32_t kv_head = h / (kind.n_heads / kind.n_kv_heads);
    const auto load = [&](uint32_t p, bool keys, float* to) {
      const uint32_t head = kind.n_heads + (keys ? 0 : kind.n_kv_heads) + kv_head;
      const float* from = qkv + p * width + uint64_t{head} * dim;
      for (uint32_t i = 0; i < dim; ++i) to[i] = from[i];
    };
    const uint64_t at = uint64_t{h} * dim;
    const SeenRows seen = RowsSeen(kind, row, args.encoder_rows);
    AttendHead(args, {q + at, row, true}, h, seen.first, seen.end, load, scratch, out + at);
  }
}

}  // namespace arn::reference
