#include "kernels/kv/kv_host.h"

#include <cmath>
#include <cstring>

#include "kernels/contract/check.h"
#include "kernels/contract/kv_page.h"
#include "kernels/kv/kv_rows.h"

namespace arn {
namespace {

// Un-rotation of one layer's keys: cos and sin of each pair's angle. Identity if `half` is 0.
struct Rotation {
  uint32_t half = 0;
  float cos[kMaxHeadDim / 2], sin[kMaxHeadDim / 2];

  // Turns a key rotated for position p into one for p - tokens. Rotations add up, so the amplitude
  // already in the key is kept.
  void Set(uint32_t tokens, const RopeKind& rope) {
    half = tokens == 0 ? 0 : rope.rotary_dim / 2;
    for (uint32_t i = 0; i < half; ++i) {
      const double angle = static_cast<double>(tokens) * static_cast<double>(rope.inv_freq[i]);
      cos[i] = static_cast<float>(std::cos(angle));
      sin[i] = static_cast<float>(std::sin(angle));
    }
  }
  void Apply(float* key) const {
    for (uint32_t i = 0; i < half; ++i) {
      const float a = key[i], b = key[half + i];
      key[i] = a * cos[i] + b * sin[i];
      key[half + i] = b * cos[i] - a * sin[i];
    }
  }
};

// Copies K or V of one head from one page to another, which may have a different format or be the
// same page.
class HeadCopy {
 public:
  HeadCopy(const KvGroup& group, bool keys, const KvHeadBlock& from, const KvHeadBlock& to,
           const Rotation& rotation, uint32_t n_tokens)
      : group_(group),
        keys_(keys),
        from_(from),
        to_(to),
        rotation_(rotation),
        n_tokens_(n_tokens) {}

  void Run() {
    const bool as_it_is = from_.bits == to_.bits && (!keys_ || rotation_.half == 0);
    if (as_it_is) {
      CopyBytes();
    } else if (to_.bits == 0) {
      for (uint32_t slot = 0; slot < n_tokens_; ++slot) {
        Load(slot);
        StoreKvRow(row_, group_, slot, to_);
      }
    } else {
      Quantise();
    }
  }

 private:
  void CopyBytes() {
    if (from_.values == to_.values) return;
    std::memcpy(to_.values, from_.values, KvValueBytes(group_, from_.type, from_.bits));
    const uint64_t scale_bytes = KvScaleBytes(group_, keys_, from_.type, from_.bits);
    if (scale_bytes != 0) std::memcpy(to_.scales, from_.scales, scale_bytes);
  }

  void Load(uint32_t slot) {
    LoadKvRow(group_, keys_, from_, slot, row_);
    if (keys_) rotation_.Apply(row_);
  }

  // Reads each row before its group's new ranges are written, or with a copy of the old ones: an
  // edit in place must decode with the old ranges.
  void Quantise() {
    for (uint32_t first = 0; first < n_tokens_; first += group_.group_size) {
      const uint32_t end = Min(first + group_.group_size, n_tokens_);
      if (group_.RangesByChannel(keys_)) {
        QuantiseByChannel(first, end);
      } else {
        for (uint32_t slot = first; slot < end; ++slot) QuantiseByToken(slot);
      }
    }
  }

  void QuantiseByChannel(uint32_t first, uint32_t end) {
    float low[kMaxHeadDim], high[kMaxHeadDim];
    for (uint32_t slot = first; slot < end; ++slot) {
      Load(slot);
      for (uint32_t i = 0; i < group_.head_dim; ++i) {
        low[i] = slot == first ? row_[i] : Min(low[i], row_[i]);
        high[i] = slot == first ? row_[i] : Max(high[i], row_[i]);
      }
    }
    uint16_t* pairs = static_cast<uint16_t*>(to_.scales) +
                      uint64_t{2} * (first / group_.group_size) * group_.head_dim;
    // Un-rotation in place still needs the old ranges.
    uint16_t old[2 * kMaxHeadDim];
    const size_t bytes = group_.head_dim * 2 * sizeof(uint16_t);
    std::memcpy(old, pairs, bytes);
    const bool in_place = from_.values == to_.values;
    for (uint32_t slot = first; slot < end; ++slot) {
      if (in_place) std::memcpy(pairs, old, bytes);
      Load(slot);
      for (uint32_t i = 0; i < group_.head_dim; ++i) {
        const KvRange range = RangeOf(low[i], high[i], to_.bits);
        pairs[2 * i] = range.scale;
        pairs[2 * i + 1] = range.least;
      }
      StoreQuantisedRow(row_, group_, keys_, slot, to_);
    }
  }

  void QuantiseByToken(uint32_t slot) {
    Load(slot);
    const uint32_t n_groups = KvGroupsOf(group_.head_dim, group_.group_size);
    uint16_t* pairs = static_cast<uint16_t*>(to_.scales) + uint64_t{2} * slot * n_groups;
    for (uint32_t g = 0; g < n_groups; ++g) {
      const uint32_t end = Min((g + 1) * group_.group_size, group_.head_dim);
      float low = row_[g * group_.group_size], high = low;
      for (uint32_t i = g * group_.group_size; i < end; ++i) {
        low = Min(low, row_[i]);
        high = Max(high, row_[i]);
      }
      const KvRange range = RangeOf(low, high, to_.bits);
      pairs[2 * g] = range.scale;
      pairs[2 * g + 1] = range.least;
    }
    StoreQuantisedRow(row_, group_, keys_, slot, to_);
  }

  const KvGroup& group_;
  const bool keys_;
  const KvHeadBlock from_, to_;
  const Rotation& rotation_;
  const uint32_t n_tokens_;
  float row_[kMaxHeadDim];
};

bool PageExists(const KvGroup& group, uint32_t page) {
  const KvPages& pages = (page & kQuantisedPage) != 0 ? group.quantised : group.active;
  return (page & ~kQuantisedPage) < pages.n_pages;
}

void ApplyEdit(const Program& program, const Memory& memory, const KvEdit& edit) {
  const KvGroup& group = program.kv_groups[edit.group];
  const KvPools pools = KvPoolsOf(group, memory);
  Rotation rotation;
  for (const Step& step : program.steps) {
    const auto* params = step.If<QkvRopeParams>();
    if (params == nullptr || params->shares_kv) continue;
    const AttentionKind& kind = program.kinds[params->kind];
    if (kind.group != edit.group) continue;
    if (kind.rope != kNoRope) rotation.Set(edit.unrotated_by, program.ropes[kind.rope]);
    for (uint32_t h = 0; h < group.n_kv_heads; ++h) {
      const KvHeadPage from = KvPageAt(group, pools, edit.from, params->group_layer, h);
      const KvHeadPage to = KvPageAt(group, pools, edit.to, params->group_layer, h);
      HeadCopy(group, true, from.k, to.k, rotation, edit.n_tokens).Run();
      if (group.keys_only) continue;
      HeadCopy(group, false, from.v, to.v, rotation, edit.n_tokens).Run();
    }
  }
}

}  // namespace

Status ApplyKvEdits(const Program& program, const Memory& memory, Span<const KvEdit> edits,
                    Diag* diag) {
  for (const KvEdit& edit : edits) {
    if (edit.group >= program.kv_groups.size() ||
        !PageExists(program.kv_groups[edit.group], edit.from) ||
        !PageExists(program.kv_groups[edit.group], edit.to) ||
        edit.n_tokens > program.kv_groups[edit.group].page_tokens) {
      return diag->Fail(Status::kInternal, "KV edit: group %u, page %#x to %#x, %u tokens",
                        edit.group, edit.from, edit.to, edit.n_tokens);
    }
  }
  for (const KvEdit& edit : edits) ApplyEdit(program, memory, edit);
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
