#include "tools/serve/slots.h"

#include <algorithm>

namespace arn::serve {
namespace {

constexpr uint32_t kLeastShared = 8;  // tokens for which a copy of a sequence is made

}  // namespace

Slots::Slots(arn_session* session, const arn_memory_plan& plan, int32_t image_token)
    : session_(session),
      page_tokens_(plan.kv_page_tokens),
      n_pages_(plan.kv_tokens / plan.kv_page_tokens),
      context_(plan.context_tokens),
      image_token_(image_token),
      slots_(plan.max_sequences) {}

uint32_t Slots::PagesFor(uint64_t n_tokens) const {
  const uint64_t most = std::min<uint64_t>(n_tokens, context_);
  return static_cast<uint32_t>((most + page_tokens_ - 1) / page_tokens_);
}

uint32_t Slots::Length(uint32_t sequence) const {
  arn_session_select(session_, sequence);
  return arn_session_length(session_);
}

uint32_t Slots::CommonPrefix(uint32_t sequence, const std::vector<int32_t>& ids) const {
  arn_session_select(session_, sequence);
  const int32_t* held = nullptr;
  uint32_t n = 0;
  if (arn_session_tokens(session_, &held, &n) != ARN_OK) return 0;
  const size_t most = std::min<size_t>(n, ids.size());
  const auto is_equal = [this](int32_t own, int32_t id) {
    return own == id || (own < 0 && id == image_token_);
  };
  return static_cast<uint32_t>(std::mismatch(held, held + most, ids.begin(), is_equal).first -
                               held);
}

uint32_t Slots::PagesInUse() const {
  uint32_t pages = 0;
  for (uint32_t s = 0; s < size(); ++s) {
    pages += slots_[s].is_busy ? slots_[s].pages : PagesFor(Length(s));
  }
  return pages;
}

std::optional<uint32_t> Slots::Oldest(std::optional<uint32_t> but) const {
  std::optional<uint32_t> oldest;
  for (uint32_t s = 0; s < size(); ++s) {
    if (slots_[s].is_busy || s == but || Length(s) == 0) continue;
    if (!oldest || slots_[s].used_at < slots_[*oldest].used_at) oldest = s;
  }
  return oldest;
}

void Slots::Clear(uint32_t sequence) {
  arn_session_select(session_, sequence);
  arn_session_reset(session_);
}

bool Slots::DropOldest() {
  const std::optional<uint32_t> oldest = Oldest(std::nullopt);
  if (oldest) Clear(*oldest);
  return oldest.has_value();
}

void Slots::SetAdapters(uint32_t sequence, const AdapterUses& adapters) {
  if (slots_[sequence].adapters == adapters) return;
  std::vector<uint32_t> indices;
  std::vector<float> scales;
  for (const AdapterUse& use : adapters) {
    indices.push_back(use.index);
    scales.push_back(use.scale);
  }
  arn_session_select(session_, sequence);
  if (arn_session_set_adapters(session_, indices.data(), scales.data(), indices.size()) == ARN_OK) {
    slots_[sequence].adapters = adapters;
  }
}

std::optional<std::vector<uint32_t>> Slots::Take(const std::vector<int32_t>& ids,
                                                 const AdapterUses& adapters, uint32_t n,
                                                 uint32_t pages) {
  uint32_t n_free = 0, n_busy_pages = 0;
  for (const Slot& slot : slots_) {
    n_free += slot.is_busy ? 0 : 1;
    n_busy_pages += slot.is_busy ? slot.pages : 0;
  }
  if (n_free < n || n_busy_pages + n * pages > n_pages_) return std::nullopt;

  uint32_t best = 0, common = 0;
  for (uint32_t s = 0; s < size(); ++s) {
    if (slots_[s].adapters != adapters) continue;
    const uint32_t shared = CommonPrefix(s, ids);
    if (shared > common) {
      best = s;
      common = shared;
    }
  }
  std::vector<uint32_t> taken;
  const auto take = [&](uint32_t sequence) {
    slots_[sequence].is_busy = true;
    slots_[sequence].pages = pages;
    slots_[sequence].used_at = ++clock_;
    taken.push_back(sequence);
  };
  // A prompt that leaves most of what a sequence holds goes to another one, with a copy of the
  // beginning, so that the first conversation can still go on.
  const bool goes_on =
      common > 0 && !slots_[best].is_busy && (2 * common >= Length(best) || n_free == n);
  if (goes_on) take(best);
  while (taken.size() < n) {
    std::optional<uint32_t> next;
    for (uint32_t s = 0; s < size() && !next; ++s) {
      if (!slots_[s].is_busy && Length(s) == 0) next = s;
    }
    if (!next)
      next = Oldest(common > 0 && n_free > n ? std::optional<uint32_t>(best) : std::nullopt);
    Clear(*next);
    SetAdapters(*next, adapters);
    take(*next);
  }
  if (!goes_on && common >= kLeastShared) arn_session_fork(session_, best, taken[0]);
  while (PagesInUse() > n_pages_ && DropOldest()) {
  }
  return taken;
}

void Slots::Release(uint32_t sequence, bool keeps) {
  slots_[sequence].is_busy = false;
  slots_[sequence].pages = 0;
  slots_[sequence].used_at = ++clock_;
  arn_session_select(session_, sequence);
  arn_session_set_constraint(session_, nullptr);
  if (!keeps) Clear(sequence);
}

arn_status Slots::Fork(uint32_t from, uint32_t to) {
  Clear(to);
  const arn_status status = arn_session_fork(session_, from, to);
  if (status == ARN_OK) slots_[to].adapters = slots_[from].adapters;
  return status;
}

std::vector<Slots::Use> Slots::Uses() const {
  std::vector<Use> uses;
  for (uint32_t s = 0; s < size(); ++s) uses.push_back({Length(s), slots_[s].is_busy});
  return uses;
}

}  // namespace arn::serve
