// Session::UsePrefix: starts a sequence from the bundle's precomputed prompt prefix.
#include <cstring>

#include "runtime/session/session.h"

namespace arn {

bool Session::OthersAreEmpty() const {
  for (uint32_t s = 0; s < sequences_.size(); ++s) {
    if (s != selected_ && cache_.length(s) != 0) return false;
  }
  return true;
}

Status Session::CheckPrefix(StateView* out) {
  const StoredPrefix& prefix = model_.prefix;
  if (prefix.ids.empty()) return diag_.Fail(Status::kNotFound, "the bundle has no prefix");
  if (plan_.options.no_cache) {
    return diag_.Fail(Status::kUnsupported, "a session without a cache cannot use the prefix");
  }
  uint32_t* scratch[kMaxKvGroups] = {};
  for (uint32_t g = 0; g < cache_.n_groups(); ++g) scratch[g] = cache_.numbers(g);
  const StateTarget target{&plan_, model_.state_hash, scratch};
  // Copied pages are read anyway, so verify them.
  const bool verify_pages = !OthersAreEmpty() || !CanMap(prefix.fd);
  Diag inner;
  const Status status = CheckState(prefix.state, target, verify_pages, out, &inner);
  if (status != Status::kOk) return diag_.Fail(status, "the bundle's prefix: %s", inner.text());
  const StateHeader& header = out->header();
  if (header.n_sequences != 1 || out->Sequence(0).has_logits == 0 ||
      header.tokens.bytes != prefix.ids.size() * sizeof(int32_t) ||
      std::memcmp(out->tokens(), prefix.ids.data(), prefix.ids.size() * sizeof(int32_t)) != 0) {
    return diag_.Fail(Status::kBadSave,
                      "the bundle's prefix: its state is not that of one sequence with its %zu "
                      "tokens and their logits",
                      prefix.ids.size());
  }
  return Status::kOk;
}

Status Session::WritePage(const KvPages& pages, uint32_t index, Span<const std::byte> from) {
  size_t done = 0;
  for (uint32_t i = 0; i < pages.n_pieces(); ++i) {
    const Slice to = pages.Piece(index, i);
    const auto bytes = static_cast<size_t>(to.bytes);
    ARN_TRY(in_use_->backend->kv_write(in_use_->state, to, from.subspan(done, bytes)));
    done += bytes;
  }
  return Status::kOk;
}

// Copies page by page into the pages reserved for the selected sequence.
Status Session::CopyPrefixPages(const StateView& view) {
  for (uint32_t g = 0; g < cache_.n_groups(); ++g) {
    const StateGroup saved = view.Group(g);
    const PageTable& table = cache_.tables(selected_)[g];
    uint64_t next[kPageKinds] = {};
    for (uint32_t i = 0; i < table.n_pages; ++i) {
      const uint32_t kind = KindOfPage(table.pages[i]);
      const KvPages& pages = plan_.kv_groups[g].pages(kind);
      const auto bytes = static_cast<size_t>(pages.page_bytes);
      const auto from = static_cast<size_t>(next[kind]++ * pages.page_bytes);
      ARN_TRY(WritePage(pages, table.pages[i] & ~kQuantisedPage,
                        view.pages(saved.pages[kind]).subspan(from, bytes)));
    }
  }
  return Status::kOk;
}

Status Session::TakePrefix(const StateView& view) {
  ARN_TRY(RunEdits());
  Reset();
  const bool is_alone = OthersAreEmpty();
  uint32_t n_pages[kMaxKvGroups][kPageKinds] = {};
  // If all pages are free, the ones taken are the first of each pool, in order.
  if (is_alone) cache_.BeginRestore(n_pages);
  for (uint32_t g = 0; g < cache_.n_groups(); ++g) {
    for (uint32_t kind = 0; kind < kPageKinds; ++kind) {
      n_pages[g][kind] = static_cast<uint32_t>(view.Group(g).pages[kind].count);
    }
  }
  const uint32_t n_tokens = view.Sequence(0).n_tokens;
  if (!cache_.HasFree(n_pages)) {
    return diag_.Fail(Status::kContextFull,
                      "no free KV pages for the %u tokens of the bundle's prefix", n_tokens);
  }
  const std::byte* entries = view.entries();
  for (uint32_t g = 0; g < cache_.n_groups(); ++g) {
    const StateTable table = view.Table(0, g);
    cache_.AdoptTable(selected_, g, table.first_page, table.n_pages, entries);
    entries += uint64_t{table.n_pages} * sizeof(uint32_t);
  }
  const StoredPrefix& prefix = model_.prefix;
  const Status status =
      is_alone ? RestorePages(view, prefix.fd, prefix.file_offset) : CopyPrefixPages(view);
  if (status != Status::kOk) {
    Reset();
    if (!CanFallBack(status)) return status;
    ARN_TRY(FallBack(status));
    return TakePrefix(view);
  }
  cache_.RestoreLength(selected_, n_tokens);
  std::memcpy(History(selected_), prefix.ids.data(), n_tokens * sizeof(int32_t));
  logits_row_ = 0;
  std::memcpy(LogitsOf(selected_), view.logits(), uint64_t{plan_.program.vocab} * sizeof(float));
  At(selected_).has_logits = true;
  logits_at_ = LogitsAt::kHost;
  return Status::kOk;
}

Status Session::UsePrefix() {
  StateView view;
  ARN_TRY(CheckPrefix(&view));
  return TakePrefix(view);
}

}  // namespace arn
