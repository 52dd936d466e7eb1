#include "runtime/session/session.h"

#include <cstring>
#include <new>

#include "platform/base/arith.h"
#include "platform/os/clock.h"
#include "platform/os/pages.h"
#include "runtime/backends.h"
#include "runtime/session/stop_filter.h"

namespace arn {
namespace {

class Timer {
 public:
  explicit Timer(uint64_t* total) : total_(total), start_(MonotonicNs()) {}
  ~Timer() { *total_ += MonotonicNs() - start_; }

 private:
  uint64_t* total_;
  uint64_t start_;
};

}  // namespace

Session::Session(const Model& model, const SessionPlan& plan, Span<std::byte> block,
                 Span<std::byte> owned)
    : model_(model), plan_(plan), memory_(PartitionBlock(plan, block.data())), owned_(owned) {
  plan_.Bind();
}

Status Session::Create(const Model& model, const SessionPlan& plan, Span<std::byte> block,
                       Span<std::byte> owned, Session** out, Diag* diag) {
  *out = nullptr;
  const uint64_t start = MonotonicNs();
  const Memory memory = PartitionBlock(plan, block.data());
  Session* session = new (memory.At(plan.session)) Session(model, plan, block, owned);
  const BackendOptions backend_options{plan.options.n_threads};
  const Status status =
      plan.backend->load(session->plan_.program, backend_options, plan.backend_plan, memory,
                         &session->backend_state_, diag);
  if (status != Status::kOk) {
    session->~Session();
    return status;
  }
  session->cache_.Init(session->plan_.program.kv_groups, plan.cache, memory,
                       plan.options.context_tokens);
  const BackendId id =
      plan.backend == FindBackend(BackendId::kReference) ? BackendId::kReference : BackendId::kCpu;
  session->sampler_.Init(FindLogitsOps(id), plan.sampler, memory, plan.program.vocab);
  session->sampler_.Configure(SamplingOptions());
  session->create_ns_ = MonotonicNs() - start;
  *out = session;
  return Status::kOk;
}

void Session::Destroy(Session* session) {
  if (session == nullptr) return;
  session->plan_.backend->unload(session->backend_state_);
  const Span<std::byte> owned = session->owned_;
  session->~Session();
  ReleasePages(owned);
}

Status Session::CheckTokens(Span<const int32_t> ids) {
  if (ids.empty()) return diag_.Fail(Status::kBadArgument, "no tokens to prefill");
  const uint32_t vocab = plan_.program.vocab;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || static_cast<uint32_t>(ids[i]) >= vocab) {
      return diag_.Fail(Status::kBadToken, "token %zu is %d, the vocabulary has %u", i, ids[i],
                        vocab);
    }
  }
  const uint32_t left = cache_.capacity() - cache_.length();
  if (ids.size() > left) {
    return diag_.Fail(Status::kContextFull, "%zu tokens after %u do not fit a context of %u",
                      ids.size(), cache_.length(), cache_.capacity());
  }
  return Status::kOk;
}

Status Session::RunChunk(Span<const int32_t> ids, LogitRows logit_rows) {
  const uint32_t n = static_cast<uint32_t>(ids.size());
  if (cache_.Reserve(n) != Status::kOk) {
    return diag_.Fail(Status::kContextFull, "the context of %u tokens is full", cache_.capacity());
  }
  // The run reads ids from the session's own memory: a backend may read them later than the
  // caller's buffer lives.
  int32_t* tokens = memory_.As<int32_t>(plan_.tokens);
  std::memcpy(tokens, ids.data(), n * sizeof(int32_t));
  const SequenceRows rows{0, n, cache_.length(), cache_.tables()};
  RunArgs args;
  args.tokens = {tokens, n};
  args.sequences = {&rows, 1};
  args.logit_rows = logit_rows;
  args.cancel = &cancel_;
  logits_ready_ = false;
  const Status status = plan_.backend->run(backend_state_, args, &diag_);
  if (status != Status::kOk) {
    if (status == Status::kCancelled) {
      cancel_.store(0, std::memory_order_relaxed);
      return diag_.Fail(status, "cancelled after %u tokens", cache_.length());
    }
    return status;
  }
  cache_.Commit(n);
  logits_ready_ = logit_rows != LogitRows::kNone;
  return Status::kOk;
}

Status Session::Prefill(Span<const int32_t> ids) {
  ARN_TRY(CheckTokens(ids));
  Timer timer(&stats_.prefill_ns);
  const size_t chunk = plan_.options.prefill_chunk;
  for (size_t done = 0; done < ids.size();) {
    const size_t n = Min(chunk, ids.size() - done);
    const bool last = done + n == ids.size();
    ARN_TRY(RunChunk(ids.subspan(done, n), last ? LogitRows::kLastOfEach : LogitRows::kNone));
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
  if (ids.size() > plan_.options.prefill_chunk) {
    return diag_.Fail(Status::kBadArgument, "%zu tokens, a chunk has at most %u", ids.size(),
                      plan_.options.prefill_chunk);
  }
  ARN_TRY(CheckTokens(ids));
  Timer timer(&stats_.prefill_ns);
  ARN_TRY(RunChunk(ids, LogitRows::kAll));
  stats_.prefill_tokens += ids.size();
  float* logits = memory_.As<float>(plan_.program.logits);
  *out_logits = logits;
  // Sampling and arn_session_logits look at the start of the region, so the last row must be
  // reachable there without spoiling the others: only a one-row chunk has it in place.
  logits_ready_ = ids.size() == 1;
  return Status::kOk;
}

Status Session::Logits(const float** out_logits) const {
  *out_logits = nullptr;
  if (!logits_ready_) return diag_.Fail(Status::kBadState, "there are no logits: prefill first");
  *out_logits = memory_.As<float>(plan_.program.logits);
  return Status::kOk;
}

Status Session::SetSampling(const SamplingOptions& options) {
  ARN_TRY(CheckSampling(options, &diag_));
  sampler_.Configure(options);
  return Status::kOk;
}

Status Session::Sample(int32_t* out_id) {
  const float* logits = nullptr;
  ARN_TRY(Logits(&logits));
  *out_id = sampler_.Sample(logits);
  return Status::kOk;
}

Status Session::RunOne(int32_t id) {
  ARN_TRY(RunChunk(Span<const int32_t>(&id, 1), LogitRows::kLastOfEach));
  ++stats_.decode_tokens;
  return Status::kOk;
}

Status Session::Decode(int32_t* out_id) {
  Timer timer(&stats_.decode_ns);
  if (cache_.length() == cache_.capacity()) {
    return diag_.Fail(Status::kContextFull, "the context of %u tokens is full", cache_.capacity());
  }
  int32_t id = 0;
  ARN_TRY(Sample(&id));
  ARN_TRY(RunOne(id));
  *out_id = id;
  return Status::kOk;
}

bool Session::IsEnd(int32_t id, const GenerateOptions& options) const {
  if (options.ignore_eos) return false;
  for (uint32_t eos : model_.eos_ids) {
    if (static_cast<uint32_t>(id) == eos) return true;
  }
  for (int32_t eos : options.extra_eos_ids) {
    if (id == eos) return true;
  }
  return false;
}

Status Session::Generate(const GenerateOptions& options, GenerateResult* out) {
  *out = GenerateResult();
  if (!logits_ready_) return diag_.Fail(Status::kBadState, "there are no logits: prefill first");
  const Tokenizer* tokenizer = model_.tokenizer;
  if (tokenizer == nullptr && !options.stops.empty()) {
    return diag_.Fail(Status::kUnsupported, "stop strings need a tokenizer, the bundle has none");
  }
  for (const StringView& stop : options.stops) {
    if (stop.size == 0 || stop.size > kMaxStopBytes) {
      return diag_.Fail(Status::kBadArgument, "a stop string has %zu bytes, expected 1..%u",
                        stop.size, kMaxStopBytes);
    }
  }
  Timer timer(&stats_.decode_ns);
  Tokenizer::DecodeState decode;
  StopFilter filter(options.stops,
                    {memory_.As<char>(plan_.text), static_cast<size_t>(plan_.text.bytes)});
  while (out->finish == Finish::kNone) {
    if (options.max_tokens != 0 && out->n_tokens == options.max_tokens) {
      out->finish = Finish::kLength;
      break;
    }
    if (cache_.length() == cache_.capacity()) {
      out->finish = Finish::kContext;
      break;
    }
    int32_t id = 0;
    ARN_TRY(Sample(&id));
    if (IsEnd(id, options)) {
      out->finish = Finish::kEos;
      break;
    }
    StringView text;
    if (tokenizer != nullptr) {
      const size_t bytes = tokenizer->DecodeToken(&decode, id, true, filter.Space());
      if (filter.Add(bytes, false, &text)) out->finish = Finish::kStop;
    }
    if (options.callback != nullptr &&
        options.callback(options.user, id, text.data, text.size) != 0 &&
        out->finish == Finish::kNone) {
      out->finish = Finish::kCallback;
    }
    // The last token runs too: what is counted is in the sequence, and a caller can go on from it.
    const Status status = RunOne(id);
    if (status == Status::kCancelled) out->finish = Finish::kCancelled;
    ARN_TRY(status);
    ++out->n_tokens;
  }
  if (tokenizer != nullptr && options.callback != nullptr && out->finish != Finish::kStop) {
    StringView rest;
    const size_t bytes = tokenizer->DecodeFinish(&decode, filter.Space());
    if (filter.Add(bytes, true, &rest)) out->finish = Finish::kStop;
    if (rest.size > 0) options.callback(options.user, -1, rest.data, rest.size);
  }
  return Status::kOk;
}

void Session::Reset() {
  cache_.Reset();
  logits_ready_ = false;
}

uint64_t Session::WeightBytesPerToken() const {
  const Program& program = plan_.program;
  uint64_t bytes = 0;
  for (const Step& step : program.steps) {
    if (step.op == Op::kEmbed) continue;
    for (WeightId id : {step.weight, step.norm, step.q_norm, step.k_norm}) {
      if (id != kNoWeight) bytes += program.weights[id].bytes;
    }
  }
  return bytes;
}

uint64_t Session::KvBytesReadPerToken() const {
  const Program& program = plan_.program;
  uint64_t bytes = 0;
  for (const Step& step : program.steps) {
    if (step.op != Op::kAttention) continue;
    const AttentionKind& kind = program.kinds[step.kind];
    const KvGroup& group = program.kv_groups[kind.group];
    const uint64_t seen = kind.window == 0 ? cache_.length() : Min(cache_.length(), kind.window);
    bytes += seen * group.layer_bytes / group.page_tokens;
  }
  return bytes;
}

}  // namespace arn
