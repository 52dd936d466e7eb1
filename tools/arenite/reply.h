// Reply: an answer of a model, split into reasoning, text and tool calls while it comes.
#pragma once

#include <arenite/arenite.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "tools/arenite/chat_format.h"
#include "tools/arenite/guard.h"
#include "tools/arenite/model.h"

namespace arn::tool {

class Reply {
 public:
  enum class Part { kText, kReasoning, kCall };
  // Called with each piece to show; returns false to end the answer.
  using OnPiece = std::function<bool(std::string_view text, Part part)>;

  // tools: JSON, or "". reasoning_close: see arn_reply_options. The model must outlive it. Throws
  // Error.
  Reply(const Model& model, const std::string& tools, const std::string& reasoning_close);

  bool has_reasoning() const { return info_.has_reasoning != 0; }
  bool has_calls() const { return info_.has_calls != 0; }

  // Starts an answer to the prompt.
  void Start(std::string_view prompt, OnPiece on_piece);
  // Throws what a piece of the generation threw.
  void Rethrow() { guard_.Rethrow(); }
  // Ends it, if the generation has not.
  void End();
  // The answer as a message for the chat template.
  const Message& message() const { return message_; }

  arn_reply* get() const { return reply_.get(); }
  // For arn_generate_options, with this object as the user.
  static int32_t OnEvent(void* user, uint32_t event, const char* text, size_t text_bytes);

 private:
  struct Destroy {
    void operator()(arn_reply* reply) const { arn_reply_destroy(reply); }
  };
  bool Take(uint32_t event, std::string_view text);

  const std::string tools_;
  std::unique_ptr<arn_reply, Destroy> reply_;
  arn_reply_info info_ = ARN_REPLY_INFO_INIT;
  OnPiece on_piece_;
  Message message_;
  Guard guard_;
};

}  // namespace arn::tool
