// Conversation: messages in, events of replies out, over one sequence of a session. Lives inside
// its own memory block and allocates nothing after Create().
//
//   messages --template--> text --Transcript--> ids --session--> ids --ReplyParser--> events
//                                                                  \--> the reply's message
#pragma once

#include <cstdint>
#include <string_view>

#include "platform/base/diag.h"
#include "platform/base/span.h"
#include "runtime/chat/reply_parser.h"
#include "runtime/conversation/conversation_plan.h"
#include "runtime/conversation/message_list.h"
#include "runtime/conversation/transcript.h"
#include "runtime/session/session.h"

namespace arn {

struct ReplyResult {
  Finish finish = Finish::kNone;
  uint32_t n_tokens = 0;
  uint32_t n_prompt_tokens = 0;
  uint32_t n_kept = 0;
  uint32_t n_calls = 0;
  uint32_t n_missing = 0;
  uint32_t n_dropped = 0;
  bool is_added = false;
  uint32_t n_logprobs = 0;
};

class Conversation {
 public:
  // Builds a conversation in `block`, which has plan.total_bytes, aligned to kSliceAlign. `pages`:
  // what Destroy() releases; empty: the caller's memory. The session must outlive it.
  static Status Create(Session* session, const Model& model, const ConversationPlan& plan,
                       Span<std::byte> block, Span<std::byte> pages, Conversation** out,
                       Diag* diag);
  // Accepts null.
  static void Destroy(Conversation* conversation);

  // Messages. All change nothing on failure.
  Status Add(std::string_view role, std::string_view text);
  Status AddJson(std::string_view json);
  Status AddToolResult(uint32_t call, std::string_view text);
  Status UndoReply();
  Status Undo();
  Status Truncate(uint32_t n_messages);

  // Generates the reply to the last message and appends it. `options` has no callback. *out is
  // filled on failure, too.
  Status Reply(const GenerateOptions& options, const chat::ReplyCallback& callback,
               ReplyResult* out);

  // Clears the last error. kBadState within a callback.
  Status Enter();
  const MessageList& messages() const { return messages_; }
  const Transcript& transcript() const { return transcript_; }
  const ConversationPlan& plan() const { return plan_; }
  const chat::ReplyFormat& format() const { return format_; }
  Diag* diag() { return &diag_; }
  const Diag& diag() const { return diag_; }

 private:
  struct Generation;  // state of a running reply

  Conversation(Session* session, const Model& model, const ConversationPlan& plan,
               Span<std::byte> block, Span<std::byte> pages);

  Status ReadInputs(const ConversationOptions& given, Diag* diag);
  // kBadArgument if the text lies in the list of messages.
  Status CheckIsOther(std::string_view text);
  // Runs `add`, a Status(), and drops old turns while it does not fit.
  template <typename Function>
  Status AddDropping(const Function& add);
  // Removes the oldest turn but not the last. Returns false if there is none.
  bool DropOldestTurn();
  // Renders the messages and finds their ids.
  Status Render(ReplyResult* out);
  // Runs the ids that the session lacks.
  Status Read(ReplyResult* out);
  // Generates the reply behind them.
  Status Answer(const GenerateOptions& options, const chat::ReplyCallback& callback,
                ReplyResult* out);
  Status Generate(const GenerateOptions& options, Generation* generation, ReplyResult* out);
  // Appends the message of the transcript's reply.
  Status AddReplyMessage(bool begins_in_reasoning, ReplyResult* out);
  // Copies the session's message.
  Status FromSession(Status status);
  chat::Heap NewHeap() { return {arena_, plan_.options.max_steps, &diag_}; }
  Span<std::byte> At(const Slice& slice) const {
    return block_.subspan(static_cast<size_t>(slice.offset), static_cast<size_t>(slice.bytes));
  }
  template <typename T>
  Span<T> As(const Slice& slice) const {
    return {reinterpret_cast<T*>(At(slice).data()), static_cast<size_t>(slice.bytes) / sizeof(T)};
  }

  Session& session_;
  const Model& model_;
  ConversationPlan plan_;
  Span<std::byte> block_, pages_, arena_;
  chat::ReplyFormat format_;
  chat::ToolTypes tools_;
  MessageList messages_;
  Transcript transcript_;
  Diag diag_;
};

}  // namespace arn
