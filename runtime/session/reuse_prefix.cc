// Session::ReusePrefix: turns a sequence into the given tokens and computes only what it lacks.
#include "platform/base/arith.h"
#include "runtime/session/session.h"

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

}  // namespace

Status Session::CountPrefix(Span<const int32_t> ids, uint32_t kept, StateView* view,
                            uint32_t* out) {
  *out = 0;
  const Span<const int32_t> prefix = model_.prefix.ids;
  if (prefix.empty() || plan_.options.no_cache) return Status::kOk;
  const size_t common = CommonTokens(prefix, ids);
  const bool is_all = common == ids.size() && common == prefix.size();
  const uint32_t n = is_all ? static_cast<uint32_t>(common) : WithoutLast(common, ids);
  if (n <= kept) return Status::kOk;
  const Status status = CheckPrefix(view);
  if (status == Status::kSaveMismatch || status == Status::kContextFull) {
    diag_.Clear();  // the prefix is for another kind of session: compute instead
    return Status::kOk;
  }
  ARN_TRY(status);
  // The saved pages of a sliding window may begin after the first position that the next token
  // attends to, and a saved recurrent state is valid only after the last token.
  for (uint32_t g = 0; g < cache_.n_groups() && n < prefix.size(); ++g) {
    const uint32_t held = view->Table(0, g).first_page * cache_.group(g).page_tokens;
    const auto length = static_cast<uint32_t>(prefix.size());
    if (n < FirstPositionToGoOnFrom(cache_.group(g), held, length)) return Status::kOk;
  }
  *out = n;
  return Status::kOk;
}

Status Session::ReusePrefix(Span<const int32_t> ids, uint32_t* out_kept) {
  *out_kept = 0;
  if (ids.empty()) return diag_.Fail(Status::kBadArgument, "no tokens to follow");
  ARN_TRY(CheckIds(ids));
  if (ids.size() > cache_.capacity()) {
    return diag_.Fail(Status::kContextFull, "%zu tokens do not fit a context of %u", ids.size(),
                      cache_.capacity());
  }
  const size_t common = CommonTokens(history(), ids);
  if (common == ids.size() && common == length() && At(selected_).has_logits) {
    *out_kept = length();
    return Status::kOk;
  }
  uint32_t kept = WithoutLast(common, ids);
  if (kept < first_rewind_position()) kept = 0;
  StateView view;
  uint32_t of_prefix = 0;
  ARN_TRY(CountPrefix(ids, kept, &view, &of_prefix));
  if (of_prefix > 0) {
    const Status status = TakePrefix(view);
    if (status != Status::kOk && status != Status::kContextFull) return status;
    diag_.Clear();
    kept = status == Status::kOk ? of_prefix : 0;  // out of pages: the sequence is empty
  }
  if (kept == 0) {
    cache_.Cut(selected_, 0);  // keeps its encoder output
    At(selected_).has_logits = false;
  } else {
    ARN_TRY(Rewind(kept));
  }
  *out_kept = kept;
  if (kept == ids.size()) return Status::kOk;
  return Prefill(ids.subspan(kept, ids.size() - kept));
}

}  // namespace arn
