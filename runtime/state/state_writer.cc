#include "runtime/state/state_writer.h"

#include <cstring>

#include "platform/base/arith.h"
#include "platform/base/result.h"

namespace arn {

Status StateWriter::Begin(uint64_t offset) {
  const uint64_t end = flushed_ + used_;
  if (end > offset) return Status::kInternal;
  ARN_TRY(AppendZeros(offset - end));
  hash_ = Xxh64Stream();
  return Status::kOk;
}

Status StateWriter::AppendZeros(uint64_t bytes) {
  while (bytes > 0) {
    const Span<std::byte> room = Room(static_cast<size_t>(Min<uint64_t>(bytes, kBufferBytes)));
    std::memset(room.data(), 0, room.size());
    ARN_TRY(Filled(room.size()));
    bytes -= room.size();
  }
  return Status::kOk;
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
