#include "runtime/conversation/reply_message.h"

#include <cstring>

#include "platform/base/arith.h"
#include "runtime/bundle/call_name.h"
#include "runtime/chat/json.h"
#include "runtime/chat/reply_mark.h"

namespace arn {
namespace {

constexpr uint64_t kMaxSteps = 50000000;

// One reading of a reply, which writes the events of one kind. A reply is read once for each key of
// its message, since the events of different keys may take turns.
class Reading {
 public:
  Reading(const WrittenReply& reply, Span<std::byte> arena, JsonWriter* writer)
      : reply_(reply), arena_(arena), writer_(writer) {}

  // Writes the text of all events of a kind, as the inside of a string. A reply that begins with
  // text keeps the white space before it, which no event has: else its ids would be others when it
  // is rendered again.
  void WriteTexts(chat::ReplyEvent kind) {
    kind_ = kind;
    is_first_ = true;
    Run([](void* user, chat::ReplyEvent event, std::string_view text) {
      static_cast<Reading*>(user)->OnTextEvent(event, text);
      return true;
    });
  }

  // Writes the complete calls with commas between them, and returns their number.
  uint32_t WriteCalls() {
    Run([](void* user, chat::ReplyEvent event, std::string_view text) {
      static_cast<Reading*>(user)->OnCallEvent(event, text);
      return true;
    });
    return n_calls_;
  }

 private:
  void Run(bool (*on_event)(void*, chat::ReplyEvent, std::string_view)) {
    chat::ReplyParser parser;
    parser.Start(reply_.format, reply_.tools, reply_.begins_in_reasoning);
    parser.Feed(reply_.text, {on_event, this});
    parser.Finish({on_event, this});
  }

  void OnTextEvent(chat::ReplyEvent event, std::string_view text) {
    if (event == kind_) {
      if (is_first_ && kind_ == chat::ReplyEvent::kText && !reply_.begins_in_reasoning) {
        writer_->Escaped(reply_.text.substr(0, chat::LeadingSpaces(reply_.text)));
      }
      writer_->Escaped(text);
    }
    is_first_ = false;
  }

  void OnCallEvent(chat::ReplyEvent event, std::string_view text) {
    switch (event) {
      case chat::ReplyEvent::kText:
      case chat::ReplyEvent::kReasoning: return;
      case chat::ReplyEvent::kCallBegin:
        begin_ = writer_->bytes();
        n_id_ = 0;
        writer_->Raw(n_calls_ > 0 ? "," : "");
        writer_->Raw("{\"type\":\"function\",\"function\":{\"name\":");
        writer_->String(text);
        writer_->Raw(",\"arguments\":");
        arguments_ = writer_->bytes();
        return;
      case chat::ReplyEvent::kCallId:
        n_id_ = Min(text.size(), sizeof id_);
        std::memcpy(id_, text.data(), n_id_);
        return;
      case chat::ReplyEvent::kCallArguments: writer_->Raw(text); return;
      case chat::ReplyEvent::kCallEnd:
        if (!text.empty() || !EndCall()) writer_->Rewind(begin_);
        return;
    }
  }

  // Returns false if the arguments are no JSON value.
  bool EndCall() {
    if (writer_->bytes() == arguments_) writer_->Raw("{}");
    if (writer_->fits()) {
      Diag diag;
      chat::Heap heap(arena_, kMaxSteps, &diag);
      chat::Value value;
      const std::string_view arguments = writer_->After(arguments_);
      if (chat::ReadJson(arguments, "arguments", &heap, &diag, &value) != Status::kOk) return false;
    }
    writer_->Raw("}");
    if (n_id_ > 0) {
      writer_->Raw(",\"id\":");
      writer_->String({id_, n_id_});
    }
    writer_->Raw("}");
    ++n_calls_;
    return true;
  }

  const WrittenReply& reply_;
  Span<std::byte> arena_;
  JsonWriter* writer_;
  chat::ReplyEvent kind_ = chat::ReplyEvent::kText;
  bool is_first_ = true;  // no event came yet
  uint32_t n_calls_ = 0;
  size_t begin_ = 0;      // of the open call
  size_t arguments_ = 0;  // of its arguments
  size_t n_id_ = 0;
  char id_[chat::kMaxCallIdBytes];
};

}  // namespace

uint32_t WriteReplyMessage(const WrittenReply& reply, Span<std::byte> arena, JsonWriter* writer) {
  Reading reading(reply, arena, writer);
  writer->Raw("{\"role\":\"assistant\",\"content\":\"");
  reading.WriteTexts(chat::ReplyEvent::kText);
  writer->Raw("\"");
  if (reply.format->has_reasoning()) {
    const size_t before = writer->bytes();
    writer->Raw(",\"reasoning_content\":\"");
    const size_t empty = writer->bytes();
    reading.WriteTexts(chat::ReplyEvent::kReasoning);
    const bool has_reasoning = writer->bytes() > empty;
    writer->Raw("\"");
    if (!has_reasoning) writer->Rewind(before);
  }
  uint32_t n_calls = 0;
  if (reply.format->has_calls()) {
    const size_t before = writer->bytes();
    writer->Raw(",\"tool_calls\":[");
    n_calls = reading.WriteCalls();
    writer->Raw("]");
    if (n_calls == 0) writer->Rewind(before);
  }
  writer->Raw("}");
  return n_calls;
}

}  // namespace arn
