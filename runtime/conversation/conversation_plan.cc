#include "runtime/conversation/conversation_plan.h"

#include "runtime/chat/chat.h"
#include "runtime/conversation/conversation.h"
#include "runtime/conversation/message_list.h"
#include "runtime/conversation/transcript.h"
#include "runtime/memory/session_plan.h"

namespace arn {
namespace {

constexpr uint64_t kLeastTextBytes = 1024;
constexpr uint64_t kMostTextBytes = uint64_t{1} << 30;
constexpr uint64_t kLeastArenaBytes = 4096;
constexpr uint64_t kMostArenaBytes = uint64_t{1} << 40;
constexpr uint64_t kTextBytesPerToken = 8;
constexpr uint64_t kBaseTextBytes = 16384;
// JSON of one byte takes at most this much memory as a value: two bytes are a number in a list that
// has grown.
constexpr uint64_t kValueBytesPerByte = 64;

Status CheckRange(const char* name, uint64_t value, uint64_t least, uint64_t most, Diag* diag) {
  if (value >= least && value <= most) return Status::kOk;
  return diag->Fail(Status::kBadArgument, "%s is %llu, expected %llu to %llu", name,
                    static_cast<unsigned long long>(value), static_cast<unsigned long long>(least),
                    static_cast<unsigned long long>(most));
}

Status Resolve(const Model& model, ConversationPlan* plan, Diag* diag) {
  ConversationOptions& options = plan->options;
  if (model.templates == nullptr) {
    return diag->Fail(Status::kNotFound, "the bundle has no chat template");
  }
  if (model.tokenizer == nullptr) {
    return diag->Fail(Status::kUnsupported, "the bundle has no tokenizer");
  }
  if (!options.template_name.empty() && model.templates->Find(options.template_name) == nullptr) {
    return diag->Fail(Status::kNotFound, "the bundle has no chat template '%.*s'",
                      static_cast<int>(options.template_name.size()), options.template_name.data());
  }
  const uint64_t given_bytes = uint64_t{options.tools.size()} + options.variables.size();
  if (options.text_bytes == 0) {
    options.text_bytes =
        kTextBytesPerToken * plan->context_tokens + kBaseTextBytes + 2 * given_bytes;
  }
  if (options.arena_bytes == 0) options.arena_bytes = chat::kDefaultArenaBytes;
  if (options.max_steps == 0) options.max_steps = chat::kDefaultMaxSteps;
  ARN_TRY(CheckRange("text_bytes", options.text_bytes, kLeastTextBytes, kMostTextBytes, diag));
  return CheckRange("arena_bytes", options.arena_bytes, kLeastArenaBytes, kMostArenaBytes, diag);
}

}  // namespace

Status PlanConversation(const Model& model, uint32_t context_tokens,
                        const ConversationOptions& options, ConversationPlan* out, Diag* diag) {
  *out = ConversationPlan();
  out->options = options;
  out->context_tokens = context_tokens;
  ARN_TRY(Resolve(model, out, diag));
  const auto text_bytes = static_cast<size_t>(out->options.text_bytes);
  const uint64_t piece_bytes = model.tokenizer->max_piece_bytes();
  const uint64_t tool_bytes =
      options.tools.empty() ? 0 : kValueBytesPerByte * options.tools.size() + kLeastArenaBytes;
  Layout layout;
  const struct {
    Slice* slice;
    uint64_t bytes;
  } parts[] = {
      {&out->object, sizeof(Conversation)},
      {&out->tools, options.tools.size()},
      {&out->variables, options.variables.size()},
      {&out->template_name, options.template_name.size()},
      {&out->tool_values, tool_bytes},
      {&out->messages, text_bytes},
      {&out->records, MessageList::MaxMessages(text_bytes) * sizeof(MessageList::Record)},
      {&out->rendered, text_bytes},
      {&out->text, text_bytes},
      {&out->ids, uint64_t{context_tokens} * sizeof(int32_t)},
      {&out->replies, Transcript::kMaxReplies * sizeof(Transcript::Reply)},
      {&out->piece, piece_bytes},
      {&out->spans, Transcript::MaxSpans(text_bytes) * sizeof(TextSpan)},
      {&out->filter, kMaxStopBytes + 2 * piece_bytes},
      {&out->scratch, model.tokenizer->EncodeScratchBytes(text_bytes)},
      {&out->arena, out->options.arena_bytes},
  };
  bool fits = true;
  for (const auto& part : parts) {
    Result<Slice> slice = layout.Add(Region::kIo, part.bytes);
    fits = fits && slice.ok();
    if (slice.ok()) *part.slice = slice.value();
  }
  out->total_bytes = layout.RegionBytes(Region::kIo);
  if (fits && out->total_bytes <= SIZE_MAX) return Status::kOk;
  return diag->Fail(Status::kOutOfMemory,
                    "text_bytes %zu and arena_bytes %llu are too large for this machine",
                    text_bytes, static_cast<unsigned long long>(out->options.arena_bytes));
}

}  // namespace arn
