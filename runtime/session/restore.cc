// Session::Restore: checks everything before it replaces the sequences.
#include <cstring>

#include "platform/os/mapped_file.h"
#include "runtime/session/session.h"

namespace arn {

Status Session::Restore(const StateSource& source) {
  ARN_TRY(CheckHasState("restored"));
  uint32_t* scratch[kMaxKvGroups] = {};
  for (uint32_t g = 0; g < cache_.n_groups(); ++g) scratch[g] = cache_.numbers(g);
  const StateTarget target{&plan_, model_.state_hash, scratch};
  StateView view;
  ARN_TRY(CheckState(source.bytes, target, source.verify_pages, &view, &diag_));
  Status status = RestorePages(view, source.fd, source.file_offset);
  if (CanFallBack(status)) {
    SwitchToFallback(status);  // the current sequences are replaced in any case
    status = RestorePages(view, source.fd, source.file_offset);
  }
  if (status != Status::kOk) {
    // Some pages are already overwritten, so the old sequences are lost.
    for (uint32_t s = 0; s < sequences_.size(); ++s) {
      cache_.Clear(s);
      At(s).has_logits = false;
    }
    return status;
  }
  RestoreSequences(view);
  return Status::kOk;
}

// True if pages of a file can be mapped over the pools.
bool Session::CanMap(int fd) const {
  return fd >= 0 && !owned_.empty() && in_use_->backend->kv_in_memory;
}

// Saved pages become the first pages of each pool, in order.
Status Session::RestorePages(const StateView& view, int fd, uint64_t file_offset) {
  const bool can_map = CanMap(fd);
  for (uint32_t g = 0; g < cache_.n_groups(); ++g) {
    for (uint32_t kind = 0; kind < kPageKinds; ++kind) {
      const StatePages saved = view.Group(g).pages[kind];
      const Span<const std::byte> pages = view.pages(saved);
      if (pages.empty()) continue;
      const KvPages& to_pages = plan_.kv_groups[g].pages(kind);
      const Slice pool = to_pages.pool;
      if (plan_.IsInFile(g)) {
        const auto bytes = static_cast<size_t>(to_pages.page_bytes);
        for (uint32_t i = 0; i < saved.count; ++i) {
          ARN_TRY(WritePage(to_pages, i, pages.subspan(i * bytes, bytes)));
        }
        continue;
      }
      size_t mapped = 0;
      if (can_map) {
        mapped = MapCopy(fd, file_offset + saved.offset, {memory_.At(pool), pages.size()});
      }
      if (mapped == pages.size()) continue;
      const Slice to{Region::kKv, pool.offset + mapped, pages.size() - mapped};
      ARN_TRY(in_use_->backend->kv_write(in_use_->state, to, pages.subspan(mapped, to.bytes)));
    }
  }
  return Status::kOk;
}

void Session::RestoreSequences(const StateView& view) {
  uint32_t n_pages[kMaxKvGroups][kPageKinds] = {};
  for (uint32_t g = 0; g < cache_.n_groups(); ++g) {
    for (uint32_t kind = 0; kind < kPageKinds; ++kind) {
      n_pages[g][kind] = static_cast<uint32_t>(view.Group(g).pages[kind].count);
    }
  }
  cache_.BeginRestore(n_pages);
  const std::byte* entries = view.entries();
  const std::byte* tokens = view.tokens();
  const std::byte* logits = view.logits();
  logits_at_ = LogitsAt::kHost;
  logits_row_ = 0;
  const uint64_t logits_bytes = uint64_t{plan_.program.vocab} * sizeof(float);
  for (uint32_t s = 0; s < sequences_.size(); ++s) {
    Sequence& sequence = At(s);
    sequence.has_logits = false;
    sequence.sampler.Configure(SamplingOptions());
    if (s >= view.header().n_sequences) continue;
    const StateSequence record = view.Sequence(s);
    sequence.sampler.Configure(SamplingOf(record));
    sequence.sampler.set_random_state(record.random_state);
    cache_.RestoreLength(s, record.n_tokens);
    for (uint32_t g = 0; g < cache_.n_groups(); ++g) {
      const StateTable table = view.Table(s, g);
      cache_.RestoreTable(s, g, table.first_page, table.n_pages, entries);
      entries += uint64_t{table.n_pages} * sizeof(uint32_t);
    }
    std::memcpy(History(s), tokens, uint64_t{record.n_tokens} * sizeof(int32_t));
    tokens += uint64_t{record.n_tokens} * sizeof(int32_t);
    if (record.has_logits == 0) continue;
    std::memcpy(LogitsOf(s), logits, logits_bytes);
    sequence.has_logits = true;
    logits += logits_bytes;
  }
  selected_ = view.header().selected;
}

}  // namespace arn
