// Implements arn_constraint_* and the arn_session_* calls on constraints.
#include <cstring>
#include <new>

#include "platform/base/arith.h"
#include "platform/os/clock.h"
#include "platform/os/pages.h"
#include "runtime/api/handles.h"
#include "runtime/api/options.h"
#include "runtime/chat/reply_format.h"

namespace arn::api {
namespace {

#define ARN_SAME(c_name, cpp_name) \
  static_assert(static_cast<uint32_t>(c_name) == static_cast<uint32_t>(ConstraintKind::cpp_name))
ARN_SAME(ARN_CONSTRAINT_JSON_SCHEMA, kJsonSchema);
ARN_SAME(ARN_CONSTRAINT_REGEX, kRegex);
ARN_SAME(ARN_CONSTRAINT_GRAMMAR, kGrammar);
ARN_SAME(ARN_CONSTRAINT_CHOICES, kChoices);
ARN_SAME(ARN_CONSTRAINT_TOOL_CALLS, kToolCalls);
#undef ARN_SAME
static_assert(static_cast<uint32_t>(ToolChoice::kAuto) == ARN_TOOL_CHOICE_AUTO);
static_assert(static_cast<uint32_t>(ToolChoice::kRequired) == ARN_TOOL_CHOICE_REQUIRED);
static_assert(static_cast<uint32_t>(ToolChoice::kNone) == ARN_TOOL_CHOICE_NONE);
static_assert(static_cast<uint32_t>(ToolChoice::kNamed) == ARN_TOOL_CHOICE_NAMED);
static_assert(ARN_AT_NEXT_TOKEN == Constrainer::kAtNextChoice);

constexpr uint64_t kBlockAlign = 64;

Status ReadToolCalls(const Model& model, const arn_constraint_options& read, ToolCallOptions* out,
                     Diag* diag) {
  if (read.tool_choice > ARN_TOOL_CHOICE_NAMED) {
    return diag->Fail(Status::kUnsupported, "tool_choice %u is not known", read.tool_choice);
  }
  const bool is_named = read.tool_choice == ARN_TOOL_CHOICE_NAMED;
  if (is_named != (read.tool_name != nullptr)) {
    return diag->Fail(Status::kBadArgument, "tool_name is %s, and tool_choice %s",
                      is_named ? "NULL" : "given", is_named ? "needs it" : "is another");
  }
  if (read.prompt == nullptr && read.prompt_bytes > 0) {
    return diag->Fail(Status::kBadArgument, "prompt is NULL and has %zu bytes", read.prompt_bytes);
  }
  out->format = &ReplyFormatOf(model);
  out->choice = static_cast<ToolChoice>(read.tool_choice);
  out->name = StringView(read.tool_name, read.tool_name_bytes);
  out->is_single = read.single_call == 1;
  out->start = chat::StartOfReply(*out->format, {read.prompt, read.prompt_bytes});
  return Status::kOk;
}

Status ReadConstraintOptions(const Model& model, const arn_constraint_options* options,
                             TokenConstraintOptions* out, uint32_t* first, Diag* diag) {
  arn_constraint_options read = ARN_CONSTRAINT_OPTIONS_INIT;
  ARN_TRY(ReadStruct(options, "arn_constraint_options", &read, diag));
  if (read.kind > ARN_CONSTRAINT_TOOL_CALLS) {
    return diag->Fail(Status::kUnsupported, "constraint kind %u is not known", read.kind);
  }
  if (read.text == nullptr) return diag->Fail(Status::kBadArgument, "constraint text is NULL");
  const struct {
    const char* name;
    uint32_t value;
  } flags[] = {{"any_order", read.any_order},
               {"any_whitespace", read.any_whitespace},
               {"choose_forced", read.choose_forced},
               {"any_spelling", read.any_spelling},
               {"single_call", read.single_call}};
  for (const auto& flag : flags) {
    ARN_TRY(CheckFlag(flag.name, flag.value, diag));
  }
  const bool is_schema = read.kind == ARN_CONSTRAINT_JSON_SCHEMA;
  const bool is_calls = read.kind == ARN_CONSTRAINT_TOOL_CALLS;
  const struct {
    const char* name;
    bool is_set, may_be;
    const char* owner;
  } uses[] = {{"any_order", read.any_order != 0, is_schema || is_calls, "a JSON schema"},
              {"any_whitespace", read.any_whitespace != 0, is_schema, "a JSON schema"},
              {"any_spelling", read.any_spelling != 0, is_schema, "a JSON schema"},
              {"tool_choice", read.tool_choice != 0, is_calls, "tools"},
              {"tool_name", read.tool_name != nullptr, is_calls, "tools"},
              {"single_call", read.single_call != 0, is_calls, "tools"},
              {"prompt", read.prompt != nullptr, is_calls, "tools"}};
  for (const auto& use : uses) {
    if (!use.is_set || use.may_be) continue;
    return diag->Fail(Status::kBadArgument, "%s is given, which only %s can have", use.name,
                      use.owner);
  }
  if (is_calls) ARN_TRY(ReadToolCalls(model, read, &out->constraint.calls, diag));
  out->constraint.kind = static_cast<ConstraintKind>(read.kind);
  out->constraint.text = StringView(read.text, read.text_bytes);
  out->constraint.any_order = read.any_order == 1;
  out->constraint.any_whitespace = read.any_whitespace == 1;
  out->constraint.any_spelling = read.any_spelling == 1;
  out->chooses_forced = read.choose_forced == 1;
  *first = read.first;
  return Status::kOk;
}

}  // namespace

Status ReadConstraint(const Model& model, const arn_constraint_options& options,
                      TokenConstraintOptions* out, uint32_t* first, Diag* diag) {
  return ReadConstraintOptions(model, &options, out, first, diag);
}

Status CheckBeginsReply(uint32_t first, Diag* diag) {
  if (first == ARN_AT_NEXT_TOKEN) return Status::kOk;
  return diag->Fail(Status::kBadArgument,
                    "first is %u: the constraint of a request begins with its reply "
                    "(ARN_AT_NEXT_TOKEN)",
                    first);
}

namespace {

Status WriteStats(const TokenConstraint& constraint, arn_constraint_stats_data* out_stats) {
  arn_constraint_stats_data out = ARN_CONSTRAINT_STATS_INIT;
  const ConstraintCounts& counts = constraint.counts();
  const TimeHistogram& times = constraint.times();
  out.steps = counts.steps;
  out.candidates_tested = counts.candidates_tested;
  out.masks = counts.masks_filled;
  out.forced_tokens = counts.forced_tokens;
  out.compile_ns = counts.compile_ns;
  out.p50_ns = times.PercentileNs(0.5);
  out.p99_ns = times.PercentileNs(0.99);
  out.p999_ns = times.PercentileNs(0.999);
  out.max_ns = times.max_ns();
  out.bytes = constraint.used_bytes();
  return WriteStruct(out, out_stats);
}

// An arn_constraint, at the beginning of its block: the rest is the constraint's.
struct StandAlone {
  Span<std::byte> pages;  // to release; empty: the caller's memory
  TokenConstraint* constraint = nullptr;
  const Session* session = nullptr;  // whose requests may use it; null: nobody's
};

StandAlone* ToConstraint(arn_constraint* constraint) {
  return reinterpret_cast<StandAlone*>(constraint);
}

// Compiles a constraint for a text of its own.
Status CompileAlone(const Model& model, const arn_constraint_options* options,
                    Span<std::byte> block, TokenConstraint** out, Diag* diag) {
  TokenConstraintOptions read;
  uint32_t first = 0;
  ARN_TRY(ReadConstraintOptions(model, options, &read, &first, diag));
  TokenSet tokens;
  ARN_TRY(ReadTokenBytes(model, &tokens.bytes, diag));
  tokens.tokenizer = model.tokenizer;
  tokens.end_ids = model.eos_ids;
  tokens.vocab = model.has_weights ? model.spec.vocab : model.tokenizer->n_tokens();
  return TokenConstraint::Compile(read, tokens, 1, block, out, diag);
}

// Compiles a constraint for the requests of a scheduler.
Status CompileFor(const Session& session, const arn_constraint_options* options,
                  Span<std::byte> block, TokenConstraint** out, Diag* diag) {
  TokenConstraintOptions read;
  uint32_t first = 0;
  ARN_TRY(ReadConstraintOptions(session.model(), options, &read, &first, diag));
  ARN_TRY(CheckBeginsReply(first, diag));
  return session.constrainer().CompileApart(read, block, out, diag);
}

// `compile`: a Status(Span<std::byte> block, TokenConstraint**).
template <typename Compile>
Status CreateIn(const Compile& compile, const arn_constraint_options* options, void* memory,
                uint64_t memory_bytes, StandAlone** out, Diag* diag) {
  if (options == nullptr) return diag->Fail(Status::kBadArgument, "options is NULL");
  constexpr uint64_t kOwnBytes = AlignUp(sizeof(StandAlone), kBlockAlign);
  if (memory_bytes < kMinConstraintBytes || memory_bytes > kMaxConstraintBytes) {
    return diag->Fail(Status::kBadArgument, "memory_bytes is %llu, expected %llu to %llu",
                      static_cast<unsigned long long>(memory_bytes),
                      static_cast<unsigned long long>(kMinConstraintBytes),
                      static_cast<unsigned long long>(kMaxConstraintBytes));
  }
  if (reinterpret_cast<uintptr_t>(memory) % kBlockAlign != 0) {
    return diag->Fail(Status::kBadArgument, "memory is not aligned to %llu bytes",
                      static_cast<unsigned long long>(kBlockAlign));
  }
  Span<std::byte> pages;
  Span<std::byte> block(static_cast<std::byte*>(memory), static_cast<size_t>(memory_bytes));
  if (memory == nullptr) {
    Result<Span<std::byte>> reserved = ReservePages(memory_bytes);
    if (!reserved.ok()) {
      return diag->Fail(reserved.status(), "cannot reserve %llu bytes for the constraint",
                        static_cast<unsigned long long>(memory_bytes));
    }
    pages = reserved.value();
    block = pages.subspan(0, static_cast<size_t>(memory_bytes));
  }
  auto* made = new (block.data()) StandAlone{pages};
  const Status status =
      compile(block.subspan(kOwnBytes, block.size() - kOwnBytes), &made->constraint);
  if (status != Status::kOk) {
    ReleasePages(pages);
    return status;
  }
  *out = made;
  return Status::kOk;
}

// Failure of the last step of a constraint.
arn_status StatusOf(const TokenConstraint& constraint) {
  return constraint.Failure() != nullptr ? ARN_OUT_OF_MEMORY : ARN_OK;
}

}  // namespace
}  // namespace arn::api

using namespace arn;       // NOLINT(google-build-using-namespace): the entry points below are C
using namespace arn::api;  // NOLINT(google-build-using-namespace)

extern "C" {

arn_status arn_session_set_constraint(arn_session* session, const arn_constraint_options* options) {
  if (session == nullptr) return ARN_BAD_ARGUMENT;
  return OnSession(session, [&](Session& s) {
    if (options == nullptr) return s.SetConstraint(nullptr, 0);
    TokenConstraintOptions read;
    uint32_t first = 0;
    ARN_TRY(ReadConstraintOptions(s.model(), options, &read, &first, s.diag()));
    return s.SetConstraint(&read, first);
  });
}

arn_status arn_session_constraint_stats(const arn_session* session,
                                        arn_constraint_stats_data* out_stats) {
  if (session == nullptr || out_stats == nullptr) return ARN_BAD_ARGUMENT;
  const Session& s = *ToSession(session);
  const TokenConstraint* constraint = s.constrainer().Find(s.sequences().selected());
  if (constraint == nullptr) return ARN_NOT_FOUND;
  return ToC(WriteStats(*constraint, out_stats));
}

arn_status arn_constraint_create(const arn_model* model, const arn_constraint_options* options,
                                 void* memory, uint64_t memory_bytes, char* error,
                                 size_t error_bytes, arn_constraint** out_constraint) {
  if (out_constraint == nullptr) return ARN_BAD_ARGUMENT;
  *out_constraint = nullptr;
  if (model == nullptr) return ARN_BAD_ARGUMENT;
  Diag diag;
  StandAlone* made = nullptr;
  const auto compile = [&](Span<std::byte> block, TokenConstraint** out) {
    return CompileAlone(*ToModel(model), options, block, out, &diag);
  };
  const Status status = CreateIn(compile, options, memory, memory_bytes, &made, &diag);
  *out_constraint = reinterpret_cast<arn_constraint*>(made);
  return Report(status, diag, error, error_bytes);
}

arn_status arn_scheduler_compile_constraint(const arn_scheduler* scheduler,
                                            const arn_constraint_options* options, void* memory,
                                            uint64_t memory_bytes, char* error, size_t error_bytes,
                                            arn_constraint** out_constraint) {
  if (out_constraint == nullptr) return ARN_BAD_ARGUMENT;
  *out_constraint = nullptr;
  if (scheduler == nullptr) return ARN_BAD_ARGUMENT;
  const Session& session = *reinterpret_cast<const Session*>(scheduler);
  Diag diag;  // the session's own is for one thread
  StandAlone* made = nullptr;
  const auto compile = [&](Span<std::byte> block, TokenConstraint** out) {
    return CompileFor(session, options, block, out, &diag);
  };
  const Status status = CreateIn(compile, options, memory, memory_bytes, &made, &diag);
  if (status == Status::kOk) made->session = &session;
  *out_constraint = reinterpret_cast<arn_constraint*>(made);
  return Report(status, diag, error, error_bytes);
}

arn_status arn_scheduler_set_constraint(arn_scheduler* scheduler, uint64_t request,
                                        arn_constraint* constraint) {
  if (scheduler == nullptr || constraint == nullptr) return ARN_BAD_ARGUMENT;
  return BesideScheduler(reinterpret_cast<arn_session*>(scheduler), [&](Session& s) {
    const StandAlone& compiled = *ToConstraint(constraint);
    if (compiled.session != &s) {
      return s.diag()->Fail(Status::kBadArgument,
                            "the constraint was not compiled for this scheduler "
                            "(arn_scheduler_compile_constraint)");
    }
    return s.scheduler().Constrain(request, compiled.constraint);
  });
}

void arn_constraint_destroy(arn_constraint* constraint) {
  if (constraint != nullptr) ReleasePages(ToConstraint(constraint)->pages);
}

arn_status arn_constraint_reset(arn_constraint* constraint) {
  if (constraint == nullptr) return ARN_BAD_ARGUMENT;
  ToConstraint(constraint)->constraint->Reset(0);
  return ARN_OK;
}

arn_status arn_constraint_test(arn_constraint* constraint, int32_t id, uint32_t* out_allowed) {
  if (out_allowed == nullptr) return ARN_BAD_ARGUMENT;
  *out_allowed = 0;
  if (constraint == nullptr) return ARN_BAD_ARGUMENT;
  TokenConstraint& c = *ToConstraint(constraint)->constraint;
  c.ClearFailure();
  *out_allowed = c.Allows(0, id) ? 1 : 0;
  return StatusOf(c);
}

arn_status arn_constraint_accept(arn_constraint* constraint, const int32_t* ids, size_t n_ids,
                                 size_t* out_accepted, uint64_t* out_bytes) {
  if (out_bytes != nullptr) *out_bytes = 0;
  if (out_accepted == nullptr) return ARN_BAD_ARGUMENT;
  *out_accepted = 0;
  if (constraint == nullptr || (ids == nullptr && n_ids > 0)) return ARN_BAD_ARGUMENT;
  TokenConstraint& c = *ToConstraint(constraint)->constraint;
  c.ClearFailure();
  uint64_t bytes = 0;
  size_t i = 0;
  for (bool is_accepted = true; i < n_ids && is_accepted; i += is_accepted ? 1 : 0) {
    const uint64_t start = MonotonicNs();
    size_t n_bytes = 0;
    is_accepted = c.Accept(0, ids[i], &n_bytes);
    bytes += n_bytes;
    c.AddTime(MonotonicNs() - start);
  }
  *out_accepted = i;
  if (out_bytes != nullptr) *out_bytes = bytes;
  return StatusOf(c);
}

arn_status arn_constraint_can_end(arn_constraint* constraint, uint32_t* out_can_end) {
  if (out_can_end == nullptr) return ARN_BAD_ARGUMENT;
  *out_can_end = 0;
  if (constraint == nullptr) return ARN_BAD_ARGUMENT;
  TokenConstraint& c = *ToConstraint(constraint)->constraint;
  c.ClearFailure();
  *out_can_end = c.CanEnd(0) ? 1 : 0;
  return StatusOf(c);
}

arn_status arn_constraint_mask(arn_constraint* constraint, uint32_t* out_bits, size_t words) {
  if (constraint == nullptr || out_bits == nullptr) return ARN_BAD_ARGUMENT;
  TokenConstraint& c = *ToConstraint(constraint)->constraint;
  c.ClearFailure();
  const Span<const uint32_t> bits = c.Mask(0);
  if (words < bits.size()) return ARN_BUFFER_TOO_SMALL;
  std::memcpy(out_bits, bits.data(), bits.size() * sizeof(uint32_t));
  std::memset(out_bits + bits.size(), 0, (words - bits.size()) * sizeof(uint32_t));
  return StatusOf(c);
}

arn_status arn_constraint_stats(const arn_constraint* constraint,
                                arn_constraint_stats_data* out_stats) {
  if (constraint == nullptr || out_stats == nullptr) return ARN_BAD_ARGUMENT;
  const auto* made = reinterpret_cast<const StandAlone*>(constraint);
  return ToC(WriteStats(*made->constraint, out_stats));
}

}  // extern "C"
