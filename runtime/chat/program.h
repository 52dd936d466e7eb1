// Program: checked view of a compiled template (runtime/bundle/chat_program.h). The bytes are
// untrusted; after Open() every index, count and height conforms to the format.
#pragma once

#include <string_view>

#include "platform/base/diag.h"
#include "platform/base/span.h"
#include "platform/base/status.h"
#include "runtime/bundle/chat_program.h"

namespace arn::chat {

class Program {
 public:
  // Returns kBadBundle with a message if a check fails. REQUIRES: `bytes` are 4-byte aligned. They
  // must outlive the program.
  Status Open(Span<const std::byte> bytes, Diag* diag);

  uint32_t root() const { return header_->root; }
  const ProgramNode& node(uint32_t index) const { return nodes_[index]; }
  Op op(uint32_t index) const { return static_cast<Op>(nodes_[index].op); }
  uint32_t link(uint32_t index) const { return links_[index]; }
  std::string_view string(uint32_t index) const {
    return {text_ + strings_[index].offset, strings_[index].bytes};
  }

 private:
  class Checker;

  const ProgramHeader* header_ = nullptr;
  const ProgramNode* nodes_ = nullptr;
  const uint32_t* links_ = nullptr;
  const ProgramString* strings_ = nullptr;
  const char* text_ = nullptr;
};

}  // namespace arn::chat
