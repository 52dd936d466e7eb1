#include "tools/arenite/reply.h"

#include <utility>

#include "tools/arenite/error.h"

namespace arn::tool {

Reply::Reply(const Model& model, const std::string& tools, const std::string& reasoning_close)
    : tools_(tools) {
  arn_reply_options options = ARN_REPLY_OPTIONS_INIT;
  options.arena_bytes = uint64_t{16} << 20;  // reserved address space; touched as it is used
  if (!tools_.empty()) options.tools = tools_.data();
  options.tools_bytes = tools_.size();
  if (!reasoning_close.empty()) options.reasoning_close = reasoning_close.data();
  options.reasoning_close_bytes = reasoning_close.size();
  char error[512] = "";
  arn_reply* made = nullptr;
  if (arn_reply_create(model.get(), &options, nullptr, 0, error, sizeof error, &made) != ARN_OK) {
    throw Error(error);
  }
  reply_.reset(made);
  arn_reply_get_info(made, &info_);
}

void Reply::Start(std::string_view prompt, OnPiece on_piece) {
  on_piece_ = std::move(on_piece);
  message_ = Message();
  message_.role = Role::kAssistant;
  arn_reply_start(reply_.get(), prompt.data(), prompt.size());
}

void Reply::End() {
  arn_reply_end(reply_.get(), OnEvent, this);
  Rethrow();
}

int32_t Reply::OnEvent(void* user, uint32_t event, const char* text, size_t text_bytes) {
  Reply* const reply = static_cast<Reply*>(user);
  return reply->guard_.Run([&] { return reply->Take(event, {text, text_bytes}) ? 0 : 1; });
}

bool Reply::Take(uint32_t event, std::string_view text) {
  switch (event) {
    case ARN_REPLY_EVENT_TEXT: message_.text += text; return on_piece_(text, Part::kText);
    case ARN_REPLY_EVENT_REASONING:
      message_.reasoning += text;
      return on_piece_(text, Part::kReasoning);
    case ARN_REPLY_EVENT_CALL_BEGIN:
      message_.calls.push_back({std::string(text), "", ""});
      return on_piece_("call " + std::string(text) + " ", Part::kCall);
    case ARN_REPLY_EVENT_CALL_ID: message_.calls.back().id += text; return true;
    case ARN_REPLY_EVENT_CALL_ARGUMENTS:
      message_.calls.back().arguments += text;
      return on_piece_(text, Part::kCall);
    case ARN_REPLY_EVENT_CALL_END:
      return on_piece_(text.empty() ? "\n" : " (" + std::string(text) + ")\n", Part::kCall);
    default: return true;
  }
}

}  // namespace arn::tool
