// Implements arn_chat_*.
#include <new>

#include "platform/base/layout.h"
#include "platform/os/pages.h"
#include "runtime/api/chat_time.h"
#include "runtime/api/handles.h"
#include "runtime/chat/chat.h"

namespace arn::api {
namespace {

constexpr uint64_t kLeastMemoryBytes = 4096;
constexpr uint64_t kMostMemoryBytes = uint64_t{1} << 40;

// Object behind arn_chat; placed at the start of its memory.
struct Chat {
  const chat::Templates* templates = nullptr;
  Span<std::byte> pages;   // reserved from the OS; empty if the caller provided the memory
  Span<std::byte> memory;  // arena of a rendering
  uint64_t max_steps = 0;
  bool has_text = false;             // true if the last rendering produced a text
  Span<const TextSpan> plain_spans;  // spans of that text; in `memory`
  Diag diag;
};

Chat* ToChat(arn_chat* handle) { return reinterpret_cast<Chat*>(handle); }

Status CreateChat(const Model& model, const arn_chat_options* options, void* memory,
                  uint64_t memory_bytes, arn_chat** out, Diag* diag) {
  arn_chat_options read = ARN_CHAT_OPTIONS_INIT;
  ARN_TRY(ReadStruct(options, "arn_chat_options", &read, diag));
  if (model.templates == nullptr) {
    return diag->Fail(Status::kNotFound, "the bundle has no chat template");
  }
  Span<std::byte> block, pages;
  if (memory != nullptr) {
    if (reinterpret_cast<uintptr_t>(memory) % kSliceAlign != 0 ||
        memory_bytes < kLeastMemoryBytes || memory_bytes > SIZE_MAX || read.arena_bytes != 0) {
      return diag->Fail(Status::kBadArgument,
                        "memory is not aligned to %u, smaller than %llu bytes, or arena_bytes is "
                        "given too",
                        kSliceAlign, static_cast<unsigned long long>(kLeastMemoryBytes));
    }
    block = {static_cast<std::byte*>(memory), static_cast<size_t>(memory_bytes)};
  } else {
    const uint64_t arena = read.arena_bytes == 0 ? chat::kDefaultArenaBytes : read.arena_bytes;
    if (arena > kMostMemoryBytes || arena > SIZE_MAX - kLeastMemoryBytes) {
      return diag->Fail(Status::kBadArgument, "arena_bytes is %llu, at most %llu",
                        static_cast<unsigned long long>(arena),
                        static_cast<unsigned long long>(kMostMemoryBytes));
    }
    Result<Span<std::byte>> reserved = ReservePages(arena + kLeastMemoryBytes);
    if (!reserved.ok()) {
      return diag->Fail(reserved.status(), "cannot reserve %llu bytes for the chat",
                        static_cast<unsigned long long>(arena));
    }
    block = pages = reserved.value();
  }
  auto* made = new (block.data()) Chat();
  constexpr size_t kHead = (sizeof(Chat) + kSliceAlign - 1) / kSliceAlign * kSliceAlign;
  static_assert(kHead < kLeastMemoryBytes);
  made->templates = model.templates;
  made->pages = pages;
  made->memory = block.subspan(kHead, block.size() - kHead);
  made->max_steps = read.max_steps == 0 ? chat::kDefaultMaxSteps : read.max_steps;
  *out = reinterpret_cast<arn_chat*>(made);
  return Status::kOk;
}

Status ReadText(const char* name, const char* text, size_t bytes, std::string_view* out,
                Diag* diag) {
  if (text == nullptr && bytes > 0) {
    return diag->Fail(Status::kBadArgument, "%s is NULL and has %zu bytes", name, bytes);
  }
  if (text != nullptr) *out = {text, bytes};
  return Status::kOk;
}

Status RenderChat(Chat* chat, const arn_chat_input* input, Span<char> out, size_t* out_bytes) {
  Diag* const diag = &chat->diag;
  chat->has_text = false;
  arn_chat_input read = ARN_CHAT_INPUT_INIT;
  if (input == nullptr) return diag->Fail(Status::kBadArgument, "input is NULL");
  ARN_TRY(ReadStruct(input, "arn_chat_input", &read, diag));
  if (read.messages == nullptr || read.add_generation_prompt > 1) {
    return diag->Fail(Status::kBadArgument, "messages is NULL, or add_generation_prompt is %u",
                      read.add_generation_prompt);
  }
  chat::RenderInput render;
  ARN_TRY(ReadText("messages", read.messages, read.messages_bytes, &render.messages, diag));
  ARN_TRY(ReadText("tools", read.tools, read.tools_bytes, &render.tools, diag));
  ARN_TRY(ReadText("variables", read.variables, read.variables_bytes, &render.variables, diag));
  if (read.template_name != nullptr) render.template_name = read.template_name;
  render.add_generation_prompt = read.add_generation_prompt == 1;
  ARN_TRY(ReadTime(read.now, &render.now, diag));
  chat::RenderedText text;
  const Status status =
      chat::Render(*chat->templates, render, chat->memory, chat->max_steps, out, &text, diag);
  *out_bytes = text.bytes;
  chat->has_text = status == Status::kOk || status == Status::kBufferTooSmall;
  chat->plain_spans = text.given;
  return status;
}

}  // namespace
}  // namespace arn::api

using namespace arn;       // NOLINT(google-build-using-namespace): the entry points below are C
using namespace arn::api;  // NOLINT(google-build-using-namespace)

extern "C" {

arn_status arn_chat_create(const arn_model* model, const arn_chat_options* options, void* memory,
                           uint64_t memory_bytes, char* error, size_t error_bytes,
                           arn_chat** out_chat) {
  if (out_chat == nullptr) return ARN_BAD_ARGUMENT;
  *out_chat = nullptr;
  if (model == nullptr) return ARN_BAD_ARGUMENT;
  Diag diag;
  return Report(CreateChat(*ToModel(model), options, memory, memory_bytes, out_chat, &diag), diag,
                error, error_bytes);
}

void arn_chat_destroy(arn_chat* chat) {
  if (chat == nullptr) return;
  ReleasePages(ToChat(chat)->pages);
}

arn_status arn_chat_render(arn_chat* chat, const arn_chat_input* input, char* out_text,
                           size_t capacity, size_t* out_bytes) {
  if (out_bytes == nullptr) return ARN_BAD_ARGUMENT;
  *out_bytes = 0;
  if (chat == nullptr || (out_text == nullptr && capacity > 0)) return ARN_BAD_ARGUMENT;
  ToChat(chat)->diag.Clear();
  return ToC(RenderChat(ToChat(chat), input, {out_text, capacity}, out_bytes));
}

arn_status arn_chat_plain_spans(const arn_chat* chat, const arn_text_span** out_spans,
                                size_t* out_count) {
  if (out_spans == nullptr || out_count == nullptr) return ARN_BAD_ARGUMENT;
  *out_spans = nullptr;
  *out_count = 0;
  if (chat == nullptr) return ARN_BAD_ARGUMENT;
  const Chat& rendered = *reinterpret_cast<const Chat*>(chat);
  if (!rendered.has_text) return ARN_BAD_STATE;
  *out_spans = reinterpret_cast<const arn_text_span*>(rendered.plain_spans.data());
  *out_count = rendered.plain_spans.size();
  return ARN_OK;
}

const char* arn_chat_last_error(const arn_chat* chat) {
  return chat == nullptr ? "" : reinterpret_cast<const Chat*>(chat)->diag.text();
}

}  // extern "C"
