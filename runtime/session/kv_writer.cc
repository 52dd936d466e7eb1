#include "runtime/session/kv_writer.h"

#include "kernels/contract/kv_page.h"
#include "kernels/kv/kv_rows.h"
#include "platform/base/arith.h"

namespace arn {
namespace {

// One row of the widest head.
constexpr size_t kStageBytes = kMaxHeadDim * sizeof(float);
constexpr uint32_t kStageScales = 64;

// Writes rows of one head to a page's active block, as many at once as the stage holds.
class RowWriter {
 public:
  RowWriter(Executor* executor, const KvGroup& group, const KvHeadPlace& place)
      : executor_(*executor), group_(group), place_(place) {}

  // rows: [n, head_dim], to slots [first, first + n).
  Status Write(const float* rows, uint32_t first, uint32_t n) {
    const uint64_t row = group_.head_dim * ElementBytes(place_.type);
    const auto most = Min(static_cast<uint32_t>(kStageBytes / row), kStageScales);
    const KvHeadBlock block{values_, scales_, place_.type, 0};
    for (uint32_t done = 0; done < n;) {
      const uint32_t some = Min(n - done, most);
      for (uint32_t i = 0; i < some; ++i, rows += group_.head_dim) {
        StoreKvRow(rows, group_, i, block);
      }
      const uint32_t slot = first + done;
      ARN_TRY(Copy(place_.values + slot * row, values_, some * row));
      if (place_.scale_bytes != 0) {
        ARN_TRY(Copy(place_.scales + slot * sizeof(float),
                     reinterpret_cast<const std::byte*>(scales_), some * sizeof(float)));
      }
      done += some;
    }
    return Status::kOk;
  }

 private:
  Status Copy(uint64_t offset, const std::byte* from, uint64_t bytes) {
    const Slice to{Region::kKv, group_.active.pool.offset + offset, bytes};
    return executor_.WriteKv(to, {from, static_cast<size_t>(bytes)});
  }

  Executor& executor_;
  const KvGroup& group_;
  const KvHeadPlace place_;
  alignas(float) std::byte values_[kStageBytes];
  float scales_[kStageScales];
};

}  // namespace

Status KvWriter::Check(Span<const int32_t> ids, const float* const* keys,
                       const float* const* values) const {
  if (core_.model.spec.encoder.exists()) {
    return core_.diag.Fail(Status::kUnsupported,
                           "keys and values of a model with an encoder cannot be written");
  }
  for (uint32_t i = 0; i < core_.model.spec.layers.size(); ++i) {
    KvLayer layer;
    ARN_TRY(reader_.FindLayer(i, &layer));
    if (layer.kv_layer == i && (keys[i] == nullptr || values[i] == nullptr)) {
      return core_.diag.Fail(Status::kBadArgument, "the %s of layer %u are null",
                             keys[i] == nullptr ? "keys" : "values", i);
    }
  }
  if (ids.empty()) return core_.diag.Fail(Status::kBadArgument, "no tokens to append");
  ARN_TRY(sequences_.CheckIds(ids));
  const uint32_t length = sequences_.length(), capacity = sequences_.cache().capacity();
  if (ids.size() > capacity - length) {
    return core_.diag.Fail(Status::kContextFull, "%zu tokens after %u do not fit a context of %u",
                           ids.size(), length, capacity);
  }
  return Status::kOk;
}

Status KvWriter::Append(Span<const int32_t> ids, const float* const* keys,
                        const float* const* values) {
  ARN_TRY(Check(ids, keys, values));
  for (size_t done = 0; done < ids.size();) {
    const size_t n = Min<size_t>(ids.size() - done, core_.chunk_rows);
    ARN_TRY(AppendChunk(ids, static_cast<uint32_t>(done), static_cast<uint32_t>(n), keys, values));
    done += n;
  }
  return Status::kOk;
}

// Reserves as a run does: pages leave windows, and full ones are quantised, on the way.
Status KvWriter::AppendChunk(Span<const int32_t> ids, uint32_t begin, uint32_t n,
                             const float* const* keys, const float* const* values) {
  const uint32_t selected = sequences_.selected();
  KvCache& cache = sequences_.cache();
  const Growth growth{selected, n};
  const Status reserved = cache.Reserve({&growth, 1});
  ARN_TRY(runner_.RunEdits());
  if (reserved == Status::kContextFull) return sequences_.ContextFullError(selected);
  ARN_TRY(reserved);
  for (uint32_t i = 0; i < core_.model.spec.layers.size(); ++i) {
    KvLayer layer;
    ARN_TRY(reader_.FindLayer(i, &layer));
    if (layer.kv_layer != i) continue;
    const auto n_rows = static_cast<uint32_t>(ids.size());
    ARN_TRY(WriteRows(layer, true, keys[i], n_rows, begin, n));
    ARN_TRY(WriteRows(layer, false, values[i], n_rows, begin, n));
  }
  cache.Commit({&growth, 1});
  sequences_.Remember({selected, ids.subspan(begin, n)});
  sequences_.logits().Drop(selected);
  sequences_.At(selected).n_generated = 0;
  return Status::kOk;
}

Status KvWriter::WriteRows(const KvLayer& layer, bool is_keys, const float* rows, uint32_t n_rows,
                           uint32_t begin, uint32_t n) {
  const KvGroup& group = core_.plan.program.kv_groups[layer.group];
  const PageTable& table = sequences_.cache().tables(sequences_.selected())[layer.group];
  const uint32_t length = sequences_.length();
  for (uint32_t done = 0; done < n;) {
    const uint32_t slot = (length + done) % group.page_tokens;
    const uint32_t some = Min(n - done, group.page_tokens - slot);
    const uint32_t page = KvPageOf(group, table, length + done);
    for (uint32_t head = 0; head < group.n_kv_heads; ++head) {
      const float* from = rows + (uint64_t{head} * n_rows + begin + done) * group.head_dim;
      const KvHeadPlace place = KvPlaceAt(group, is_keys, page, layer.group_layer, head);
      if (place.bits != 0) return Status::kInternal;  // new tokens lie in active pages
      RowWriter writer(&executor_, group, place);
      ARN_TRY(writer.Write(from, slot, some));
    }
    done += some;
  }
  return Status::kOk;
}

}  // namespace arn
