#include <cmath>

#include "kernels/kv_page.h"
#include "kernels/kv_rows.h"
#include "kernels/reference/ops.h"
#include "platform/base/arith.h"

namespace arn::reference {

void Attention(const AttentionArgs& args, const float* q, float* out, float* scratch) {
  const AttentionKind& kind = *args.kind;
  const KvGroup& group = *args.group;
  const uint32_t dim = kind.head_dim;
  const uint32_t first = FirstSeen(args.position, kind, group, *args.table);
  float row[kMaxHeadDim];
  double y[kMaxHeadDim];
  for (uint32_t h = 0; h < kind.n_heads; ++h) {
    const uint32_t kv_head = h / (kind.n_heads / kind.n_kv_heads);
    const float* query = q + uint64_t{h} * dim;
    auto load = [&](uint32_t position, bool keys) {
      const KvHeadPage page = KvPageAt(group, args.pools, KvPageOf(group, *args.table, position),
                                       args.group_layer, kv_head);
      LoadKvRow(group, keys, keys ? page.k : page.v, position % group.page_tokens, row);
    };
    float largest = args.sinks == nullptr ? -INFINITY : args.sinks[h];
    for (uint32_t p = first; p <= args.position; ++p) {
      load(p, true);
      double dot = 0.0;
      for (uint32_t i = 0; i < dim; ++i) {
        dot += static_cast<double>(query[i]) * static_cast<double>(row[i]);
      }
      scratch[p - first] =
          Softcap(static_cast<float>(dot * static_cast<double>(kind.scale)), kind.softcap);
      largest = Max(largest, scratch[p - first]);
    }
    double sum =
        args.sinks == nullptr ? 0.0 : static_cast<double>(std::exp(args.sinks[h] - largest));
    for (uint32_t i = 0; i < dim; ++i) y[i] = 0.0;
    for (uint32_t p = first; p <= args.position; ++p) {
      const auto weight = static_cast<double>(std::exp(scratch[p - first] - largest));
      sum += weight;
      load(p, false);
      for (uint32_t i = 0; i < dim; ++i) y[i] += weight * static_cast<double>(row[i]);
    }
    for (uint32_t i = 0; i < dim; ++i) {
      out[uint64_t{h} * dim + i] = static_cast<float>(y[i] / sum);
    }
  }
}

}  // namespace arn::reference
