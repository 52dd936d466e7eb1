#include "runtime/session/sequences.h"

#include <cmath>
#include <cstring>
#include <new>

#include "platform/base/arith.h"

namespace arn {

void Sequences::Init(const LogitsOps* ops) {
  const SessionPlan& plan = core_.plan;
  cache_.Init(plan.cache, core_.memory, plan.options.context_tokens);
  all_ = {core_.memory.As<Sequence>(plan.sequences), plan.options.max_sequences};
  for (uint32_t s = 0; s < size(); ++s) {
    Sequence* sequence = new (&all_[s]) Sequence();
    // Shares the scratch: only one sequence samples at a time.
    sequence->sampler.Init(ops, plan.sampler, core_.memory, plan.program.vocab, SamplingLists(s));
    sequence->sampler.Configure(SamplingOptions());
  }
}

uint32_t* Sequences::SamplingLists(uint32_t sequence) const {
  return core_.memory.As<uint32_t>(core_.plan.sampling_lists) +
         uint64_t{sequence} * core_.plan.options.sampling_words;
}

float* Sequences::LogitsOf(uint32_t sequence) const {
  const uint64_t vocab = core_.plan.program.vocab;
  if (all_.size() > 1) return core_.memory.As<float>(core_.plan.sequence_logits) + sequence * vocab;
  return core_.memory.As<float>(core_.plan.program.logits) + logits_.row() * vocab;
}

bool Sequences::HasState() const {
  for (const KvGroup& group : core_.plan.program.kv_groups) {
    if (group.state_floats != 0) return true;
  }
  return false;
}

bool Sequences::OthersAreEmpty() const {
  for (uint32_t s = 0; s < size(); ++s) {
    if (s != selected_ && Length(s) != 0) return false;
  }
  return true;
}

uint32_t Sequences::FirstRewindPosition() const {
  return core_.plan.options.no_cache ? 0 : cache_.FirstRewindPosition(selected_);
}

uint64_t Sequences::KvUsedBytes() const {
  uint64_t bytes = 0;
  for (uint32_t g = 0; g < cache_.n_groups(); ++g) {
    const KvGroup& group = core_.plan.program.kv_groups[g];
    bytes += cache_.pool(g).n_used() * group.active.page_bytes;
    bytes += cache_.quantised_pool(g).n_used() * group.quantised.page_bytes;
  }
  return bytes;
}

Status Sequences::CheckIds(Span<const int32_t> ids, size_t first) const {
  const uint32_t vocab = core_.plan.program.vocab;
  for (size_t i = first; i < ids.size(); ++i) {
    if (ids[i] < 0 || static_cast<uint32_t>(ids[i]) >= vocab) {
      return core_.diag.Fail(Status::kBadToken, "token %zu is %d, the vocabulary has %u", i, ids[i],
                             vocab);
    }
  }
  return Status::kOk;
}

Status Sequences::CheckSequences(Span<const uint32_t> sequences) const {
  if (sequences.empty() || sequences.size() > all_.size()) {
    return core_.diag.Fail(Status::kBadArgument, "%zu sequences, expected 1 to max_sequences %zu",
                           sequences.size(), all_.size());
  }
  for (size_t i = 0; i < sequences.size(); ++i) {
    if (sequences[i] >= all_.size()) {
      return core_.diag.Fail(Status::kBadArgument, "sequence %u, max_sequences is %zu",
                             sequences[i], all_.size());
    }
    for (size_t j = 0; j < i; ++j) {
      if (sequences[j] == sequences[i]) {
        return core_.diag.Fail(Status::kBadArgument, "sequence %u is given twice", sequences[i]);
      }
    }
  }
  return Status::kOk;
}

Status Sequences::CheckEncoderOutput(uint32_t sequence) const {
  if (core_.plan.program.n_encoder_steps == 0 || cache_.encoder_rows(sequence) != 0) {
    return Status::kOk;
  }
  return core_.diag.Fail(Status::kBadState,
                         "sequence %u has no encoder output: encode its input first", sequence);
}

Status Sequences::CheckRoom(uint32_t sequence, size_t n_tokens) const {
  ARN_TRY(CheckEncoderOutput(sequence));
  const uint32_t length = Length(sequence);
  if (core_.plan.options.overflow != Overflow::kShift && n_tokens > cache_.capacity() - length) {
    return core_.diag.Fail(Status::kContextFull, "%zu tokens after %u do not fit a context of %u",
                           n_tokens, length, cache_.capacity());
  }
  return Status::kOk;
}

Status Sequences::ContextFullError(uint32_t sequence) const {
  if (IsFull(sequence)) {
    return core_.diag.Fail(Status::kContextFull, "the context of %u tokens is full",
                           cache_.capacity());
  }
  return core_.diag.Fail(Status::kContextFull,
                         "the KV pages of %u tokens that the sequences share are all in use",
                         core_.plan.options.kv_tokens);
}

Span<const ActiveAdapter> Sequences::AdaptersOf(uint32_t sequence) const {
  if (!kHasAdapters || core_.plan.options.adapters.empty()) return {};
  const uint32_t s = shares_adapters_ ? adapters_of_ : sequence;
  return {AdapterSlots(s), all_[s].n_adapters};
}

ActiveAdapter* Sequences::AdapterSlots(uint32_t sequence) const {
  return core_.memory.As<ActiveAdapter>(core_.plan.active_adapters) +
         uint64_t{sequence} * core_.plan.options.adapters.size();
}

void Sequences::CopyAdapters(uint32_t from, uint32_t to) {
  const uint32_t n = all_[to].n_adapters = all_[from].n_adapters;
  if (kHasAdapters && n != 0) {
    std::memcpy(AdapterSlots(to), AdapterSlots(from), n * sizeof(ActiveAdapter));
  }
}

Status Sequences::CheckAdapters(Span<const uint32_t> adapters, const float* scales) const {
  const Span<const AdapterBundle* const> resident = core_.plan.options.adapters;
  for (size_t i = 0; i < adapters.size(); ++i) {
    if (adapters[i] >= resident.size()) {
      return core_.diag.Fail(Status::kBadArgument, "adapter %u, the session has %zu", adapters[i],
                             resident.size());
    }
    if (scales != nullptr && !std::isfinite(scales[i])) {
      return core_.diag.Fail(Status::kBadArgument, "scales[%zu] is not a finite number", i);
    }
    for (size_t j = 0; j < i; ++j) {
      if (adapters[j] != adapters[i]) continue;
      return core_.diag.Fail(Status::kBadArgument, "adapter %u is given twice", adapters[i]);
    }
  }
  return Status::kOk;
}

Status Sequences::SetAdapters(Span<const uint32_t> adapters, const float* scales) {
  const Span<const AdapterBundle* const> resident = core_.plan.options.adapters;
  if (length() != 0) {
    return core_.diag.Fail(Status::kBadState,
                           "sequence %u has %u tokens: adapters are set on an empty one; reset it, "
                           "or rewind it to 0, first",
                           selected_, length());
  }
  ARN_TRY(CheckAdapters(adapters, scales));
  ActiveAdapter* active = AdapterSlots(selected_);
  for (size_t i = 0; i < adapters.size(); ++i) {
    active[i] = {&resident[adapters[i]]->adapter, scales == nullptr ? 1.0f : scales[i]};
  }
  all_[selected_].n_adapters = static_cast<uint32_t>(adapters.size());
  return Status::kOk;
}

void Sequences::Clear(uint32_t first, uint32_t last) {
  for (uint32_t s = first; s < last; ++s) {
    cache_.Clear(s);
    logits_.Drop(s);
    all_[s].n_generated = all_[s].n_pending = 0;
  }
}

Status Sequences::Fork(uint32_t from, uint32_t to) {
  const uint32_t both[2] = {from, to};
  ARN_TRY(CheckSequences(Span<const uint32_t>(both, 2)));
  if (Length(to) != 0) {
    return core_.diag.Fail(Status::kBadState,
                           "sequence %u has %u tokens, a fork needs an empty one", to, Length(to));
  }
  ARN_TRY(cache_.Fork(from, to));
  std::memcpy(History(to), History(from), Length(from) * sizeof(int32_t));
  Sequence& copy = At(to);
  const Sequence& original = At(from);
  copy.sampler.Configure(original.sampler.options());
  copy.sampler.set_state(original.sampler.state());
  copy.sampler.Branch(to);
  copy.state_before = original.state_before;
  copy.n_generated = original.n_generated;
  copy.n_pending = original.n_pending;
  if (kHasAdapters) CopyAdapters(from, to);
  logits_.Drop(to);
  if (logits_.Has(from)) {
    AddLogits(to, original.best_id);
    std::memcpy(LogitsOf(to), LogitsOf(from), uint64_t{core_.plan.program.vocab} * sizeof(float));
  }
  return Status::kOk;
}

Status Sequences::Rewind(uint32_t position) {
  if (position > length()) {
    return core_.diag.Fail(Status::kBadArgument, "position %u, the sequence has %u tokens",
                           position, length());
  }
  if (position < FirstRewindPosition() && HasState()) {
    return core_.diag.Fail(
        Status::kBadState,
        "position %u: the model has layers with a recurrent state, which cannot be rewound from "
        "position %u%s; reset and prefill again",
        position, length(),
        cache_.snapshots().is_on() ? ": a window has dropped what the snapshots before need"
                                   : " without snapshots (state_snapshots of the session options)");
  }
  if (position < FirstRewindPosition()) {
    return core_.diag.Fail(Status::kBadState,
                           "position %u: the window's pages before position %u are gone", position,
                           FirstRewindPosition());
  }
  if (position == length()) return Status::kOk;
  Sequence& sequence = At(selected_);
  sequence.n_generated -= Min(sequence.n_generated, length() - position);
  logits_.Drop(selected_);
  const uint32_t resume = ResumePosition(position);
  if (resume < cache_.length(selected_)) cache_.Cut(selected_, resume);
  sequence.n_pending = position - resume;
  return Status::kOk;
}

uint32_t Sequences::ResumePosition(uint32_t position) const {
  // Behind the cache all tokens are pending.
  return cache_.ResumePosition(selected_, Min(position, cache_.length(selected_)));
}

void Sequences::ReturnBeforeLast(uint32_t sequence) {
  const uint32_t length = Length(sequence);
  if (At(sequence).n_pending == 0) {
    cache_.Cut(sequence, cache_.ResumePosition(sequence, length - 1));
    At(sequence).n_pending = length - cache_.length(sequence);
  }
}

Status Sequences::Mark() {
  const bool can_rewind = cache_.snapshots().is_on() || core_.plan.options.no_cache || !HasState();
  if (!can_rewind) {
    return core_.diag.Fail(Status::kBadState,
                           "the session was created with state_snapshots = 0: its model has layers "
                           "with a recurrent state, and no slot for a snapshot");
  }
  cache_.KeepSnapshot(selected_, true);
  return Status::kOk;
}

Status Sequences::Reorder(Span<const uint32_t> parents) {
  ARN_TRY(cache_.Reorder(0, parents));
  uint32_t n_ids = 0;
  for (uint32_t s = 0; s < parents.size(); ++s) n_ids = Max(n_ids, cache_.length(s));
  const auto ids = [&](uint32_t sequence) {
    return sequence == cache_.n_sequences() ? core_.memory.As<int32_t>(core_.plan.scratch_history)
                                            : History(sequence);
  };
  for (const RowMove& move : cache_.moves()) {
    std::memcpy(ids(move.to), ids(move.from), n_ids * sizeof(int32_t));
  }
  for (uint32_t s = 0; s < parents.size(); ++s) logits_.Drop(s);
  return Status::kOk;
}

void Sequences::Remember(const SessionPart& part) {
  const size_t n = part.ids.size();
  int32_t* end = History(part.sequence) + cache_.length(part.sequence);
  // may overlap: the ids may be in place already
  std::memmove(end - n, part.ids.data(), n * sizeof(int32_t));
}

}  // namespace arn
