#include "runtime/session/kv_reader.h"

#include "kernels/contract/kv_page.h"
#include "kernels/kv/kv_rows.h"
#include "platform/base/arith.h"

namespace arn {
namespace {

// One row of the widest head with its scales.
constexpr size_t kStageBytes = kMaxHeadDim * sizeof(float);

// Reads key or value rows through the backend in use, as many at once as the stage holds.
class RowReader {
 public:
  RowReader(const Executor& executor, const KvGroup& group, bool keys)
      : executor_(executor), group_(group), keys_(keys) {}

  // Reads slots [first, first + n) of one head in `page`. out: [n, head_dim].
  Status Read(uint32_t page, uint32_t group_layer, uint32_t kv_head, uint32_t first, uint32_t n,
              float* out) {
    const KvHeadPlace place = KvPlaceAt(group_, keys_, page, group_layer, kv_head);
    const Slice& pool = group_.pages(KindOfPage(page)).pool;
    for (uint32_t end = first + n; first < end;) {
      const uint32_t some = Min(end - first, StageSlots(place, first));
      ARN_TRY(Fetch(pool, place, first, some));
      const KvHeadBlock block{values_, scales_, place.type, place.bits};
      for (uint32_t i = 0; i < some; ++i, out += group_.head_dim) {
        LoadKvRow(group_, keys_, block, i, out);
      }
      first += some;
    }
    return Status::kOk;
  }

 private:
  bool HasRangesOfTokens(const KvHeadPlace& place) const {
    return place.bits != 0 && group_.RangesByChannel(keys_);
  }
  uint64_t RowBytes(const KvHeadPlace& place) const {
    return KvValueBytes(group_, place.type, place.bits) / group_.page_tokens;
  }

  // Number of slots from `first` on that one fetch can read. Slot 0 of the fetch must be the first
  // of its quantisation group, because LoadKvRow takes its scales from there.
  uint32_t StageSlots(const KvHeadPlace& place, uint32_t first) const {
    auto slots = static_cast<uint32_t>(kStageBytes / RowBytes(place));
    if (HasRangesOfTokens(place)) return Min(slots, group_.group_size - first % group_.group_size);
    if (place.scale_bytes == 0) return slots;
    return Min(slots, static_cast<uint32_t>(kStageBytes * group_.page_tokens / place.scale_bytes));
  }

  Status Fetch(const Slice& pool, const KvHeadPlace& place, uint32_t first, uint32_t n) {
    const uint64_t row = RowBytes(place);
    ARN_TRY(Copy(pool, place.values + first * row, n * row, values_));
    if (place.scale_bytes == 0) return Status::kOk;
    if (HasRangesOfTokens(place)) {
      const uint64_t pairs = place.scale_bytes / KvGroupsOf(group_.page_tokens, group_.group_size);
      return Copy(pool, place.scales + first / group_.group_size * pairs, pairs, scales_);
    }
    const uint64_t scale = place.scale_bytes / group_.page_tokens;
    return Copy(pool, place.scales + first * scale, n * scale, scales_);
  }

  Status Copy(const Slice& pool, uint64_t offset, uint64_t bytes, std::byte* to) {
    const Slice from{Region::kKv, pool.offset + offset, bytes};
    return executor_.ReadKv(from, {to, static_cast<size_t>(bytes)});
  }

  const Executor& executor_;
  const KvGroup& group_;
  const bool keys_;
  alignas(float) std::byte values_[kStageBytes];
  alignas(float) std::byte scales_[kStageBytes];
};

}  // namespace

Status KvReader::FindLayer(uint32_t layer, KvLayer* out) const {
  if (core_.plan.options.no_cache) {
    return core_.diag.Fail(Status::kUnsupported,
                           "a session without a cache has no keys and values");
  }
  const Program& program = core_.plan.program;
  const auto find = [&](auto&& is_it) -> const Step* {
    for (const Step& step : program.steps) {
      const auto* params = step.If<QkvRopeParams>();
      if (params != nullptr && is_it(step, *params)) return &step;
    }
    return nullptr;
  };
  const Step* step = find([&](const Step& s, const QkvRopeParams&) { return s.layer == layer; });
  if (step == nullptr && layer < core_.model.spec.layers.size()) {
    return core_.diag.Fail(Status::kUnsupported,
                           "layer %u has a recurrent state, not keys and values", layer);
  }
  if (step == nullptr) {
    return core_.diag.Fail(Status::kBadArgument, "layer %u, the model has %zu", layer,
                           core_.model.spec.layers.size());
  }
  const auto& params = step->Get<QkvRopeParams>();
  out->group = program.kinds[params.kind].group;
  out->group_layer = params.group_layer;
  const Step* owner = find([&](const Step&, const QkvRopeParams& p) {
    return !p.shares_kv && p.group_layer == out->group_layer &&
           program.kinds[p.kind].group == out->group;
  });
  if (owner == nullptr) return Status::kInternal;
  out->kv_layer = owner->layer;
  const PageTable& table = cache().tables(sequences_.selected())[out->group];
  out->first_position =
      Min(sequences_.length(), table.first_page * program.kv_groups[out->group].page_tokens);
  return Status::kOk;
}

Status KvReader::Read(uint32_t layer, uint32_t first, uint32_t n, float* keys, float* values) {
  KvLayer found;
  ARN_TRY(FindLayer(layer, &found));
  if (n == 0 || first >= sequences_.length() || n > sequences_.length() - first) {
    return core_.diag.Fail(Status::kBadArgument,
                           "%u positions starting at %u, the sequence has %u tokens", n, first,
                           sequences_.length());
  }
  if (first < found.first_position) {
    return core_.diag.Fail(Status::kBadState, "position %u: layer %u has dropped those before %u",
                           first, layer, found.first_position);
  }
  ARN_TRY(runner_.RunPending(sequences_.selected(), 0));
  ARN_TRY(runner_.RunEdits());
  const Status status = Copy(found, first, n, keys, values);
  if (!executor_.CanFallBack(status)) return status;
  ARN_TRY(recompute_.FallBack(status));
  return Read(layer, first, n, keys, values);
}

Status KvReader::Copy(const KvLayer& found, uint32_t first, uint32_t n, float* keys,
                      float* values) {
  const KvGroup& group = core_.plan.program.kv_groups[found.group];
  const PageTable& table = cache().tables(sequences_.selected())[found.group];
  for (const bool is_keys : {true, false}) {
    float* out = is_keys ? keys : values;
    if (out == nullptr) continue;
    RowReader reader(executor_, group, is_keys);
    for (uint32_t head = 0; head < group.n_kv_heads; ++head) {
      for (uint32_t done = 0; done < n;) {
        const uint32_t position = first + done;
        const uint32_t slot = position % group.page_tokens;
        const uint32_t some = Min(n - done, group.page_tokens - slot);
        ARN_TRY(reader.Read(KvPageOf(group, table, position), found.group_layer, head, slot, some,
                            out + (uint64_t{head} * n + done) * group.head_dim));
        done += some;
      }
    }
  }
  return Status::kOk;
}

}  // namespace arn
