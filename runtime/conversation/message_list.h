// MessageList: the messages of a conversation, as one JSON array in a buffer of a fixed size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "platform/base/diag.h"
#include "platform/base/span.h"
#include "platform/base/status.h"
#include "runtime/chat/heap.h"
#include "runtime/conversation/json_writer.h"

namespace arn {

enum class MessageRole : uint8_t { kSystem, kUser, kAssistant, kTool, kOther };
// "developer" is a system message.
MessageRole RoleOf(std::string_view name);

class MessageList {
 public:
  struct Record {
    uint32_t begin = 0;  // of the message's object in the array's text
    uint32_t end = 0;
    MessageRole role = MessageRole::kOther;
  };
  // Returns the messages that fit a text of this size, at most.
  static size_t MaxMessages(size_t text_bytes) { return text_bytes / kLeastMessageBytes + 1; }

  MessageList() = default;
  // REQUIRES: `text` has at least kFrameBytes; `records` MaxMessages(text.size()). Both must
  // outlive the list.
  MessageList(Span<char> text, Span<Record> records);
  static constexpr size_t kFrameBytes = 3;  // brackets and NUL of an empty list

  size_t size() const { return n_; }
  MessageRole role(size_t i) const { return records_[i].role; }
  std::string_view message(size_t i) const {
    return {text_.data() + records_[i].begin, records_[i].end - records_[i].begin};
  }
  // Returns the array. NUL follows its text.
  std::string_view json() const { return {text_.data(), bytes_ + 1}; }

  // Each appends a message. kOutOfMemory: it does not fit. Nothing changes on failure.
  // kBadArgument: the role is empty, or one of the texts is not UTF-8.
  Status Add(std::string_view role, std::string_view content, Diag* diag);
  Status AddToolResult(std::string_view name, std::string_view id, std::string_view content,
                       Diag* diag);
  // Appends an object, or all objects of an array. kBadArgument: it is neither, or has no role.
  Status AddJson(std::string_view json, chat::Heap* heap, Diag* diag);

  // Returns a writer behind the last message. End() must follow before any other call.
  JsonWriter Begin();
  // Appends what was written, one object. kOutOfMemory: it did not fit.
  Status End(const JsonWriter& writer, MessageRole role, Diag* diag);

  // Keeps the first n messages. REQUIRES: n <= size().
  void Truncate(size_t n);
  // Removes messages [first, last). REQUIRES: first < last <= size().
  void Erase(size_t first, size_t last);

  // Finds call number `index` of message i. The texts point into `heap` or the list. kNotFound: the
  // message has no such call.
  Status FindCall(size_t i, uint32_t index, chat::Heap* heap, Diag* diag, std::string_view* name,
                  std::string_view* id) const;

 private:
  static constexpr size_t kLeastMessageBytes = 12;  // {"role":"x"}

  Status AddObject(std::string_view object, MessageRole role, Diag* diag);
  void Close();

  Span<char> text_;
  Span<Record> records_;
  size_t bytes_ = 0;  // of the array's text without the closing bracket
  size_t n_ = 0;
};

}  // namespace arn
