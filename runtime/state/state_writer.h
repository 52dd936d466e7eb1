// StateWriter: a stream of bytes with a hash over each section, to wherever a state goes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/base/diag.h"
#include "platform/base/hash.h"
#include "platform/base/span.h"
#include "platform/base/status.h"

namespace arn {

// Where the bytes of a state go: memory, a file. Each byte comes once; the header (offset 0) comes
// last.
struct StateSink {
  Status (*write)(void* user, uint64_t offset, Span<const std::byte> bytes, Diag* diag) = nullptr;
  void* user = nullptr;
};

class StateWriter {
 public:
  StateWriter(const StateSink& sink, uint64_t offset, Diag* diag)
      : sink_(sink), flushed_(offset), diag_(diag) {}

  // Zeros up to `offset`, which is not behind the end; a section begins there.
  Status Begin(uint64_t offset);
  Status Append(const void* data, size_t bytes);
  // At most `wanted` bytes that the caller fills, then tells Filled() how many. Never empty.
  Span<std::byte> Room(size_t wanted);
  Status Filled(size_t bytes);
  // Of the section so far.
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
