#include "platform/base/arith.h"
#include "runtime/session/session.h"
#include "runtime/session/stop_filter.h"
#include "runtime/session/timer.h"

namespace arn {

bool Session::IsStopId(int32_t id, const GenerateOptions& options) const {
  if (options.ignore_eos) return false;
  for (uint32_t eos : model_.eos_ids) {
    if (static_cast<uint32_t>(id) == eos) return true;
  }
  for (int32_t eos : options.extra_eos_ids) {
    if (id == eos) return true;
  }
  return false;
}

bool Session::CollectStopIds(const GenerateOptions& options, Span<int32_t> out, size_t* n) const {
  *n = 0;
  if (options.ignore_eos) return true;
  if (model_.eos_ids.size() + options.extra_eos_ids.size() > out.size()) return false;
  for (uint32_t eos : model_.eos_ids) out[(*n)++] = static_cast<int32_t>(eos);
  for (int32_t eos : options.extra_eos_ids) out[(*n)++] = eos;
  return true;
}

struct Session::Generation {
  const GenerateOptions& options;
  GenerateResult* out;
  const Tokenizer* tokenizer;
  StopFilter filter;
  Tokenizer::DecodeState decode;
};

bool Session::DeliverAndContinue(int32_t id, Generation* generation) {
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
    const InCallback in_callback(&is_in_callback_);
    const bool ends = options.callback(options.user, id, text.data, text.size) != 0;
    if (ends && out->finish == Finish::kNone) out->finish = Finish::kCallback;
  }
  return out->finish == Finish::kNone;
}

Status Session::Generate(const GenerateOptions& options, GenerateResult* out) {
  *out = GenerateResult();
  if (!IsAtEnd(selected_)) ARN_TRY(NeedLogits(selected_));
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
  Generation generation{options,
                        out,
                        tokenizer,
                        StopFilter(options.stops, {memory_.As<char>(plan_.text),
                                                   static_cast<size_t>(plan_.text.bytes)}),
                        {}};
  int32_t stop_ids[DecodeArgs::kMaxStopIds];
  size_t n_stop_ids = 0;
  const bool stop_ids_fit =
      CollectStopIds(options, {stop_ids, DecodeArgs::kMaxStopIds}, &n_stop_ids);
  while (out->finish == Finish::kNone) {
    if (options.max_tokens != 0 && out->n_tokens == options.max_tokens) {
      out->finish = Finish::kLength;
      break;
    }
    if (IsAtEnd(selected_)) {
      if (plan_.options.overflow != Overflow::kStop) return ContextFullError(selected_);
      out->finish = Finish::kContext;
      break;
    }
    StepsOnDevice steps;
    if (!IsAtLast(selected_)) ARN_TRY(MakeRoomForOne(selected_));
    if (stop_ids_fit && !IsAtLast(selected_)) {
      steps.wanted = options.max_tokens == 0 ? UINT32_MAX : options.max_tokens - out->n_tokens;
      steps.stop_ids = {stop_ids, n_stop_ids};
      steps.generation = &generation;
      const Status status = DecodeOnDevice(&steps);
      out->n_tokens += steps.n_run;
      if (status == Status::kCancelled) out->finish = Finish::kCancelled;
      ARN_TRY(status);
      if (steps.ended) out->finish = Finish::kEos;
      if (steps.is_taken) continue;
    }
    int32_t id = 0;
    ARN_TRY(Choose(selected_, &id));
    if (IsStopId(id, options)) {
      out->finish = Finish::kEos;
      break;
    }
    DeliverAndContinue(id, &generation);
    // Runs the last token too if it fits: counted tokens are in the sequence, so the caller can
    // continue from there.
    const Status status = RunChosen(selected_, id);
    if (status == Status::kCancelled) out->finish = Finish::kCancelled;
    ARN_TRY(status);
    ++out->n_tokens;
  }
  if (tokenizer != nullptr && options.callback != nullptr && out->finish != Finish::kStop) {
    StringView rest;
    StopFilter& filter = generation.filter;
    const size_t bytes = tokenizer->DecodeFinish(&generation.decode, filter.Space());
    if (filter.Add(bytes, true, &rest)) out->finish = Finish::kStop;
    const InCallback in_callback(&is_in_callback_);
    if (rest.size > 0) options.callback(options.user, -1, rest.data, rest.size);
  }
  return Status::kOk;
}

}  // namespace arn
