#include "runtime/session/sequence_slots.h"

#include <new>

#include "platform/base/arith.h"

namespace arn {

void SequenceSlots::Init() {
  slots_ = {core_.memory.As<SequenceSlot>(core_.plan.scheduler.slots), sequences_.size()};
  for (SequenceSlot& slot : slots_) new (&slot) SequenceSlot();
}

uint32_t SequenceSlots::PagesOf(uint64_t n_tokens) const {
  const SessionOptions& options = core_.plan.options;
  return static_cast<uint32_t>(
      CeilDiv(Min<uint64_t>(n_tokens, options.context_tokens), uint64_t{options.kv_page_tokens}));
}

uint32_t SequenceSlots::PagesFor(const Request& request) const {
  if (request.max_tokens == 0) return PagesOf(UINT64_MAX);
  // The last token does not run.
  return PagesOf(uint64_t{request.max_tokens} - 1 + request.prompt.size());
}

uint32_t SequenceSlots::n_pages() const {
  return core_.plan.options.kv_tokens / core_.plan.options.kv_page_tokens;
}

bool SequenceSlots::HasRoomFor(const Request& request) const {
  uint32_t n_free = 0, n_pages_busy = 0;
  for (const SequenceSlot& slot : slots_) {
    n_free += slot.is_busy ? 0 : 1;
    n_pages_busy += slot.is_busy ? slot.pages : 0;
  }
  return n_free != 0 && uint64_t{n_pages_busy} + PagesFor(request) <= n_pages();
}

bool SequenceSlots::HasAdapters(uint32_t sequence, const Request& request) const {
  const Span<const ActiveAdapter> active = sequences_.AdaptersOf(sequence);
  if (active.size() != request.adapters.size()) return false;
  for (size_t i = 0; i < active.size(); ++i) {
    const float scale = request.adapter_scales == nullptr ? 1.0f : request.adapter_scales[i];
    const AdapterBundle* adapter = core_.plan.options.adapters[request.adapters[i]];
    if (active[i].adapter != &adapter->adapter || active[i].scale != scale) return false;
  }
  return true;
}

uint32_t SequenceSlots::LongestPrefix(const Request& request, uint32_t* best) {
  uint32_t longest = 0;
  *best = kNone;
  for (uint32_t s = 0; s < sequences_.size(); ++s) {
    if (sequences_.Length(s) == 0 || !HasAdapters(s, request)) continue;
    sequences_.Select(s);
    const auto common =
        static_cast<uint32_t>(sequences_.CommonTokens(request.prompt, request.embeddings));
    if (common <= longest) continue;
    longest = common;
    *best = s;
  }
  return longest;
}

uint32_t SequenceSlots::Oldest(uint32_t but) const {
  uint32_t oldest = kNone;
  for (uint32_t s = 0; s < sequences_.size(); ++s) {
    if (slots_[s].is_busy || s == but || sequences_.Length(s) == 0) continue;
    if (oldest == kNone || slots_[s].used_at < slots_[oldest].used_at) oldest = s;
  }
  return oldest;
}

uint32_t SequenceSlots::FindEmpty() const {
  for (uint32_t s = 0; s < sequences_.size(); ++s) {
    if (!slots_[s].is_busy && sequences_.Length(s) == 0) return s;
  }
  return kNone;
}

bool SequenceSlots::DropOldest() {
  const uint32_t oldest = Oldest(kNone);
  if (oldest == kNone) return false;
  sequences_.Clear(oldest, oldest + 1);
  ++n_dropped_;
  return true;
}

uint32_t SequenceSlots::PagesInUse() const {
  uint32_t pages = 0;
  for (uint32_t s = 0; s < sequences_.size(); ++s) {
    pages += slots_[s].is_busy ? slots_[s].pages : PagesOf(sequences_.Length(s));
  }
  return pages;
}

uint32_t SequenceSlots::Take(const Request& request, uint32_t best, uint32_t common) {
  uint32_t n_free = 0;
  for (const SequenceSlot& slot : slots_) n_free += slot.is_busy ? 0 : 1;
  // A prompt that leaves most of what a sequence holds goes to another one, with a copy of the
  // beginning, so that the first conversation can still go on.
  const bool goes_on =
      common > 0 && !slots_[best].is_busy && (2 * common >= sequences_.Length(best) || n_free == 1);
  uint32_t taken = goes_on ? best : FindEmpty();
  if (taken == kNone) taken = Oldest(common > 0 && n_free > 1 ? best : kNone);
  sequences_.Select(taken);
  if (!goes_on) {
    sequences_.ClearSelected();
    // Cannot fail: the sequence is empty, and the request's adapters were checked.
    (void)(sequences_.SetAdapters(request.adapters, request.adapter_scales) == Status::kOk);
    const bool is_copied = common >= kLeastShared && sequences_.Fork(best, taken) == Status::kOk;
    if (!is_copied) core_.diag.Clear();
  }
  slots_[taken] = {true, PagesFor(request), ++clock_};
  while (PagesInUse() > n_pages() && DropOldest()) {
  }
  return taken;
}

void SequenceSlots::Release(uint32_t sequence) { slots_[sequence] = {false, 0, ++clock_}; }

}  // namespace arn
