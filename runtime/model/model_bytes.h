// Placement of an open bundle's bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/base/diag.h"
#include "platform/base/span.h"
#include "platform/base/status.h"
#include "platform/os/mapped_file.h"

namespace arn {

enum class Residency : uint8_t {
  kMapped,  // mapped from the file; in huge pages as far as the system does so by itself
  kCopied,  // copied to memory of the model, read-only, in huge pages as far as available
  kLocked,  // mapped and locked in memory
  kHuge,    // mapped and moved into huge pages as far as possible
};

// Resources that the model releases when it is closed.
struct ModelBytes {
  Span<const std::byte> bytes;
  MappedFile file;       // empty unless mapped
  Span<std::byte> copy;  // pages of the copy; empty otherwise
  Residency residency = Residency::kMapped;
};

// Loads [offset, offset + bytes) of an open file (as in MapFd) according to `residency`. Returns
// MapFd's errors; kOutOfMemory if a copy does not fit, or the process may not lock that much.
Status LoadModelBytes(int fd, uint64_t offset, uint64_t bytes, Residency residency, ModelBytes* out,
                      Diag* diag);
// Reserves a copy of `bytes` bytes: sets out->copy, and out->bytes within it. kOutOfMemory.
Status ReserveModelBytes(uint64_t bytes, ModelBytes* out, Diag* diag);
void GiveBack(const ModelBytes& source);

}  // namespace arn
