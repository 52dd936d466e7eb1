// Marker file for an operation that may crash the process, so that the next process can detect it.
#pragma once

#include <cstdint>

#include "platform/os/replace_file.h"

namespace arn {

enum class Marking : uint8_t {
  kMade,    // held by this process until RemoveMarker()
  kHeld,    // held by another process
  kLeft,    // left by a process that ended without removing it; not deleted
  kFailed,  // a marker cannot be created
};

struct MarkerFile {
  int fd = -1;
  char path[kMaxPathBytes];
};

Marking MakeMarker(const char* path, MarkerFile* out);
// No effect if the marker is not open.
void RemoveMarker(MarkerFile* marker);

}  // namespace arn
