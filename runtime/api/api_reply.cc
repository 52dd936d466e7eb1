// Implements arn_reply_*.
#include <cstring>
#include <new>

#include "platform/base/arith.h"
#include "platform/base/layout.h"
#include "platform/os/pages.h"
#include "runtime/api/handles.h"
#include "runtime/api/reply_feed.h"
#include "runtime/chat/reply_format.h"
#include "runtime/chat/reply_parser.h"
#include "runtime/chat/templates.h"

namespace arn::api {
namespace {

constexpr uint64_t kLeastMemoryBytes = 16384;
constexpr uint64_t kDefaultArenaBytes = uint64_t{1} << 20;
constexpr uint64_t kMostMemoryBytes = uint64_t{1} << 40;
constexpr uint64_t kMaxSteps = 50000000;
constexpr size_t kPieceBytes = 1024;
constexpr size_t kMaxCloseBytes = 1024;
constexpr size_t kMaxCloseIds = 512;

static_assert(static_cast<uint32_t>(chat::ReplyEvent::kText) == ARN_REPLY_EVENT_TEXT);
static_assert(static_cast<uint32_t>(chat::ReplyEvent::kReasoning) == ARN_REPLY_EVENT_REASONING);
static_assert(static_cast<uint32_t>(chat::ReplyEvent::kCallBegin) == ARN_REPLY_EVENT_CALL_BEGIN);
static_assert(static_cast<uint32_t>(chat::ReplyEvent::kCallId) == ARN_REPLY_EVENT_CALL_ID);
static_assert(static_cast<uint32_t>(chat::ReplyEvent::kCallArguments) ==
              ARN_REPLY_EVENT_CALL_ARGUMENTS);
static_assert(static_cast<uint32_t>(chat::ReplyEvent::kCallEnd) == ARN_REPLY_EVENT_CALL_END);

// Object behind arn_reply; placed at the start of its memory.
struct Reply {
  const Tokenizer* tokenizer = nullptr;
  chat::ReplyFormat format;
  chat::ToolTypes tools;
  chat::ReplyParser parser;
  Tokenizer::DecodeState decoder;
  bool goes_on = false;      // false: not started, or a callback ended the reply
  Span<int32_t> close_ids;   // the end of reasoning that takes too long
  uint32_t n_reasoning = 0;  // tokens of it
  bool is_closed = false;    // close_ids were given
  Span<char> piece;          // text of one token
  Span<std::byte> pages;     // reserved from the OS; empty if the caller provided the memory
  Diag diag;
};
constexpr size_t kHeadBytes = (sizeof(Reply) + kSliceAlign - 1) / kSliceAlign * kSliceAlign;
static_assert(kHeadBytes + kPieceBytes < kLeastMemoryBytes);

Reply* ToReply(arn_reply* handle) { return reinterpret_cast<Reply*>(handle); }

// scratch_bytes: address space more that is reserved; a part of it is touched.
Status ChooseMemory(const arn_reply_options& options, uint64_t piece_bytes, uint64_t scratch_bytes,
                    void* memory, uint64_t memory_bytes, Span<std::byte>* block,
                    Span<std::byte>* pages, Diag* diag) {
  const uint64_t least = kHeadBytes + piece_bytes + kSliceAlign;
  if (memory != nullptr) {
    if (reinterpret_cast<uintptr_t>(memory) % kSliceAlign != 0 ||
        memory_bytes < kLeastMemoryBytes || memory_bytes < least || memory_bytes > SIZE_MAX ||
        options.arena_bytes != 0) {
      return diag->Fail(
          Status::kBadArgument,
          "memory is not aligned to %u, smaller than %llu bytes, or arena_bytes is "
          "given too",
          kSliceAlign,
          static_cast<unsigned long long>(least > kLeastMemoryBytes ? least : kLeastMemoryBytes));
    }
    *block = {static_cast<std::byte*>(memory), static_cast<size_t>(memory_bytes)};
    return Status::kOk;
  }
  const uint64_t arena = options.arena_bytes == 0 ? kDefaultArenaBytes : options.arena_bytes;
  if (arena > kMostMemoryBytes || arena > SIZE_MAX - least - scratch_bytes) {
    return diag->Fail(Status::kBadArgument, "arena_bytes is %llu, at most %llu",
                      static_cast<unsigned long long>(arena),
                      static_cast<unsigned long long>(kMostMemoryBytes));
  }
  Result<Span<std::byte>> reserved = ReservePages(arena + least + scratch_bytes);
  if (!reserved.ok()) {
    return diag->Fail(reserved.status(), "cannot reserve %llu bytes for the reply",
                      static_cast<unsigned long long>(arena + least));
  }
  *block = *pages = reserved.value();
  return Status::kOk;
}

// Tokenises the sentence and the mark that end reasoning. Takes memory from the start of *rest.
Status EncodeClose(const Model& model, const arn_reply_options& read, Reply* made,
                   Span<std::byte>* rest, Diag* diag) {
  if (!made->format.has_reasoning()) return Status::kOk;
  char text[kMaxCloseBytes + kMaxReplyMarkBytes];
  const std::string_view end = made->format.reasoning_end;
  if (read.reasoning_close_bytes > 0) {
    std::memcpy(text, read.reasoning_close, read.reasoning_close_bytes);
  }
  std::memcpy(text + read.reasoning_close_bytes, end.data(), end.size());
  const StringView whole(text, read.reasoning_close_bytes + end.size());
  int32_t ids[kMaxCloseIds];
  size_t n = 0;
  Tokenizer::EncodeOptions options;
  Status status =
      model.tokenizer->EncodeScratchBytes(whole.size) > rest->size()
          ? Status::kOutOfMemory
          : model.tokenizer->Encode(whole, options, *rest, {ids, kMaxCloseIds}, &n, diag);
  const size_t bytes = AlignUp(n * sizeof(int32_t), size_t{kSliceAlign});
  if (status == Status::kOk && bytes > rest->size()) status = Status::kOutOfMemory;
  // Without a sentence nothing is said of a budget yet: small memory is no error.
  if (status != Status::kOk && read.reasoning_close_bytes == 0) {
    diag->Clear();
    return Status::kOk;
  }
  if (status == Status::kOutOfMemory || status == Status::kBufferTooSmall) {
    return diag->Fail(Status::kOutOfMemory, "reasoning_close needs more memory_bytes");
  }
  ARN_TRY(status);
  made->close_ids = {reinterpret_cast<int32_t*>(rest->data()), n};
  std::memcpy(made->close_ids.data(), ids, n * sizeof(int32_t));
  *rest = rest->subspan(bytes, rest->size() - bytes);
  return Status::kOk;
}

Status CreateReply(const Model& model, const arn_reply_options* options, void* memory,
                   uint64_t memory_bytes, arn_reply** out, Diag* diag) {
  arn_reply_options read = ARN_REPLY_OPTIONS_INIT;
  ARN_TRY(ReadStruct(options, "arn_reply_options", &read, diag));
  if ((read.reasoning_close == nullptr && read.reasoning_close_bytes > 0) ||
      read.reasoning_close_bytes > kMaxCloseBytes) {
    return diag->Fail(Status::kBadArgument, "reasoning_close is NULL or has %zu bytes, at most %zu",
                      read.reasoning_close_bytes, kMaxCloseBytes);
  }
  if (read.tools == nullptr && read.tools_bytes > 0) {
    return diag->Fail(Status::kBadArgument, "tools is NULL and has %zu bytes", read.tools_bytes);
  }
  if (model.tokenizer == nullptr) {
    return diag->Fail(Status::kUnsupported, "the bundle has no tokenizer");
  }
  const uint64_t piece_bytes =
      (uint64_t{model.tokenizer->max_piece_bytes()} + kSliceAlign - 1) / kSliceAlign * kSliceAlign;
  Span<std::byte> block, pages;
  const bool has_reasoning = model.templates != nullptr && model.templates->reply().has_reasoning();
  const uint64_t scratch_bytes =
      has_reasoning
          ? model.tokenizer->EncodeScratchBytes(read.reasoning_close_bytes + kMaxReplyMarkBytes)
          : 0;
  ARN_TRY(
      ChooseMemory(read, piece_bytes, scratch_bytes, memory, memory_bytes, &block, &pages, diag));
  auto* made = new (block.data()) Reply();
  made->tokenizer = model.tokenizer;
  if (model.templates != nullptr) made->format = model.templates->reply();
  made->pages = pages;
  made->piece = {reinterpret_cast<char*>(block.data() + kHeadBytes),
                 static_cast<size_t>(piece_bytes)};
  const size_t used = kHeadBytes + static_cast<size_t>(piece_bytes);
  Span<std::byte> rest = block.subspan(used, block.size() - used);
  Status status = EncodeClose(model, read, made, &rest, diag);
  if (status == Status::kOk && read.tools != nullptr) {
    chat::Heap heap(rest, kMaxSteps, diag);
    status = made->tools.Read({read.tools, read.tools_bytes}, &heap, diag);
  }
  if (status != Status::kOk) {
    ReleasePages(pages);
    return status;
  }
  *out = reinterpret_cast<arn_reply*>(made);
  return Status::kOk;
}

struct Receiver {
  arn_reply_callback callback;
  void* user;
};

bool OnEvent(void* user, chat::ReplyEvent event, std::string_view text) {
  const Receiver& receiver = *static_cast<const Receiver*>(user);
  return receiver.callback(receiver.user, static_cast<uint32_t>(event), text.data(), text.size()) ==
         0;
}

// Gives the text to the parser.
void Take(Reply* reply, std::string_view text, Receiver receiver) {
  if (reply->goes_on && !text.empty()) {
    reply->goes_on = reply->parser.Feed(text, {OnEvent, &receiver});
  }
}

}  // namespace

Span<const int32_t> CloseReasoning(arn_reply* reply, uint32_t budget) {
  Reply& r = *ToReply(reply);
  if (r.is_closed || !r.goes_on || !r.parser.in_reasoning() || r.n_reasoning < budget) return {};
  r.is_closed = true;
  return r.close_ids;
}

Status CheckBudget(const arn_reply* reply, Diag* diag) {
  const Reply& r = *reinterpret_cast<const Reply*>(reply);
  if (!r.format.has_reasoning()) {
    return diag->Fail(Status::kUnsupported,
                      "reasoning_budget: the bundle does not say how the model writes reasoning");
  }
  if (!r.close_ids.empty()) return Status::kOk;
  return diag->Fail(Status::kOutOfMemory,
                    "reasoning_budget: the reply has too little memory to end reasoning");
}

}  // namespace arn::api

using namespace arn;       // NOLINT(google-build-using-namespace): the entry points below are C
using namespace arn::api;  // NOLINT(google-build-using-namespace)

extern "C" {

arn_status arn_reply_create(const arn_model* model, const arn_reply_options* options, void* memory,
                            uint64_t memory_bytes, char* error, size_t error_bytes,
                            arn_reply** out_reply) {
  if (out_reply == nullptr) return ARN_BAD_ARGUMENT;
  *out_reply = nullptr;
  if (model == nullptr) return ARN_BAD_ARGUMENT;
  Diag diag;
  return Report(CreateReply(*ToModel(model), options, memory, memory_bytes, out_reply, &diag), diag,
                error, error_bytes);
}

void arn_reply_destroy(arn_reply* reply) {
  if (reply == nullptr) return;
  ReleasePages(ToReply(reply)->pages);
}

arn_status arn_reply_get_info(const arn_reply* reply, arn_reply_info* out_info) {
  if (reply == nullptr || out_info == nullptr) return ARN_BAD_ARGUMENT;
  const chat::ReplyFormat& format = reinterpret_cast<const Reply*>(reply)->format;
  arn_reply_info info = ARN_REPLY_INFO_INIT;
  info.has_reasoning = format.has_reasoning() ? 1 : 0;
  info.has_calls = format.has_calls() ? 1 : 0;
  // Texts of a bundle end in NUL.
  info.reasoning_begin = format.has_reasoning() ? format.reasoning_begin.data() : "";
  info.reasoning_end = format.has_reasoning() ? format.reasoning_end.data() : "";
  return ToC(WriteStruct(info, out_info));
}

arn_status arn_reply_start(arn_reply* reply, const char* prompt, size_t prompt_bytes) {
  if (reply == nullptr || (prompt == nullptr && prompt_bytes > 0)) return ARN_BAD_ARGUMENT;
  Reply& r = *ToReply(reply);
  r.parser.Start(&r.format, &r.tools,
                 chat::StartOfReply(r.format, {prompt, prompt_bytes}) == ReplyStart::kInReasoning);
  r.decoder = Tokenizer::DecodeState();
  r.goes_on = true;
  r.n_reasoning = 0;
  r.is_closed = false;
  return ARN_OK;
}

arn_status arn_reply_next(arn_reply* reply, int32_t id, arn_reply_callback callback, void* user) {
  if (reply == nullptr || callback == nullptr) return ARN_BAD_ARGUMENT;
  Reply& r = *ToReply(reply);
  if (id < 0) return ARN_OK;
  const size_t n = r.tokenizer->DecodeToken(&r.decoder, id, /*skip_special=*/false, r.piece);
  if (n > r.piece.size()) return ARN_INTERNAL;
  Take(&r, {r.piece.data(), n}, {callback, user});
  if (r.parser.in_reasoning()) ++r.n_reasoning;
  return ARN_OK;
}

arn_status arn_reply_next_text(arn_reply* reply, const char* text, size_t text_bytes,
                               arn_reply_callback callback, void* user) {
  if (reply == nullptr || callback == nullptr || (text == nullptr && text_bytes > 0)) {
    return ARN_BAD_ARGUMENT;
  }
  Take(ToReply(reply), {text, text_bytes}, {callback, user});
  return ARN_OK;
}

uint32_t arn_reply_in_reasoning(const arn_reply* reply) {
  if (reply == nullptr) return 0;
  const Reply& r = *reinterpret_cast<const Reply*>(reply);
  return r.goes_on && r.parser.in_reasoning() ? 1 : 0;
}

arn_status arn_reply_end(arn_reply* reply, arn_reply_callback callback, void* user) {
  if (reply == nullptr || callback == nullptr) return ARN_BAD_ARGUMENT;
  Reply& r = *ToReply(reply);
  const size_t n = r.tokenizer->DecodeFinish(&r.decoder, r.piece);
  if (n > r.piece.size()) return ARN_INTERNAL;
  Receiver receiver = {callback, user};
  Take(&r, {r.piece.data(), n}, receiver);
  if (r.goes_on) r.parser.Finish({OnEvent, &receiver});
  r.goes_on = false;
  return ARN_OK;
}

}  // extern "C"
