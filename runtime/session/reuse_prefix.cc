// ReusePrefix: turns a sequence into the given tokens and computes only what it lacks.

#include "platform/base/arith.h"
#include "runtime/session/saved_pages.h"
#include "runtime/session/saving.h"
#include "runtime/state/state_reader.h"

namespace arn {
namespace {

// Length of the common prefix.
size_t CommonTokens(Span<const int32_t> a, Span<const int32_t> b) {
  const size_t n = Min(a.size(), b.size());
  size_t common = 0;
  while (common < n && a[common] == b[common]) ++common;
  return common;
}

// Caps the reuse prefix: at least the last of `ids` must run to give logits.
uint32_t WithoutLast(size_t common, Span<const int32_t> ids) {
  return static_cast<uint32_t>(Min(common, ids.size() - 1));
}

// *out: number of leading `ids` that the bundle's prefix provides, if more than `kept`; else 0.
Status CountPrefix(const SavingView& view, Span<const int32_t> ids, uint32_t kept, StateView* state,
                   uint32_t* out) {
  *out = 0;
  const Span<const int32_t> prefix = view.core.model.prefix.ids;
  if (prefix.empty() || view.core.plan.options.no_cache) return Status::kOk;
  const size_t common = CommonTokens(prefix, ids);
  const bool is_all = common == ids.size() && common == prefix.size();
  const uint32_t n = is_all ? static_cast<uint32_t>(common) : WithoutLast(common, ids);
  if (n <= kept) return Status::kOk;
  const Status status = CheckPrefix(view, state);
  if (status == Status::kSaveMismatch || status == Status::kContextFull) {
    view.core.diag.Clear();  // the prefix is for another kind of session: compute instead
    return Status::kOk;
  }
  ARN_TRY(status);
  // The saved pages of a sliding window may begin after the first position that the next token
  // attends to, and a saved recurrent state is valid only after the last token.
  for (uint32_t g = 0; g < view.cache().n_groups() && n < prefix.size(); ++g) {
    const uint32_t held = state->Table(0, g).first_page * view.cache().group(g).page_tokens;
    const auto length = static_cast<uint32_t>(prefix.size());
    if (n < FirstPositionToGoOnFrom(view.cache().group(g), held, length)) return Status::kOk;
  }
  *out = n;
  return Status::kOk;
}

}  // namespace

Status KeepPrefix(const SavingView& view, Span<const int32_t> ids, Span<const float> embeddings,
                  KeptPrefix* out) {
  const uint32_t selected = view.sequences.selected();
  *out = KeptPrefix();
  if (ids.empty())
    return view.core.diag.Fail(Status::kBadArgument, "no tokens to reuse a prefix for");
  if (ids.size() > view.cache().capacity()) {
    return view.core.diag.Fail(Status::kContextFull, "%zu tokens do not fit a context of %u",
                               ids.size(), view.cache().capacity());
  }
  const size_t common = view.sequences.CommonTokens(ids, embeddings);
  if (embeddings.empty()) {
    // Ids that the sequence holds may be those of embeddings.
    ARN_TRY(view.sequences.CheckIds(ids, common));
  } else {
    ARN_TRY(view.sequences.CheckMixed(ids, embeddings));
  }
  if (common == ids.size() && common == view.sequences.length() && view.logits().Has(selected)) {
    out->n_kept = view.sequences.length();
    view.sequences.At(selected).n_generated = 0;  // they are all the prompt now
    return Status::kOk;
  }
  const uint32_t border = view.sequences.WithoutCutImage(WithoutLast(common, ids), ids);
  uint32_t kept = border;
  if (kept < view.sequences.FirstRewindPosition()) kept = 0;
  kept = view.sequences.ResumePosition(kept);
  StateView state;
  uint32_t of_prefix = 0;
  ARN_TRY(CountPrefix(view, ids, kept, &state, &of_prefix));
  if (of_prefix > 0) {
    const Status status = TakePrefix(view, state);
    if (status != Status::kOk && status != Status::kContextFull) return status;
    view.core.diag.Clear();
    kept = status == Status::kOk ? of_prefix : 0;  // out of pages: the sequence is empty
  }
  if (kept == 0) {
    view.cache().Cut(selected, 0);  // keeps its encoder output
    view.sequences.At(selected).n_generated = view.sequences.At(selected).n_pending = 0;
    view.logits().Drop(selected);
  } else {
    ARN_TRY(view.sequences.Rewind(kept));
  }
  out->n_kept = kept;
  if (kept == ids.size()) return Status::kOk;
  if (!embeddings.empty()) {
    ARN_TRY(view.sequences.TakeEmbeddings(ids, embeddings, common, common, &ids));
  }
  out->rest = ids.subspan(kept, ids.size() - kept);
  out->n_again = border - Min(border, kept);
  return Status::kOk;
}

Status ReusePrefix(const SavingView& view, Span<const int32_t> ids, Span<const float> embeddings,
                   uint32_t* out_kept) {
  KeptPrefix prefix;
  const Status kept = KeepPrefix(view, ids, embeddings, &prefix);
  *out_kept = prefix.n_kept;
  if (kept != Status::kOk || prefix.rest.empty()) return kept;
  // Marks this border: the tokens to follow next often change from the same one on.
  const Status status = view.prefiller.PrefillMixed(prefix.rest, prefix.n_again);
  const uint32_t length = view.sequences.length();
  view.core.stats.recomputed_tokens += Min(prefix.n_again, length - Min(length, prefix.n_kept));
  return status;
}

}  // namespace arn
