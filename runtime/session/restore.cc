// Restore: checks everything before it replaces the sequences.
#include <cstring>

#include "platform/os/mapped_file.h"
#include "runtime/constrain/availability.h"
#include "runtime/session/saved_pages.h"
#include "runtime/session/saving.h"
#include "runtime/state/state_reader.h"

namespace arn {
namespace {

// Compiles the saved constraints, in place of all there are.
Status RestoreConstraints(const SavingView& view, const StateView& state, bool has_constraints) {
  if constexpr (!kHasConstraints) return Status::kOk;
  const bool had_some = view.constrainer.HasSome();
  view.constrainer.DropAll();
  for (uint32_t s = 0; s < state.header().n_sequences && has_constraints; ++s) {
    SavedSampling sampling;
    ARN_TRY(state.Sampling(s, view.sequences.sampling_limits(),
                           view.sequences.SamplingLists(view.sequences.size()), &sampling,
                           &view.core.diag));
    const Status status = view.constrainer.Restore(s, sampling.constraint);
    if (status == Status::kOk) continue;
    view.constrainer.DropAll();
    if (had_some) view.sequences.ClearAll();
    return status;
  }
  return Status::kOk;
}

void RestoreSequences(const SavingView& view, const StateView& state) {
  uint32_t n_pages[kMaxKvGroups][kPageKinds] = {};
  for (uint32_t g = 0; g < view.cache().n_groups(); ++g) {
    for (uint32_t kind = 0; kind < kPageKinds; ++kind) {
      n_pages[g][kind] = static_cast<uint32_t>(state.Group(g).pages[kind].count);
    }
  }
  view.cache().BeginRestore(n_pages);
  const std::byte* entries = state.entries();
  const std::byte* tokens = state.tokens();
  const std::byte* logits = state.logits();
  view.logits().Store();
  const uint64_t logits_bytes = uint64_t{view.core.plan.program.vocab} * sizeof(float);
  for (uint32_t s = 0; s < view.sequences.size(); ++s) {
    Sequence& sequence = view.sequences.At(s);
    view.logits().Drop(s);
    sequence.sampler.Configure(SamplingOptions());
    sequence.n_generated = sequence.n_pending = 0;
    if (s >= state.header().n_sequences) continue;
    const StateSequence record = state.Sequence(s);
    SavedSampling sampling;
    Diag none;
    if (state.Sampling(s, view.sequences.sampling_limits(),
                       view.sequences.SamplingLists(view.sequences.size()), &sampling,
                       &none) == Status::kOk) {  // CheckState has read it before
      sequence.sampler.Configure(sampling.options);
      sequence.sampler.set_state(sampling.state);
      sequence.n_generated = sampling.n_generated;
    }
    view.cache().RestoreLength(s, record.n_tokens, record.encoder_rows);
    for (uint32_t g = 0; g < view.cache().n_groups(); ++g) {
      const StateTable table = state.Table(s, g);
      view.cache().RestoreTable(s, g, table.first_page, table.n_pages, entries);
      entries += uint64_t{table.n_pages} * sizeof(uint32_t);
    }
    view.cache().KeepSnapshot(s, true);
    std::memcpy(view.sequences.History(s), tokens, uint64_t{record.n_tokens} * sizeof(int32_t));
    tokens += uint64_t{record.n_tokens} * sizeof(int32_t);
    if (record.has_logits == 0) continue;
    std::memcpy(view.sequences.LogitsOf(s), logits, logits_bytes);
    view.sequences.AddLogits(s);
    logits += logits_bytes;
  }
  view.sequences.RestoreEmbeddings(state.embeddings());
  view.sequences.Select(state.header().selected);
}

}  // namespace

bool CanMap(const SavingView& view, int fd) {
  return fd >= 0 && view.owns_pages && view.executor.backend().host_kv != nullptr;
}

Status WritePage(const SavingView& view, const KvPages& pages, uint32_t index,
                 Span<const std::byte> from) {
  size_t done = 0;
  for (uint32_t i = 0; i < pages.n_pieces(); ++i) {
    const Slice to = pages.Piece(index, i);
    const auto bytes = static_cast<size_t>(to.bytes);
    ARN_TRY(view.executor.WriteKv(to, from.subspan(done, bytes)));
    done += bytes;
  }
  return Status::kOk;
}

Status RestorePages(const SavingView& view, const StateView& state, int fd, uint64_t file_offset) {
  const bool can_map = CanMap(view, fd);
  for (uint32_t g = 0; g < view.cache().n_groups(); ++g) {
    for (uint32_t kind = 0; kind < kPageKinds; ++kind) {
      const StatePages saved = state.Group(g).pages[kind];
      const Span<const std::byte> pages = state.pages(saved);
      if (pages.empty()) continue;
      const KvPages& to_pages = view.core.plan.kv_groups[g].pages(kind);
      const Slice pool = to_pages.pool;
      if (view.core.plan.IsInFile(g)) {
        const auto bytes = static_cast<size_t>(to_pages.page_bytes);
        for (uint32_t i = 0; i < saved.count; ++i) {
          ARN_TRY(WritePage(view, to_pages, i, pages.subspan(i * bytes, bytes)));
        }
        continue;
      }
      size_t mapped = 0;
      if (can_map) {
        mapped = MapCopy(fd, file_offset + saved.offset, {view.core.memory.At(pool), pages.size()});
      }
      if (mapped == pages.size()) continue;
      const Slice to{Region::kKv, pool.offset + mapped, pages.size() - mapped};
      ARN_TRY(view.executor.WriteKv(to, pages.subspan(mapped, to.bytes)));
    }
  }
  return Status::kOk;
}

Status Restore(const SavingView& view, const StateSource& source) {
  ARN_TRY(CheckHasState(view, "restored"));
  uint32_t* scratch[kMaxKvGroups] = {};
  for (uint32_t g = 0; g < view.cache().n_groups(); ++g) scratch[g] = view.cache().numbers(g);
  const StateTarget target = TargetOf(view, scratch, source.has_constraints);
  StateView state;
  ARN_TRY(CheckState(source.bytes, target, source.verify_pages, &state, &view.core.diag));
  ARN_TRY(RestoreConstraints(view, state, source.has_constraints));
  Status status = RestorePages(view, state, source.fd, source.file_offset);
  if (view.executor.CanFallBack(status)) {
    view.recompute.SwitchToFallback(status);  // the current sequences are replaced in any case
    status = RestorePages(view, state, source.fd, source.file_offset);
  }
  if (status != Status::kOk) {
    // Some pages are already overwritten, so the old sequences are lost.
    view.sequences.ClearAll();
    view.constrainer.DropAll();
    return status;
  }
  RestoreSequences(view, state);
  return Status::kOk;
}

}  // namespace arn
