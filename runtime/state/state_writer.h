// StateWriter: buffered byte stream to a StateSink with a hash per section.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/base/diag.h"
#include "platform/base/hash.h"
#include "platform/base/span.h"
#include "platform/base/status.h"

namespace arn {

// Destination of a state: memory or a file. Each byte is written once; the header (offset 0) comes
// last.
struct StateSink {
  Status (*write)(void* user, uint64_t offset, Span<const std::byte> bytes, Diag* diag) = nullptr;
  void* user = nullptr;
};

class StateWriter {
 public:
  StateWriter(const StateSink& sink, uint64_t offset, Diag* diag)
      : sink_(sink), flushed_(offset), diag_(diag) {}

  // Pads with zeros to `offset` and starts a section there. REQUIRES: offset is not before the end.
  Status Begin(uint64_t offset);
  Status Append(const void* data, size_t bytes);
  Status AppendZeros(uint64_t bytes);
  // Returns up to `wanted` bytes to fill, never empty. Call Filled() with the count afterwards.
  Span<std::byte> Room(size_t wanted);
  Status Filled(size_t bytes);
  // Hash of the section so far.
  uint64_t Digest() const { return hash_.Digest(); }
  Status Flush();

 private:
  static constexpr size_t kBufferBytes = 32768;

  StateSink sink_;
  uint64_t flushed_;
  Diag* diag_;
  Xxh64Stream hash_;
  size_t used_ = 0;
  std::byte buffer_[kBufferBytes];
};

}  // namespace arn
