// ReplySink: collects the events of a reply and hands them to a callback in runs of one kind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace arn::chat {

enum class ReplyEvent : uint32_t {
  kText = 0,           // a piece of the answer
  kReasoning = 1,      // a piece of the reasoning
  kCallBegin = 2,      // a tool call; text: the tool's name
  kCallId = 3,         // text: the call's id
  kCallArguments = 4,  // a piece of the call's arguments, which together are one JSON value
  kCallEnd = 5,        // text: empty if the call is complete, else what is wrong with it
};

// Receives events in order. The text is UTF-8 and whole characters. Return false to end the reply.
struct ReplyCallback {
  bool (*on_event)(void* user, ReplyEvent event, std::string_view text) = nullptr;
  void* user = nullptr;
};

class ReplySink {
 public:
  // Restarts without pending text. The callback may change between calls of Flush.
  void Start() { size_ = 0; }
  void set_callback(const ReplyCallback& callback) {
    callback_ = callback;
    goes_on_ = true;
  }
  // False once a callback has asked to end the reply; later events are dropped.
  bool goes_on() const { return goes_on_; }

  // Adds one byte to a run of `event`, which is kText, kReasoning or kCallArguments.
  void Add(ReplyEvent event, char byte);
  void Add(ReplyEvent event, std::string_view text) {
    for (const char byte : text) Add(event, byte);
  }
  // Sends a whole event.
  void Send(ReplyEvent event, std::string_view text);
  // Sends what is pending.
  void Flush();

 private:
  static constexpr size_t kRunBytes = 256;

  ReplyCallback callback_;
  bool goes_on_ = true;
  ReplyEvent event_ = ReplyEvent::kText;
  size_t size_ = 0;
  char run_[kRunBytes];
};

}  // namespace arn::chat
