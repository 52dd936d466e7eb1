#include "kernels/kv_host.h"

#include <cmath>
#include <cstring>

#include "kernels/check.h"
#include "kernels/kv_page.h"
#include "kernels/kv_rows.h"

namespace arn {
namespace {

// Turns a key that was rotated for position p into that of position p - tokens: rotations add up,
// so the amplitude that is in the key already stays as it is.
void TurnBack(uint32_t tokens, const RopeKind& rope, float* key) {
  const uint32_t half = rope.rotary_dim / 2;
  for (uint32_t i = 0; i < half; ++i) {
    const double angle = static_cast<double>(tokens) * static_cast<double>(rope.inv_freq[i]);
    const auto c = static_cast<float>(std::cos(angle)), s = static_cast<float>(std::sin(angle));
    const float a = key[i], b = key[half + i];
    key[i] = a * c + b * s;
    key[half + i] = b * c - a * s;
  }
}

// The keys of one layer in one page.
void TurnLayer(const KvGroup& group, const RopeKind& rope, std::byte* pool, uint32_t group_layer,
               const KvEdit& edit) {
  float key[kMaxHeadDim];
  for (uint32_t h = 0; h < group.n_kv_heads; ++h) {
    const KvHeadPage at = KvPageAt(group, pool, edit.to, group_layer, h);
    for (uint32_t slot = 0; slot < edit.n_tokens; ++slot) {
      LoadKvRow(at.k, at.k_scale, group.dtype, slot, group.head_dim, key);
      TurnBack(edit.turned_back, rope, key);
      StoreKvRow(key, group.dtype, slot, group.head_dim, at.k, at.k_scale);
    }
  }
}

}  // namespace

Status ApplyKvEdits(const Program& program, const Memory& memory, Span<const KvEdit> edits,
                    Diag* diag) {
  for (const KvEdit& edit : edits) {
    if (edit.group >= program.kv_groups.size() ||
        edit.from >= program.kv_groups[edit.group].n_pages ||
        edit.to >= program.kv_groups[edit.group].n_pages ||
        edit.n_tokens > program.kv_groups[edit.group].page_tokens) {
      return diag->Fail(Status::kInternal, "KV edit: group %u, page %u to %u", edit.group,
                        edit.from, edit.to);
    }
  }
  for (const KvEdit& edit : edits) {
    const KvGroup& group = program.kv_groups[edit.group];
    std::byte* pool = memory.At(group.pool);
    if (edit.from != edit.to) {
      std::memcpy(pool + edit.to * group.page_bytes, pool + edit.from * group.page_bytes,
                  group.page_bytes);
    }
    if (edit.turned_back == 0) continue;
    for (const Step& step : program.steps) {
      if (step.op != Op::kQkvRope || step.shares_kv) continue;
      const AttentionKind& kind = program.kinds[step.kind];
      if (kind.group == edit.group) {
        TurnLayer(group, program.ropes[kind.rope], pool, step.group_layer, edit);
      }
    }
  }
  return Status::kOk;
}

Status KvReadHost(const Memory& memory, Slice from, Span<std::byte> to) {
  if (from.region != Region::kKv || from.bytes != to.size()) return Status::kBadArgument;
  std::memcpy(to.data(), memory.At(from), to.size());
  return Status::kOk;
}

Status KvWriteHost(const Memory& memory, Slice to, Span<const std::byte> from) {
  if (to.region != Region::kKv || to.bytes != from.size()) return Status::kBadArgument;
  std::memcpy(memory.At(to), from.data(), from.size());
  return Status::kOk;
}

}  // namespace arn
