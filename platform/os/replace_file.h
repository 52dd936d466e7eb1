// A file that is written beside another and takes its place when it is whole: whoever opens the
// path finds the old bytes or the new ones, also after a crash or a loss of power.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/base/diag.h"
#include "platform/base/span.h"
#include "platform/base/status.h"

namespace arn {

// Bytes of a path at most, its NUL counted.
inline constexpr size_t kMaxPathBytes = 4096;

struct ReplaceFile {
  int fd = -1;
  char path[kMaxPathBytes];
  char temporary[kMaxPathBytes];  // path.tmp: one left by a process that was killed is used again
};

// Makes the empty temporary file. kNotFound when the folder does not exist, kBadState when another
// one is being written for the same path, else kIo or kDiskFull. After a failure nothing is open
// and nothing is left.
Status BeginReplace(const char* path, ReplaceFile* out, Diag* diag);
// Puts bytes anywhere in it. kDiskFull or kIo.
Status WriteReplace(ReplaceFile* file, uint64_t offset, Span<const std::byte> bytes, Diag* diag);
// Brings it to the disk and gives it its name; on failure as AbandonReplace. (When only the folder
// cannot be synced, the failure is reported although the new file has the name.)
Status FinishReplace(ReplaceFile* file, Diag* diag);
// Removes it. What had the name before stays.
void AbandonReplace(ReplaceFile* file);

}  // namespace arn
