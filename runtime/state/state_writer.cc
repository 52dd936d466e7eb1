#include "runtime/state/state_writer.h"

#include <cstring>

#include "platform/base/arith.h"
#include "platform/base/result.h"

namespace arn {

Status StateWriter::Begin(uint64_t offset) {
  while (flushed_ + used_ < offset) {
    const Span<std::byte> room =
        Room(static_cast<size_t>(Min<uint64_t>(offset - flushed_ - used_, kBufferBytes)));
    std::memset(room.data(), 0, room.size());
    ARN_TRY(Filled(room.size()));
  }
  hash_ = Xxh64Stream();
  return flushed_ + used_ == offset ? Status::kOk : Status::kInternal;
}

Status StateWriter::Append(const void* data, size_t bytes) {
  const auto* from = static_cast<const std::byte*>(data);
  while (bytes > 0) {
    const Span<std::byte> room = Room(bytes);
    std::memcpy(room.data(), from, room.size());
    ARN_TRY(Filled(room.size()));
    from += room.size();
    bytes -= room.size();
  }
  return Status::kOk;
}

Span<std::byte> StateWriter::Room(size_t wanted) {
  return {buffer_ + used_, Min(wanted, kBufferBytes - used_)};
}

// Flushes a full buffer at once, so that Room() is never empty.
Status StateWriter::Filled(size_t bytes) {
  hash_.Update(buffer_ + used_, bytes);
  used_ += bytes;
  return used_ == kBufferBytes ? Flush() : Status::kOk;
}

Status StateWriter::Flush() {
  if (used_ == 0) return Status::kOk;
  ARN_TRY(sink_.write(sink_.user, flushed_, {buffer_, used_}, diag_));
  flushed_ += used_;
  used_ = 0;
  return Status::kOk;
}

}  // namespace arn
