#include "runtime/session/sequence_leases.h"

#include <new>

#include "platform/base/arith.h"

namespace arn {

void SequenceLeases::Init(OnDrop on_drop, void* user) {
  on_drop_ = on_drop;
  user_ = user;
  leases_ = {core_.memory.As<SequenceLease>(core_.plan.scheduler.leases), sequences_.size()};
  for (SequenceLease& lease : leases_) new (&lease) SequenceLease();
}

uint32_t SequenceLeases::PagesOf(uint64_t n_tokens) const {
  const SessionOptions& options = core_.plan.options;
  return static_cast<uint32_t>(
      CeilDiv(Min<uint64_t>(n_tokens, options.context_tokens), uint64_t{options.kv_page_tokens}));
}

uint32_t SequenceLeases::PagesFor(const Request& request) const {
  if (request.max_tokens == 0) return PagesOf(UINT64_MAX);
  // The last token does not run.
  return PagesOf(uint64_t{request.max_tokens} - 1 + request.prompt.size());
}

uint32_t SequenceLeases::n_pages() const {
  const SessionOptions& options = core_.plan.options;
  // As PlanSession() sizes the pools: no more pages than all sequences could fill.
  const uint32_t all = options.max_sequences * PagesOf(options.context_tokens);
  const uint64_t of_tokens = CeilDiv(uint64_t{options.kv_tokens}, uint64_t{options.kv_page_tokens});
  const bool has_all = options.kv_tokens == options.max_sequences * options.context_tokens;
  return has_all ? all : Min(all, static_cast<uint32_t>(of_tokens));
}

bool SequenceLeases::HasRoomFor(const Request& request) const { return HasRoom(PagesFor(request)); }

bool SequenceLeases::HasRoom(uint32_t pages) const {
  uint32_t n_free = 0, n_pages_busy = 0;
  for (const SequenceLease& lease : leases_) {
    n_free += lease.is_busy ? 0 : 1;
    n_pages_busy += lease.is_busy ? lease.pages : 0;
  }
  return n_free != 0 && uint64_t{n_pages_busy} + pages <= n_pages();
}

bool SequenceLeases::HasAdapters(uint32_t sequence, const Request& request) const {
  const Span<const ActiveAdapter> active = sequences_.AdaptersOf(sequence);
  if (active.size() != request.adapters.size()) return false;
  for (size_t i = 0; i < active.size(); ++i) {
    const float scale = request.adapter_scales == nullptr ? 1.0f : request.adapter_scales[i];
    const AdapterBundle* adapter = core_.plan.options.adapters[request.adapters[i]];
    if (active[i].adapter != &adapter->adapter || active[i].scale != scale) return false;
  }
  return true;
}

uint32_t SequenceLeases::LongestPrefix(const Request& request, uint32_t* best) {
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

void SequenceLeases::ForgetWanted() {
  for (SequenceLease& lease : leases_) lease.is_wanted = false;
}

uint32_t SequenceLeases::Oldest(Wanted wanted) const {
  uint32_t oldest = kNone;
  for (uint32_t s = 0; s < sequences_.size(); ++s) {
    if (leases_[s].is_busy || sequences_.Length(s) == 0) continue;
    if (wanted == Wanted::kSpared && leases_[s].is_wanted) continue;
    if (oldest == kNone || leases_[s].used_at < leases_[oldest].used_at) oldest = s;
  }
  return oldest;
}

uint32_t SequenceLeases::FindEmpty() const {
  for (uint32_t s = 0; s < sequences_.size(); ++s) {
    if (!leases_[s].is_busy && sequences_.Length(s) == 0) return s;
  }
  return kNone;
}

bool SequenceLeases::DropOldest() {
  uint32_t oldest = Oldest(Wanted::kSpared);
  if (oldest == kNone) oldest = Oldest(Wanted::kTaken);
  if (oldest == kNone) return false;
  TellDrop(oldest);
  sequences_.Clear(oldest, oldest + 1);
  ++n_dropped_;
  return true;
}

void SequenceLeases::TellDrop(uint32_t sequence) {
  if (on_drop_ == nullptr || sequences_.Length(sequence) == 0) return;
  const uint32_t selected = sequences_.selected();
  on_drop_(user_, sequence);
  sequences_.Select(selected);
}

void SequenceLeases::Empty(uint32_t sequence) {
  TellDrop(sequence);
  sequences_.Select(sequence);
  sequences_.ClearSelected();
}

uint32_t SequenceLeases::TakeToRestore(uint64_t n_tokens) {
  uint32_t taken = FindEmpty();
  if (taken == kNone) taken = Oldest(Wanted::kSpared);
  if (taken == kNone) taken = Oldest(Wanted::kTaken);
  Empty(taken);
  // Cannot fail: there are none.
  (void)(sequences_.SetAdapters({}, nullptr) == Status::kOk);
  leases_[taken] = {true, false, PagesOf(n_tokens), ++clock_};
  MakeRoom();
  return taken;
}

uint32_t SequenceLeases::PagesInUse() const {
  uint32_t pages = 0;
  for (uint32_t s = 0; s < sequences_.size(); ++s) {
    pages += leases_[s].is_busy ? leases_[s].pages : PagesOf(sequences_.Length(s));
  }
  return pages;
}

uint32_t SequenceLeases::Take(const Request& request, uint32_t best, uint32_t common) {
  uint32_t n_free = 0;
  for (const SequenceLease& lease : leases_) n_free += lease.is_busy ? 0 : 1;
  // A prompt that leaves most of what a sequence holds goes to another one, with a copy of the
  // beginning, so that the first conversation can still go on.
  const bool has_free_prefix = common > 0 && !leases_[best].is_busy;
  bool goes_on = has_free_prefix && (GoesOnFrom(best, common) || n_free == 1);
  uint32_t taken = goes_on ? best : FindEmpty();
  if (taken == kNone) taken = Oldest(Wanted::kSpared);
  if (taken == kNone) taken = has_free_prefix ? best : Oldest(Wanted::kTaken);
  goes_on = goes_on || (has_free_prefix && taken == best);
  sequences_.Select(taken);
  if (goes_on && !GoesOnFrom(taken, common)) TellDrop(taken);
  if (!goes_on) {
    Empty(taken);
    // Cannot fail: the sequence is empty, and the request's adapters were checked.
    (void)(sequences_.SetAdapters(request.adapters, request.adapter_scales) == Status::kOk);
    const bool is_copied = common >= kLeastShared && sequences_.Fork(best, taken) == Status::kOk;
    if (!is_copied) core_.diag.Clear();
  }
  leases_[taken] = {true, false, PagesFor(request), ++clock_};
  MakeRoom();
  return taken;
}

void SequenceLeases::MakeRoom() {
  while (PagesInUse() > n_pages() && DropOldest()) {
  }
}

void SequenceLeases::Release(uint32_t sequence) { leases_[sequence] = {false, false, 0, ++clock_}; }

}  // namespace arn
