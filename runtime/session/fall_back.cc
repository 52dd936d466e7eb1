// Planned and fallback backend of a session. The fallback is loaded at creation, so a switch
// allocates nothing. After a device failure no data on the device is trusted: all sequences are
// recomputed from their token ids.
#include <cstring>

#include "platform/base/arith.h"
#include "runtime/session/session.h"

namespace arn {
namespace {

uint32_t CommonTokens(const int32_t* a, const int32_t* b, uint32_t most) {
  uint32_t n = 0;
  while (n < most && a[n] == b[n]) ++n;
  return n;
}

}  // namespace

// Loads the fallback first: it is needed if the device fails.
Status Session::Load(const SessionPlan& wanted, Diag* diag) {
  BackendOptions options{wanted.options.n_threads, wanted.options.n_prefill_threads,
                         wanted.options.device};
  options.device_folder = wanted.options.device_folder;
  options.passes_over_software = wanted.options.passes_over_software;
  if (wanted.keeps_cpus) options.cpus = &wanted.cpus;
  options.needs_cpus = wanted.keeps_cpus && wanted.options.cpus != CpuChoice::kAuto;
  const auto load = [&](const BackendPlan& plan, LoadedBackend* out) {
    return out->backend->load(plan_.program, options, plan, memory_, &out->state, diag);
  };
  planned_.backend = plan_.backend;
  fallback_.backend = plan_.options.fallback;
  if (fallback_.backend != nullptr) ARN_TRY(load(plan_.fallback_plan, &fallback_));
  options.cpu_state = fallback_.state;
  const Status status = load(plan_.backend_plan, &planned_);
  if (status == Status::kOk || fallback_.backend == nullptr) return status;
  fallback_reason_ = *diag;
  diag->Clear();
  ActivateFallback();
  return Status::kOk;
}

// Moves the KV pages to the session's own block; they may have been on the device.
void Session::ActivateFallback() {
  in_use_ = &fallback_;
  if (fallback_.backend->place_kv == nullptr) return;
  fallback_.backend->place_kv(fallback_.state, memory_.region[static_cast<uint32_t>(Region::kKv)]);
}

void Session::Unload() {
  for (const LoadedBackend* loaded : {&planned_, &fallback_}) {
    if (loaded->state != nullptr) loaded->backend->unload(loaded->state);
  }
}

const char* Session::device_name() const {
  const auto name = in_use_->backend->device_name;
  return name == nullptr ? "" : name(in_use_->state);
}

const char* Session::kernel_names() const {
  const auto names = in_use_->backend->kernel_names;
  return names == nullptr ? "" : names(in_use_->state);
}

bool Session::CanFallBack(Status status) const {
  const bool is_device =
      status == Status::kDevice || status == Status::kDeviceLost || status == Status::kOutOfMemory;
  return is_device && in_use_ != &fallback_ && fallback_.backend != nullptr;
}

void Session::SwitchToFallback(Status status) {
  fallback_reason_ = diag_;
  if (fallback_reason_.text()[0] == '\0') {
    (void)fallback_reason_.Fail(status, "%s: %s", planned_.backend->name, StatusName(status));
  }
  diag_.Clear();
  ActivateFallback();
  cache_.ClearEdits();
}

Status Session::FallBack(Status failure) {
  const bool lost_logits = logits_at_ == LogitsAt::kBackend && At(0).has_logits;
  SwitchToFallback(failure);
  logits_at_ = LogitsAt::kHost;
  if (model_.spec.encoder.exists()) return LoseEncoderOutputs();
  if (plan_.options.no_cache) return Status::kOk;
  const Status status = ComputeAnew(lost_logits);
  if (status == Status::kOk) return status;
  ClearSequences(0, static_cast<uint32_t>(sequences_.size()));
  cache_.ClearEdits();
  const Diag inner = diag_;
  return diag_.Fail(Status::kDeviceLost, "%s; the tokens could not be computed anew: %s",
                    fallback_reason_.text(), inner.text());
}

Status Session::LoseEncoderOutputs() {
  ClearSequences(0, static_cast<uint32_t>(sequences_.size()));
  cache_.ClearEdits();
  return diag_.Fail(Status::kDeviceLost, "%s; sources are lost with it: encode them again",
                    fallback_reason_.text());
}

// Recomputes a prefix shared with an earlier sequence once and forks there. Sequences thus share
// pages as before and fit the same pool. Among sequences with an equally long common prefix the
// first is used: it was not forked after the point of divergence.
Status Session::ComputeAnew(bool wants_logits) {
  const auto n = static_cast<uint32_t>(sequences_.size());
  for (uint32_t s = 0; s < n; ++s) {
    Sequence& sequence = At(s);
    sequence.length = cache_.length(s);
    sequence.shared = 0;
    for (uint32_t from = 0; from < s; ++from) {
      const uint32_t common =
          CommonTokens(History(from), History(s), Min(At(from).length, sequence.length));
      if (common <= sequence.shared) continue;
      sequence.shared = common;
      sequence.shared_with = from;
    }
  }
  for (uint32_t s = 0; s < n; ++s) cache_.Clear(s);
  for (uint32_t s = 0; s < n; ++s) {
    for (uint32_t end = 0; end != At(s).length;) {
      end = At(s).length;
      const auto parts_at = [&](uint32_t other) {
        const Sequence& o = At(other);
        return o.shared_with == s && o.shared > cache_.length(s) ? o.shared : UINT32_MAX;
      };
      for (uint32_t other = s + 1; other < n; ++other) end = Min(end, parts_at(other));
      const uint32_t before = cache_.length(s);
      const bool is_last = wants_logits && end == At(s).length;
      ARN_TRY(ComputeUpTo(s, end, is_last ? LogitRows::kLastOfEach : LogitRows::kNone));
      for (uint32_t other = s + 1; other < n; ++other) {
        const Sequence& o = At(other);
        if (o.shared_with == s && o.shared == end && o.shared > before) {
          ARN_TRY(cache_.Fork(s, other));
        }
      }
    }
  }
  return Status::kOk;
}

// Not cancellable; the runs that follow are.
Status Session::ComputeUpTo(uint32_t sequence, uint32_t end, LogitRows of_last) {
  int32_t* tokens = memory_.As<int32_t>(plan_.tokens);
  auto* rows = memory_.As<SequenceRows>(plan_.rows);
  while (cache_.length(sequence) < end) {
    const uint32_t first = cache_.length(sequence);
    const Growth growth{sequence, Min(plan_.options.prefill_chunk, end - first)};
    std::memcpy(tokens, History(sequence) + first, growth.n_tokens * sizeof(int32_t));
    Status status = cache_.Reserve(Span<const Growth>(&growth, 1));
    if (status != Status::kOk) return diag_.Fail(status, "there are too few KV pages");
    *rows = {0, growth.n_tokens, first, cache_.tables(sequence), 0};
    RunArgs args;
    args.edits = cache_.edits();
    args.tokens = {tokens, growth.n_tokens};
    args.sequences = {rows, 1};
    args.logit_rows = first + growth.n_tokens == end ? of_last : LogitRows::kNone;
    status = in_use_->backend->run(in_use_->state, args, &diag_);
    cache_.ClearEdits();
    ARN_TRY(status);
    cache_.Commit(Span<const Growth>(&growth, 1));
  }
  return Status::kOk;
}

}  // namespace arn
