#include "runtime/session/session.h"

#include <cstring>
#include <new>

#include "kernels/contract/kv_page.h"
#include "platform/base/arith.h"
#include "platform/os/clock.h"
#include "platform/os/pages.h"
#include "runtime/backends.h"
#include "runtime/session/timer.h"

namespace arn {
Session::Session(const Model& model, const SessionPlan& plan, Span<std::byte> block,
                 Span<std::byte> owned)
    : model_(model), plan_(plan), memory_(PartitionBlock(plan, block.data())), owned_(owned) {
  plan_.options.device = plan_.options.device_folder = nullptr;
  plan_.options.thermal_zone = plan_.options.system_root = nullptr;
  fallback_reason_ = plan.refused;
  plan_.Bind();
}

Status Session::Create(const Model& model, const SessionPlan& plan, Span<std::byte> block,
                       const Owned& owned, Session** out, Diag* diag) {
  *out = nullptr;
  const uint64_t start = MonotonicNs();
  ARN_TRY(CheckWeights(model, diag));
  const Memory memory = PartitionBlock(plan, block.data());
  Session* session = new (memory.At(plan.session)) Session(model, plan, block, owned.pages);
  Status status = session->Load(plan, diag);
  if (status == Status::kOk) {
    session->cache_.Init(plan.cache, memory, plan.options.context_tokens);
    session->InitSequences();
    status = session->TestDevice(diag);
  }
  // Starts pacing only after the self-test.
  if (status == Status::kOk) status = session->OpenWatch(plan.options, diag);
  if (status != Status::kOk) {
    session->watch_.Close();
    session->Unload();
    session->~Session();
    return status;
  }
  session->kv_pager_.Init(session->plan_, memory, owned.kv_file);
  session->create_ns_ = MonotonicNs() - start;
  *out = session;
  return Status::kOk;
}

void Session::Destroy(Session* session) {
  if (session == nullptr) return;
  session->Unload();
  session->watch_.Close();
  const Span<std::byte> owned = session->owned_;
  session->~Session();
  ReleasePages(owned);
}

void Session::InitSequences() {
  const BackendId id =
      plan_.backend == FindBackend(BackendId::kReference) ? BackendId::kReference : BackendId::kCpu;
  sequences_ = {memory_.As<Sequence>(plan_.sequences), plan_.options.max_sequences};
  for (Sequence& at : sequences_) {
    Sequence* sequence = new (&at) Sequence();
    // Shares the scratch: only one sequence samples at a time.
    sequence->sampler.Init(FindLogitsOps(id), plan_.sampler, memory_, plan_.program.vocab);
    sequence->sampler.Configure(SamplingOptions());
  }
  beams_.Init(FindLogitsOps(id), plan_.beams, memory_, plan_.program.vocab);
}

Status Session::CheckIds(Span<const int32_t> ids) {
  const uint32_t vocab = plan_.program.vocab;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || static_cast<uint32_t>(ids[i]) >= vocab) {
      return diag_.Fail(Status::kBadToken, "token %zu is %d, the vocabulary has %u", i, ids[i],
                        vocab);
    }
  }
  return Status::kOk;
}

Status Session::CheckEncoderOutput(uint32_t sequence) {
  if (plan_.program.n_encoder_steps == 0 || cache_.encoder_rows(sequence) != 0) return Status::kOk;
  return diag_.Fail(Status::kBadState,
                    "sequence %u has no source: the model attends to one, encode it first",
                    sequence);
}

Status Session::CheckRoom(uint32_t sequence, size_t n_tokens) {
  ARN_TRY(CheckEncoderOutput(sequence));
  const uint32_t length = cache_.length(sequence);
  if (plan_.options.overflow != Overflow::kShift && n_tokens > cache_.capacity() - length) {
    return diag_.Fail(Status::kContextFull, "%zu tokens after %u do not fit a context of %u",
                      n_tokens, length, cache_.capacity());
  }
  return Status::kOk;
}

Status Session::ContextFullError(uint32_t sequence) {
  if (IsFull(sequence)) {
    return diag_.Fail(Status::kContextFull, "the context of %u tokens is full", cache_.capacity());
  }
  return diag_.Fail(Status::kContextFull,
                    "the KV pages of %u tokens that the sequences share are all in use",
                    plan_.options.kv_tokens);
}

void Session::ObserveMatmuls(OnMatmul on_matmul, void* user) {
  on_matmul_ = on_matmul;
  on_matmul_user_ = user;
  observer_.user = this;
  observer_.on_matmul = [](void* self, WeightId weight, const float* rows, uint32_t n_rows,
                           const float* sums) {
    auto& s = *static_cast<Session*>(self);
    const InCallback in_callback(&s.is_in_callback_);
    const Weight& matrix = s.plan_.program.weights[weight];
    s.on_matmul_(s.on_matmul_user_, TensorName(s.model_, weight), rows, n_rows, matrix.cols, sums,
                 matrix.rows);
  };
}

// With several sequences, logits are copied to host memory. With one greedy sequence a decode step
// returns only the argmax. Prompts, and decode steps once the caller has requested logits, return
// the logits at once, so that the output head does not run twice.
void Session::AskForLogits(RunArgs* args, int32_t* best) {
  const Backend& backend = *in_use_->backend;
  if (backend.read_logits == nullptr || sequences_.size() != 1 || plan_.options.no_cache ||
      args->logit_rows != LogitRows::kLastOfEach) {
    return;
  }
  const bool is_greedy = At(0).sampler.options().temperature == 0.0f;
  if (backend.finds_best && is_greedy && !wants_logits_ && args->tokens.size() == 1) {
    args->best_id = best;
  }
  args->leaves_logits = !backend.finds_best || args->best_id != nullptr;
}

Status Session::RunBackend(size_t n_tokens, size_t n_rows, LogitRows logit_rows) {
  RunArgs args;
  args.edits = cache_.edits();
  args.tokens = {memory_.As<int32_t>(plan_.tokens), n_tokens};
  args.sequences = {memory_.As<SequenceRows>(plan_.rows), n_rows};
  args.logit_rows = logit_rows;
  args.cancel = is_cancellable_ ? &cancel_ : nullptr;
  args.step_ns = profile_.BeginRun();
  if (on_matmul_ != nullptr) args.observer = &observer_;
  int32_t best = kNotFound;
  AskForLogits(&args, &best);
  args.attention_observer = kv_pager_.attention_observer();
  kv_pager_.BeforeEdits(args.edits);
  const Status status = in_use_->backend->run(in_use_->state, args, &diag_);
  pacer_.End();
  if (watch_.is_open()) watch_.Sample(MonotonicNs());
  if (status == Status::kOk) {
    profile_.EndRun(plan_.program, args);
    CountWork(args);
    kv_pager_.EndRun(args);
    logits_at_ = args.leaves_logits ? LogitsAt::kBackend : LogitsAt::kHost;
    best_id_ = best;
  }
  cache_.ClearEdits();
  if (status == Status::kCancelled) cancel_.store(0, std::memory_order_relaxed);
  return status;
}

Status Session::RunWithCache(Span<const Part> parts, LogitRows logit_rows) {
  const Status status = TryWithCache(parts, logit_rows);
  if (!CanFallBack(status)) return status;
  ARN_TRY(FallBack(status));
  return TryWithCache(parts, logit_rows);
}

Status Session::TryWithCache(Span<const Part> parts, LogitRows logit_rows) {
  // Copies the ids to the session's memory: a backend may read them after the caller's buffer is
  // gone.
  int32_t* tokens = memory_.As<int32_t>(plan_.tokens);
  auto* rows = memory_.As<SequenceRows>(plan_.rows);
  const Span<Growth> growths(memory_.As<Growth>(plan_.growths), parts.size());
  uint32_t n_tokens = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto [sequence, ids] = parts[i];
    const auto n = static_cast<uint32_t>(ids.size());
    std::memcpy(tokens + n_tokens, ids.data(), n * sizeof(int32_t));
    growths[i] = {sequence, n};
    rows[i] = {n_tokens, n, cache_.length(sequence), cache_.tables(sequence),
               cache_.encoder_rows(sequence)};
    n_tokens += n;
  }
  const Span<const Growth> grown(growths.data(), growths.size());
  const Status reserved = cache_.Reserve(grown);
  if (reserved == Status::kContextFull) {
    ARN_TRY(RunEdits());  // quantises pages that became inactive
    return ContextFullError(parts[0].sequence);
  }
  ARN_TRY(reserved);
  ARN_TRY(RunBackend(n_tokens, parts.size(), logit_rows));
  cache_.Commit(grown);
  return Status::kOk;
}

// Runs all tokens of the sequence at once, from scratch. Keeps them if the run fails.
Status Session::RunWithoutCache(const Part& part, LogitRows logit_rows) {
  const uint32_t before = cache_.length(part.sequence);
  const auto added = static_cast<uint32_t>(part.ids.size());
  int32_t* tokens = memory_.As<int32_t>(plan_.tokens);
  std::memcpy(tokens, History(part.sequence), before * sizeof(int32_t));
  std::memcpy(tokens + before, part.ids.data(), added * sizeof(int32_t));
  cache_.Cut(part.sequence, 0);
  const Growth old{part.sequence, before}, whole{part.sequence, before + added};
  const Status reserved = cache_.Reserve(Span<const Growth>(&whole, 1));
  Status status = reserved;
  if (reserved == Status::kOk) {
    *memory_.As<SequenceRows>(plan_.rows) = {0, whole.n_tokens, 0, cache_.tables(part.sequence),
                                             cache_.encoder_rows(part.sequence)};
    status = RunBackend(whole.n_tokens, 1, logit_rows);
    if (CanFallBack(status)) {
      SwitchToFallback(status);
      if (model_.spec.encoder.exists()) return LoseEncoderOutputs();
      status = RunBackend(whole.n_tokens, 1, logit_rows);
    }
  }
  cache_.Commit(Span<const Growth>(status == Status::kOk ? &whole : &old, 1));
  if (reserved == Status::kContextFull) return ContextFullError(part.sequence);
  return status;
}

// A failed run leaves sequences and logits unchanged: a backend writes logits last.
Status Session::Run(Span<const Part> parts, LogitRows logit_rows) {
  ARN_TRY(Pace(parts));
  if (plan_.options.no_cache) {
    for (const Part& part : parts) {
      const Status status = RunWithoutCache(part, logit_rows);
      if (status != Status::kOk) return RunError(status, part.sequence);
      Committed(Span<const Part>(&part, 1), logit_rows);
    }
    return Status::kOk;
  }
  const Status status = RunWithCache(parts, logit_rows);
  if (status != Status::kOk) return RunError(status, parts[0].sequence);
  Committed(parts, logit_rows);
  return Status::kOk;
}

void Session::Committed(Span<const Part> parts, LogitRows logit_rows) {
  for (const Part& part : parts) {
    Remember(part);
    At(part.sequence).has_logits = false;
  }
  if (logit_rows == LogitRows::kLastOfEach) KeepLogits(parts);
}

Status Session::RunError(Status status, uint32_t sequence) {
  if (status != Status::kCancelled) return status;
  return diag_.Fail(status, "cancelled after %u tokens", cache_.length(sequence));
}

// Appends the ids of a part to the history.
void Session::Remember(const Part& part) {
  const size_t n = part.ids.size();
  int32_t* end = History(part.sequence) + cache_.length(part.sequence);
  // may overlap: the ids may be in place already
  std::memmove(end - n, part.ids.data(), n * sizeof(int32_t));
}

Status Session::NextChunk(uint32_t sequence, size_t left, size_t* out_tokens) {
  ARN_TRY(MakeRoomForOne(sequence));
  const size_t room = cache_.capacity() - cache_.length(sequence);
  *out_tokens = Min(Min<size_t>(plan_.options.prefill_chunk, left), room);
  return Status::kOk;
}

Status Session::Prefill(Span<const int32_t> ids) {
  if (ids.empty()) return diag_.Fail(Status::kBadArgument, "no tokens to prefill");
  ARN_TRY(CheckIds(ids));
  ARN_TRY(CheckRoom(selected_, ids.size()));
  Timer timer(&stats_.prefill_ns);
  for (size_t done = 0; done < ids.size();) {
    size_t n = 0;
    ARN_TRY(NextChunk(selected_, ids.size() - done, &n));
    const Part part{selected_, ids.subspan(done, n)};
    // A cancelled call must leave logits, or a state they can be recomputed from.
    const bool is_last = done + n == ids.size();
    const bool needs_logits =
        is_last ||
        !(plan_.options.no_cache || cache_.CanRewindFrom(length() + static_cast<uint32_t>(n)));
    ARN_TRY(
        Run(Span<const Part>(&part, 1), needs_logits ? LogitRows::kLastOfEach : LogitRows::kNone));
    stats_.prefill_tokens += n;
    done += n;
  }
  return Status::kOk;
}

Status Session::PrefillLogits(Span<const int32_t> ids, const float** out_logits) {
  *out_logits = nullptr;
  if (!plan_.options.all_logits) {
    return diag_.Fail(Status::kBadState, "the session was created with all_logits = 0");
  }
  if (ids.empty() || ids.size() > plan_.options.prefill_chunk) {
    return diag_.Fail(Status::kBadArgument, "%zu tokens, a chunk has 1 to %u", ids.size(),
                      plan_.options.prefill_chunk);
  }
  ARN_TRY(CheckIds(ids));
  ARN_TRY(CheckRoom(selected_, ids.size()));
  Timer timer(&stats_.prefill_ns);
  size_t n = 0;
  ARN_TRY(NextChunk(selected_, ids.size(), &n));
  if (n < ids.size()) {
    return diag_.Fail(Status::kContextFull, "%zu tokens after %u do not fit a context of %u",
                      ids.size(), length(), cache_.capacity());
  }
  const uint32_t before = length();
  const Part part{selected_, ids};
  ARN_TRY(Run(Span<const Part>(&part, 1), LogitRows::kAll));
  stats_.prefill_tokens += n;
  // Without a cache the earlier tokens ran too.
  const uint64_t first = plan_.options.no_cache ? before : 0;
  const uint64_t vocab = plan_.program.vocab;
  const float* rows = memory_.As<float>(plan_.program.logits) + first * vocab;
  *out_logits = rows;
  if (sequences_.size() > 1) {
    std::memcpy(LogitsOf(selected_), rows + (n - 1) * vocab, vocab * sizeof(float));
  } else {
    logits_row_ = static_cast<uint32_t>(first + n - 1);
  }
  At(selected_).has_logits = true;
  return Status::kOk;
}

Status Session::RunOne(uint32_t sequence, int32_t id) {
  const Part part{sequence, Span<const int32_t>(&id, 1)};
  ARN_TRY(Run(Span<const Part>(&part, 1), LogitRows::kLastOfEach));
  ++stats_.decode_tokens;
  return Status::kOk;
}

Status Session::RunChosen(uint32_t sequence, int32_t id) {
  Status status = Status::kOk;
  if (IsAtLast(sequence)) {
    status = HeedCancel(sequence);
    if (status == Status::kOk) {
      At(sequence).has_logits = false;
      ++stats_.decode_tokens;
    }
  } else {
    status = RunOne(sequence, id);
  }
  if (status != Status::kOk) Unchoose(sequence);
  return status;
}

Status Session::HeedCancel(uint32_t sequence) {
  if (cancel_.exchange(0, std::memory_order_relaxed) == 0) return Status::kOk;
  return RunError(Status::kCancelled, sequence);
}

Status Session::Decode(int32_t* out_id) {
  Timer timer(&stats_.decode_ns);
  ARN_TRY(NeedLogits(selected_));
  StepsOnDevice steps;
  if (!IsAtLast(selected_)) {
    ARN_TRY(MakeRoomForOne(selected_));
    ARN_TRY(DecodeOnDevice(&steps));
  }
  int32_t id = steps.last_id;
  if (!steps.is_taken) {
    ARN_TRY(Choose(selected_, &id));
    ARN_TRY(RunChosen(selected_, id));
  }
  *out_id = id;
  return Status::kOk;
}

}  // namespace arn
