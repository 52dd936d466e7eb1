// Implements arn_session_*.
#include "platform/base/arith.h"
#include "platform/os/pages.h"
#include "runtime/api/handles.h"
#include "runtime/api/options.h"
#include "runtime/api/reply_feed.h"
#include "runtime/backends.h"

namespace arn::api {
namespace {

// Session block reserved from the OS. mmap aligns only to the page size, which may be less than
// kRegionAlign.
struct OwnBlock {
  Span<std::byte> pages;
  Span<std::byte> block;
};

Status ReserveBlock(uint64_t bytes, OwnBlock* out, Diag* diag) {
  Result<Span<std::byte>> pages = ReservePages(bytes + kRegionAlign);
  if (!pages.ok()) {
    return diag->Fail(pages.status(), "cannot reserve %llu bytes for the session",
                      static_cast<unsigned long long>(bytes));
  }
  out->pages = pages.value();
  const uintptr_t base = reinterpret_cast<uintptr_t>(out->pages.data());
  const size_t skip = (kRegionAlign - base % kRegionAlign) % kRegionAlign;
  out->block = out->pages.subspan(skip, static_cast<size_t>(bytes));
  return Status::kOk;
}

Status CreateSession(const Model& model, const arn_session_options* options, void* memory,
                     uint64_t memory_bytes, Session** out, Diag* diag) {
  SessionPlan plan;
  ARN_TRY(PlanFromC(model, options, &plan, diag));
  arn_session_options read = ARN_SESSION_OPTIONS_INIT;
  ARN_TRY(ReadStruct(options, "arn_session_options", &read, diag));
  const uint64_t needed = plan.TotalBytes();
  if (memory != nullptr) {
    if (read.kv_file != nullptr) {
      return diag->Fail(Status::kUnsupported,
                        "kv_file: not possible with memory that the caller provides");
    }
    if (reinterpret_cast<uintptr_t>(memory) % kRegionAlign != 0) {
      return diag->Fail(Status::kBadArgument, "memory is not aligned to %u bytes", kRegionAlign);
    }
    if (memory_bytes < needed) {
      return diag->Fail(Status::kOutOfMemory, "memory has %llu bytes, the session needs %llu",
                        static_cast<unsigned long long>(memory_bytes),
                        static_cast<unsigned long long>(needed));
    }
    return Session::Create(
        model, plan, {static_cast<std::byte*>(memory), static_cast<size_t>(needed)}, {}, out, diag);
  }
  OwnBlock own;
  ARN_TRY(ReserveBlock(needed, &own, diag));
  Session::Owned owned = {own.pages, -1};
  Status status = KvPager::MakeFile(plan, read.kv_file, own.block.data(), &owned.kv_file, diag);
  if (status == Status::kOk) {
    status = Session::Create(model, plan, own.block, owned, out, diag);
    if (status != Status::kOk) KvPager::CloseFile(owned.kv_file);
  }
  if (status != Status::kOk) ReleasePages(own.pages);
  return status;
}

}  // namespace

// Passes the tokens of a generation to a reply.
struct ReplyFeed {
  arn_generate_options options = ARN_GENERATE_OPTIONS_INIT;
  bool has_ended = false;  // a callback asked for it

  static int32_t OnToken(void* user, int32_t id, const char* text, size_t bytes) {
    auto& feed = *static_cast<ReplyFeed*>(user);
    const arn_generate_options& to = feed.options;
    if (to.callback != nullptr && to.callback(to.user, id, text, bytes) != 0) feed.has_ended = true;
    arn_reply_next(to.reply, id, OnEvent, &feed);
    return feed.has_ended ? 1 : 0;
  }
  static int32_t OnEvent(void* user, uint32_t event, const char* text, size_t bytes) {
    auto& feed = *static_cast<ReplyFeed*>(user);
    if (feed.options.on_event(feed.options.user, event, text, bytes) != 0) feed.has_ended = true;
    return feed.has_ended ? 1 : 0;
  }
  static Span<const int32_t> Interject(void* user) {
    const arn_generate_options& to = static_cast<ReplyFeed*>(user)->options;
    return CloseReasoning(to.reply, to.reasoning_budget);
  }
  void Finish(arn::Finish finish) {
    const bool is_whole = finish == arn::Finish::kEos || finish == arn::Finish::kStop ||
                          finish == arn::Finish::kContext;
    if (options.reply != nullptr && is_whole) arn_reply_end(options.reply, OnEvent, this);
  }
};

Status ReadStops(const arn_stop_string* stops, size_t n_stops, Span<const StringView>* out,
                 Diag* diag) {
  if (n_stops > kMaxStops || (n_stops > 0 && stops == nullptr)) {
    return diag->Fail(Status::kBadArgument, "%zu stop strings (at most %zu) or a NULL list",
                      n_stops, kMaxStops);
  }
  for (size_t i = 0; i < n_stops; ++i) {
    if (stops[i].text == nullptr) {
      return diag->Fail(Status::kBadArgument, "stop string %zu is NULL", i);
    }
  }
  // The two structs are the same.
  static_assert(sizeof(arn_stop_string) == sizeof(StringView) &&
                offsetof(arn_stop_string, text) == offsetof(StringView, data) &&
                offsetof(arn_stop_string, bytes) == offsetof(StringView, size));
  *out = {reinterpret_cast<const StringView*>(stops), n_stops};
  return Status::kOk;
}

Status ReadGenerateOptions(const arn_generate_options* options, GenerateOptions* out,
                           arn_generate_options* given, Diag* diag) {
  arn_generate_options read = ARN_GENERATE_OPTIONS_INIT;
  ARN_TRY(ReadStruct(options, "arn_generate_options", &read, diag));
  *given = read;
  ARN_TRY(CheckFlag("ignore_eos", read.ignore_eos, diag));
  ARN_TRY(ReadStops(read.stops, read.n_stops, &out->stops, diag));
  if (read.n_extra_eos_ids > 0 && read.extra_eos_ids == nullptr) {
    return diag->Fail(Status::kBadArgument, "extra_eos_ids is NULL, n_extra_eos_ids %zu",
                      read.n_extra_eos_ids);
  }
  ARN_TRY(CheckFlag("no_guesses", read.no_guesses, diag));
  ARN_TRY(CheckFlag("with_logprobs", read.with_logprobs, diag));
  out->max_tokens = read.max_tokens;
  out->ignore_eos = read.ignore_eos == 1;
  out->no_guesses = read.no_guesses == 1;
  if (read.logprobs == nullptr && (read.logprobs_capacity > 0 || read.n_top_logprobs > 0)) {
    return diag->Fail(Status::kBadArgument, "%s is given, and logprobs is NULL",
                      read.n_top_logprobs > 0 ? "n_top_logprobs" : "logprobs_capacity");
  }
  out->has_logits = read.with_logprobs == 1 || read.logprobs != nullptr;
  static_assert(sizeof(arn_token_logprob) == sizeof(TokenLogprob));
  out->logprobs = {reinterpret_cast<TokenLogprob*>(read.logprobs), read.logprobs_capacity};
  out->n_top = read.n_top_logprobs;
  out->extra_eos_ids = {read.extra_eos_ids, read.n_extra_eos_ids};
  out->callback = read.callback;
  out->user = read.user;
  return Status::kOk;
}

// Lets the generation feed the reply of `read`, if there is one.
Status FeedReply(const arn_generate_options& read, GenerateOptions* out, ReplyFeed* feed,
                 Diag* diag) {
  if (read.reply == nullptr) {
    if (read.on_event == nullptr && read.reasoning_budget == 0) return Status::kOk;
    return diag->Fail(Status::kBadArgument, "%s needs a reply",
                      read.on_event != nullptr ? "on_event" : "reasoning_budget");
  }
  if (read.on_event == nullptr) {
    return diag->Fail(Status::kBadArgument, "reply is given, and on_event is NULL");
  }
  if (read.reasoning_budget != 0) ARN_TRY(CheckBudget(read.reply, diag));
  feed->options = read;
  out->callback = ReplyFeed::OnToken;
  if (read.reasoning_budget != 0) out->interject = ReplyFeed::Interject;
  out->user = feed;
  return Status::kOk;
}

}  // namespace arn::api

using namespace arn;       // NOLINT(google-build-using-namespace): the entry points below are C
using namespace arn::api;  // NOLINT(google-build-using-namespace)

extern "C" {

arn_status arn_session_create(const arn_model* model, const arn_session_options* options,
                              void* memory, uint64_t memory_bytes, char* error, size_t error_bytes,
                              arn_session** out_session) {
  if (out_session == nullptr) return ARN_BAD_ARGUMENT;
  *out_session = nullptr;
  if (model == nullptr) return ARN_BAD_ARGUMENT;
  Diag diag;
  Session* session = nullptr;
  const Status status =
      CreateSession(*ToModel(model), options, memory, memory_bytes, &session, &diag);
  *out_session = reinterpret_cast<arn_session*>(session);
  return Report(status, diag, error, error_bytes);
}

void arn_session_destroy(arn_session* session) { Session::Destroy(ToSession(session)); }

const char* arn_session_last_error(const arn_session* session) {
  return session == nullptr ? "" : ToSession(session)->diag().text();
}

arn_status arn_session_backend(const arn_session* session, arn_backend_info* out_info) {
  if (session == nullptr || out_info == nullptr) return ARN_BAD_ARGUMENT;
  const Executor& executor = ToSession(session)->executor();
  arn_backend_info out = ARN_BACKEND_INFO_INIT;
  out.backend = static_cast<uint32_t>(IdOf(executor.backend()));
  out.name = executor.backend().name;
  out.device = executor.device_name();
  out.reason = executor.fallback_reason();
  out.kernels = executor.kernel_names();
  out.quirks = executor.quirks();
  out.imported_bytes = executor.imported_bytes();
  return ToC(WriteStruct(out, out_info));
}

arn_status arn_session_encode_ids(arn_session* session, const int32_t* ids, size_t n_ids) {
  if (session == nullptr || (ids == nullptr && n_ids > 0)) return ARN_BAD_ARGUMENT;
  return OnSession(session, [&](Session& s) { return s.EncodeIds({ids, n_ids}); });
}

arn_status arn_session_encode_features(arn_session* session, const float* features,
                                       uint32_t n_frames, uint32_t width) {
  if (session == nullptr || features == nullptr) return ARN_BAD_ARGUMENT;
  return OnSession(session, [&](Session& s) {
    return s.EncodeFeatures({features, size_t{n_frames} * width}, n_frames, width);
  });
}

arn_status arn_session_prefill(arn_session* session, const int32_t* ids, size_t n_ids) {
  if (session == nullptr || (ids == nullptr && n_ids > 0)) return ARN_BAD_ARGUMENT;
  return OnSession(session, [&](Session& s) { return s.Prefill({ids, n_ids}); });
}

arn_status arn_session_set_prefill_callback(arn_session* session, arn_prefill_callback callback,
                                            void* user) {
  if (session == nullptr) return ARN_BAD_ARGUMENT;
  return OnSession(session, [&](Session& s) {
    s.SetOnChunk(callback, user);
    return Status::kOk;
  });
}

arn_status arn_session_prefill_logits(arn_session* session, const int32_t* ids, size_t n_ids,
                                      const float** out_logits) {
  if (out_logits == nullptr) return ARN_BAD_ARGUMENT;
  *out_logits = nullptr;
  if (session == nullptr || (ids == nullptr && n_ids > 0)) return ARN_BAD_ARGUMENT;
  return OnSession(session, [&](Session& s) { return s.PrefillLogits({ids, n_ids}, out_logits); });
}

arn_status arn_session_prefill_masked(arn_session* session, const int32_t* ids, size_t n,
                                      const arn_attention_mask* mask, const float** out_logits) {
  if (out_logits != nullptr) *out_logits = nullptr;
  if (session == nullptr || (ids == nullptr && n > 0)) return ARN_BAD_ARGUMENT;
  return OnSession(session, [&](Session& s) {
    arn_attention_mask read = ARN_ATTENTION_MASK_INIT;
    ARN_TRY(ReadStruct(mask, "arn_attention_mask", &read, s.diag()));
    return s.PrefillMasked({ids, n}, {read.positions, read.visible, read.first}, out_logits);
  });
}

arn_status arn_session_logits(const arn_session* session, const float** out_logits) {
  if (out_logits == nullptr) return ARN_BAD_ARGUMENT;
  *out_logits = nullptr;
  if (session == nullptr) return ARN_BAD_ARGUMENT;
  // Logically const: may only copy the logits from a device.
  return ToC(const_cast<Session*>(ToSession(session))->Logits(out_logits));
}

arn_status arn_session_decode(arn_session* session, int32_t* out_id) {
  if (session == nullptr || out_id == nullptr) return ARN_BAD_ARGUMENT;
  return OnSession(session, [&](Session& s) { return s.Decode(out_id); });
}

arn_status arn_session_sample(arn_session* session, int32_t* out_id) {
  if (session == nullptr || out_id == nullptr) return ARN_BAD_ARGUMENT;
  return OnSession(session, [&](Session& s) { return s.Sample(out_id); });
}

uint32_t arn_session_length(const arn_session* session) {
  return session == nullptr ? 0 : ToSession(session)->sequences().length();
}

arn_status arn_session_reset(arn_session* session) {
  if (session == nullptr) return ARN_BAD_ARGUMENT;
  return OnSession(session, [](Session& s) {
    s.Reset();
    return Status::kOk;
  });
}

void arn_session_cancel(arn_session* session) {
  if (session != nullptr) ToSession(session)->Cancel();
}

void arn_session_clear_cancel(arn_session* session) {
  if (session != nullptr) ToSession(session)->ClearCancel();
}

arn_status arn_session_generate(arn_session* session, const arn_generate_options* options,
                                arn_generate_result* out_result) {
  if (session == nullptr) return ARN_BAD_ARGUMENT;
  return OnSession(session, [&](Session& s) {
    GenerateOptions read;
    ReplyFeed feed;
    arn_generate_options given;
    ARN_TRY(ReadGenerateOptions(options, &read, &given, s.diag()));
    ARN_TRY(FeedReply(given, &read, &feed, s.diag()));
    GenerateResult result;
    const Status status = s.Generate(read, &result);
    if (status == Status::kOk) feed.Finish(result.finish);
    if (out_result == nullptr) return status;
    arn_generate_result out = ARN_GENERATE_RESULT_INIT;
    out.n_tokens = result.n_tokens;
    out.finish = static_cast<uint32_t>(result.finish);
    out.n_logprobs = result.n_logprobs;
    const Status written = WriteStruct(out, out_result);
    return status == Status::kOk ? written : status;
  });
}

}  // extern "C"
