// Replaces a file atomically: writes beside it and renames at the end. Readers see the old bytes or
// the new ones, also after a crash or power loss.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/base/diag.h"
#include "platform/base/span.h"
#include "platform/base/status.h"

namespace arn {

// Maximum path length, including NUL.
inline constexpr size_t kMaxPathBytes = 4096;

struct ReplaceFile {
  int fd = -1;
  char path[kMaxPathBytes];       // file to replace, with symbolic links resolved
  char temporary[kMaxPathBytes];  // path.tmp; a stale one of a killed process is removed
};

// Creates the empty temporary file beside the file that `path` resolves to. Permissions are `mode`
// (0600, 0666 ...) less the umask. kNotFound: no such directory; kBadState: another writer is
// replacing the same path; else kIo or kDiskFull. Also kIo if the old file is not a regular file,
// or the file system has no locks. On failure nothing is open and nothing is left.
Status BeginReplace(const char* path, uint32_t mode, ReplaceFile* out, Diag* diag);
// Writes bytes at any offset. kDiskFull or kIo.
Status WriteReplace(ReplaceFile* file, uint64_t offset, Span<const std::byte> bytes, Diag* diag);
// Syncs and renames the file; on failure acts as AbandonReplace. The directory is synced last: if
// only that fails, the new file is in place, a power loss may undo the rename, and diag says so.
Status FinishReplace(ReplaceFile* file, Diag* diag);
// Removes the temporary file; the old file stays.
void AbandonReplace(ReplaceFile* file);

}  // namespace arn
