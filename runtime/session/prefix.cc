// UsePrefix, RestoreOne: a sequence becomes that of a saved state, beside others: the bundle's
// precomputed prompt prefix, or one that was saved alone.
#include <cstring>

#include "runtime/session/saved_pages.h"
#include "runtime/session/saving.h"
#include "runtime/state/state_reader.h"

namespace arn {
namespace {

// Copies page by page into the pages reserved for the selected sequence.
Status CopyPages(const SavingView& view, const StateView& state) {
  for (uint32_t g = 0; g < view.cache().n_groups(); ++g) {
    const StateGroup saved = state.Group(g);
    const PageTable& table = view.cache().tables(view.sequences.selected())[g];
    uint64_t next[kPageKinds] = {};
    for (uint32_t i = 0; i < table.n_pages; ++i) {
      const uint32_t kind = KindOfPage(table.pages[i]);
      const KvPages& pages = view.core.plan.kv_groups[g].pages(kind);
      const auto bytes = static_cast<size_t>(pages.page_bytes);
      const auto from = static_cast<size_t>(next[kind]++ * pages.page_bytes);
      ARN_TRY(WritePage(view, pages, table.pages[i] & ~kQuantisedPage,
                        state.pages(saved.pages[kind]).subspan(from, bytes)));
    }
  }
  return Status::kOk;
}

}  // namespace

Status CheckPrefix(const SavingView& view, StateView* out) {
  const StoredPrefix& prefix = view.core.model.prefix;
  if (prefix.ids.empty()) {
    return view.core.diag.Fail(Status::kNotFound, "the bundle has no prefix");
  }
  if (view.core.plan.options.no_cache) {
    return view.core.diag.Fail(Status::kUnsupported,
                               "a session without a cache cannot use the prefix");
  }
  if (view.core.model.spec.encoder.exists()) {
    return view.core.diag.Fail(Status::kUnsupported,
                               "a model with an encoder cannot use the bundle's prefix");
  }
  if (kHasAdapters && !view.sequences.AdaptersOf(view.sequences.selected()).empty()) {
    return view.core.diag.Fail(Status::kSaveMismatch,
                               "the bundle's prefix was computed without the adapters of sequence "
                               "%u",
                               view.sequences.selected());
  }
  uint32_t* scratch[kMaxKvGroups] = {};
  for (uint32_t g = 0; g < view.cache().n_groups(); ++g) scratch[g] = view.cache().numbers(g);
  StateTarget target = TargetOf(view, scratch, false);
  target.adapters_of = nullptr;
  // Copied pages are read anyway, so verify them.
  const bool verify_pages = !view.sequences.OthersAreEmpty() || !CanMap(view, prefix.fd);
  Diag inner;
  const Status status = CheckState(prefix.state, target, verify_pages, out, &inner);
  if (status != Status::kOk) {
    return view.core.diag.Fail(status, "the bundle's prefix: %s", inner.text());
  }
  const StateHeader& header = out->header();
  if (header.n_sequences != 1 || out->Sequence(0).has_logits == 0 ||
      header.tokens.bytes != prefix.ids.size() * sizeof(int32_t) ||
      std::memcmp(out->tokens(), prefix.ids.data(), prefix.ids.size() * sizeof(int32_t)) != 0) {
    return view.core.diag.Fail(
        Status::kBadSave,
        "the bundle's prefix: its state is not that of one sequence with its %zu "
        "tokens and their logits",
        prefix.ids.size());
  }
  return Status::kOk;
}

namespace {

// The only sequence of a state, and the file that it is mapped from; fd -1: none.
struct OneState {
  const StateView& state;
  int fd;
  uint64_t file_offset;
  const char* what;  // for messages
};

// Clears the selected sequence and makes it the saved one.
Status Adopt(const SavingView& view, const OneState& from) {
  const StateView& state = from.state;
  const uint32_t selected = view.sequences.selected();
  ARN_TRY(view.runner.RunEdits());
  view.sequences.ClearSelected();
  const bool is_alone = view.sequences.OthersAreEmpty();
  uint32_t n_pages[kMaxKvGroups][kPageKinds] = {};
  // If all pages are free, the ones taken are the first of each pool, in order.
  if (is_alone) view.cache().BeginRestore(n_pages);
  for (uint32_t g = 0; g < view.cache().n_groups(); ++g) {
    for (uint32_t kind = 0; kind < kPageKinds; ++kind) {
      n_pages[g][kind] = static_cast<uint32_t>(state.Group(g).pages[kind].count);
    }
  }
  const uint32_t n_tokens = state.Sequence(0).n_tokens;
  if (!view.cache().HasFree(n_pages)) {
    return view.core.diag.Fail(Status::kContextFull, "no free KV pages for the %u tokens of %s",
                               n_tokens, from.what);
  }
  const std::byte* entries = state.entries();
  for (uint32_t g = 0; g < view.cache().n_groups(); ++g) {
    const StateTable table = state.Table(0, g);
    view.cache().AdoptTable(selected, g, table.first_page, table.n_pages, entries);
    entries += uint64_t{table.n_pages} * sizeof(uint32_t);
  }
  const Status status =
      is_alone ? RestorePages(view, state, from.fd, from.file_offset) : CopyPages(view, state);
  if (status != Status::kOk) {
    view.sequences.ClearSelected();
    if (!view.executor.CanFallBack(status)) return status;
    ARN_TRY(view.recompute.FallBack(status));
    return Adopt(view, from);
  }
  view.cache().RestoreLength(selected, n_tokens);
  view.sequences.At(selected).n_generated = 0;
  view.cache().KeepSnapshot(selected, true);
  std::memcpy(view.sequences.History(selected), state.tokens(), n_tokens * sizeof(int32_t));
  if (state.Sequence(0).has_logits == 0) return Status::kOk;
  view.logits().Store();
  std::memcpy(view.sequences.LogitsOf(selected), state.logits(),
              uint64_t{view.core.plan.program.vocab} * sizeof(float));
  view.sequences.AddLogits(selected);
  return Status::kOk;
}

}  // namespace

Status TakePrefix(const SavingView& view, const StateView& state) {
  const StoredPrefix& prefix = view.core.model.prefix;
  return Adopt(view, {state, prefix.fd, prefix.file_offset, "the bundle's prefix"});
}

Status CheckOne(const SavingView& view, const StateSource& source, StateView* out) {
  ARN_TRY(CheckHasState(view, "restored"));
  uint32_t* scratch[kMaxKvGroups] = {};
  for (uint32_t g = 0; g < view.cache().n_groups(); ++g) scratch[g] = view.cache().numbers(g);
  StateTarget target = TargetOf(view, scratch, false);
  target.adapters_of = nullptr;
  ARN_TRY(CheckState(source.bytes, target, source.verify_pages, out, &view.core.diag));
  const StateHeader& header = out->header();
  if (header.n_sequences == 1 && out->Sequence(0).n_tokens != 0 &&
      out->Sequence(0).encoder_rows == 0 && out->embeddings().empty()) {
    return Status::kOk;
  }
  return view.core.diag.Fail(Status::kUnsupported,
                             "the state is not that of one sequence with tokens, without "
                             "embeddings and encoder output");
}

Status RestoreOne(const SavingView& view, const StateView& state) {
  return Adopt(view, {state, -1, 0, "a saved sequence"});
}

Status UsePrefix(const SavingView& view) {
  StateView state;
  ARN_TRY(CheckPrefix(view, &state));
  return TakePrefix(view, state);
}

}  // namespace arn
