#include "runtime/session/generator.h"

#include "platform/base/arith.h"
#include "runtime/session/stop_filter.h"
#include "runtime/session/timer.h"

namespace arn {

struct Generator::Generation {
  SessionCore* core;
  const GenerateOptions& options;
  GenerateResult* out;
  const Tokenizer* tokenizer;
  StopFilter filter;
  Tokenizer::DecodeState decode;
  Span<const int32_t> given;  // ids that come next
};

namespace {

// Drops guesses that were not chosen, however a generation ends.
class Settling {
 public:
  explicit Settling(Speculator* speculator) : speculator_(*speculator) {}
  ~Settling() { speculator_.Settle(); }
  Settling(const Settling&) = delete;
  Settling& operator=(const Settling&) = delete;

 private:
  Speculator& speculator_;
};

}  // namespace

bool Generator::CollectStopIds(const GenerateOptions& options, Span<int32_t> out, size_t* n) const {
  *n = 0;
  if (options.ignore_eos) return true;
  if (core_.model.eos_ids.size() + options.extra_eos_ids.size() > out.size()) return false;
  for (uint32_t eos : core_.model.eos_ids) out[(*n)++] = static_cast<int32_t>(eos);
  for (int32_t eos : options.extra_eos_ids) out[(*n)++] = eos;
  return true;
}

bool Generator::IsStopId(int32_t id, const GenerateOptions& options) const {
  if (options.ignore_eos) return false;
  for (uint32_t eos : core_.model.eos_ids) {
    if (static_cast<uint32_t>(id) == eos) return true;
  }
  for (int32_t eos : options.extra_eos_ids) {
    if (id == eos) return true;
  }
  return false;
}

bool Generator::DeliverAndContinue(int32_t id, Generation* generation) {
  const GenerateOptions& options = generation->options;
  GenerateResult* out = generation->out;
  StringView text;
  if (generation->tokenizer != nullptr) {
    StopFilter& filter = generation->filter;
    const size_t bytes =
        generation->tokenizer->DecodeToken(&generation->decode, id, true, filter.Space());
    if (filter.Add(bytes, false, &text)) out->finish = Finish::kStop;
  }
  if (options.callback != nullptr) {
    const InCallback in_callback(generation->core);
    const bool ends = options.callback(options.user, id, text.data, text.size) != 0;
    if (ends && out->finish == Finish::kNone) out->finish = Finish::kCallback;
  }
  if (options.interject != nullptr && generation->given.empty() && out->finish == Finish::kNone) {
    generation->given = options.interject(options.user);
  }
  return out->finish == Finish::kNone && generation->given.empty();
}

Status Generator::RunGiven(Span<const int32_t> ids, Generation* generation) {
  GenerateResult* out = generation->out;
  uint32_t n = 0;
  for (; n < ids.size() && out->finish == Finish::kNone; ++n) {
    core_.is_behind_logits = n > 0;
    DeliverAndContinue(ids[n], generation);
  }
  core_.is_behind_logits = false;
  const uint32_t n_run = speculator_.TakeRun(sequences_.selected(), ids.subspan(0, n));
  out->n_tokens += n_run;
  n -= n_run;
  if (n == 0) return Status::kOk;
  speculator_.Settle();
  const Status status = decoder_.RunForced(sequences_.selected(), ids.subspan(n_run, n));
  if (status == Status::kCancelled) out->finish = Finish::kCancelled;
  ARN_TRY(status);
  out->n_tokens += n;
  return Status::kOk;
}

uint32_t Generator::MostAtOnce(const Generation& generation) const {
  const uint32_t room = core_.plan.options.context_tokens - sequences_.length();
  const uint32_t at_once =
      generation.options.has_logits ? 1 : runner_.RunTokens(sequences_.selected());
  const uint32_t most = Min(at_once, room);
  const uint32_t max_tokens = generation.options.max_tokens;
  return max_tokens == 0 ? most : Min(most, max_tokens - generation.out->n_tokens);
}

uint32_t Generator::WantedAfter(const Generation& generation) {
  const GenerateResult& out = *generation.out;
  if (out.finish != Finish::kNone || !generation.given.empty()) return 0;
  const uint32_t max_tokens = generation.options.max_tokens;
  return max_tokens == 0 ? UINT32_MAX : max_tokens - out.n_tokens - 1;
}

Status Generator::Interject(Generation* generation) {
  ARN_TRY(runner_.MakeRoomForOne(sequences_.selected()));
  const Span<const int32_t> given = generation->given;
  const size_t n = Min<size_t>(given.size(), MostAtOnce(*generation));
  // Not empty while its ids are delivered, so that nothing comes in between them.
  ARN_TRY(RunGiven(given.subspan(0, n), generation));
  generation->given = given.subspan(n, given.size() - n);
  return Status::kOk;
}

Status Generator::FollowConstraint(Generation* generation, bool* is_taken) {
  const uint32_t selected = sequences_.selected();
  GenerateResult* out = generation->out;
  *is_taken = false;
  ARN_TRY(constrainer_.Read(selected));
  if (constrainer_.MustEnd(selected)) {
    ARN_TRY(constrainer_.CheckFailure(selected));
    out->finish = Finish::kEos;
    *is_taken = true;
    return Status::kOk;
  }
  if (sequences_.IsAtLast(selected)) return Status::kOk;
  const Span<const int32_t> ids = constrainer_.ForcedIds(selected);
  const size_t n = Min<size_t>(ids.size(), MostAtOnce(*generation));
  // One token costs the same through the choice.
  if (n < 2) return Status::kOk;
  *is_taken = true;
  return RunGiven(ids.subspan(0, n), generation);
}

Status Generator::Generate(const GenerateOptions& options, GenerateResult* out) {
  const uint32_t selected = sequences_.selected();
  *out = GenerateResult();
  if (!sequences_.IsAtEnd(selected)) ARN_TRY(chooser_.Need(selected));
  const Tokenizer* tokenizer = core_.model.tokenizer;
  if (tokenizer == nullptr && !options.stops.empty()) {
    return core_.diag.Fail(Status::kUnsupported,
                           "stop strings need a tokenizer, the bundle has none");
  }
  for (const StringView& stop : options.stops) {
    if (stop.size == 0 || stop.size > kMaxStopBytes) {
      return core_.diag.Fail(Status::kBadArgument, "a stop string has %zu bytes, expected 1..%u",
                             stop.size, kMaxStopBytes);
    }
  }
  Timer timer(&core_.stats.decode_ns);
  Generation generation{&core_,
                        options,
                        out,
                        tokenizer,
                        StopFilter(options.stops, {core_.memory.As<char>(core_.plan.text),
                                                   static_cast<size_t>(core_.plan.text.bytes)}),
                        {},
                        {}};
  const bool is_constrained = constrainer_.Has(selected);
  if (is_constrained) {
    constrainer_.SetEnds(selected, options.extra_eos_ids, !options.ignore_eos);
    // The text goes on where the constrained text of the last call ended.
    if (constrainer_.HasBegun(selected)) generation.decode = Tokenizer::MiddleOfText();
  }
  int32_t stop_ids[DecodeArgs::kMaxStopIds];
  size_t n_stop_ids = 0;
  const bool stop_ids_fit =
      CollectStopIds(options, {stop_ids, DecodeArgs::kMaxStopIds}, &n_stop_ids);
  speculator_.Begin(selected, !options.no_guesses);
  const Settling settling(&speculator_);
  while (out->finish == Finish::kNone) {
    if (options.max_tokens != 0 && out->n_tokens == options.max_tokens) {
      out->finish = Finish::kLength;
      break;
    }
    if (sequences_.IsAtEnd(selected)) {
      if (core_.plan.options.overflow != Overflow::kStop) {
        return sequences_.ContextFullError(selected);
      }
      out->finish = Finish::kContext;
      break;
    }
    if (!generation.given.empty() && !sequences_.IsAtLast(selected)) {
      ARN_TRY(Interject(&generation));
      continue;
    }
    if (is_constrained) {
      bool is_taken = false;
      ARN_TRY(FollowConstraint(&generation, &is_taken));
      if (is_taken) continue;
    }
    Decoder::StepsOnDevice steps;
    if (!sequences_.IsAtLast(selected)) ARN_TRY(runner_.MakeRoomForOne(selected));
    if (stop_ids_fit && !sequences_.IsAtLast(selected)) {
      steps.wanted = options.max_tokens == 0 ? UINT32_MAX : options.max_tokens - out->n_tokens;
      steps.stop_ids = {stop_ids, n_stop_ids};
      steps.on_token = [](void* user, int32_t token) {
        return DeliverAndContinue(token, static_cast<Generation*>(user));
      };
      steps.user = &generation;
      const Status status = decoder_.RunOnDevice(&steps);
      out->n_tokens += steps.n_run;
      if (status == Status::kCancelled) out->finish = Finish::kCancelled;
      ARN_TRY(status);
      if (steps.ended) out->finish = Finish::kEos;
      if (steps.is_taken) continue;
    }
    int32_t id = 0;
    const Chooser::Request request{
        options.extra_eos_ids, options.max_tokens != 0 && out->n_tokens + 1 == options.max_tokens};
    ARN_TRY(chooser_.Choose(selected, request, &id));
    if (IsStopId(id, options)) {
      out->finish = Finish::kEos;
      break;
    }
    DeliverAndContinue(id, &generation);
    // Runs the last token too if it fits: counted tokens are in the sequence, so the caller can
    // continue from there.
    const Status status = speculator_.RunChosen(selected, id, WantedAfter(generation));
    if (status == Status::kCancelled) out->finish = Finish::kCancelled;
    ARN_TRY(status);
    ++out->n_tokens;
  }
  if (tokenizer != nullptr && options.callback != nullptr && out->finish != Finish::kStop) {
    StringView rest;
    StopFilter& filter = generation.filter;
    const size_t bytes = tokenizer->DecodeFinish(&generation.decode, filter.Space());
    if (filter.Add(bytes, true, &rest)) out->finish = Finish::kStop;
    const InCallback in_callback(&core_);
    if (rest.size > 0) options.callback(options.user, -1, rest.data, rest.size);
  }
  return Status::kOk;
}

}  // namespace arn
