#include "runtime/chat/reply_sink.h"

namespace arn::chat {
namespace {

constexpr size_t kMaxCharacterBytes = 4;

bool BeginsCharacter(char byte) { return (static_cast<uint8_t>(byte) & 0xC0) != 0x80; }

}  // namespace

void ReplySink::Add(ReplyEvent event, char byte) {
  const bool is_full = size_ + kMaxCharacterBytes > kRunBytes && BeginsCharacter(byte);
  if (event != event_ || is_full || size_ == kRunBytes) Flush();
  event_ = event;
  run_[size_++] = byte;
}

void ReplySink::Send(ReplyEvent event, std::string_view text) {
  Flush();
  if (goes_on_) goes_on_ = callback_.on_event(callback_.user, event, text);
}

void ReplySink::Flush() {
  const size_t size = size_;
  size_ = 0;
  if (size > 0 && goes_on_) goes_on_ = callback_.on_event(callback_.user, event_, {run_, size});
}

}  // namespace arn::chat
