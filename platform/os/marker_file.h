// A file that says that something is under way, so that the next process learns of one that did not
// come back from it.
#pragma once

#include <cstdint>

#include "platform/os/replace_file.h"

namespace arn {

enum class Marking : uint8_t {
  kMade,    // it is ours until RemoveMarker()
  kHeld,    // somebody else is at it
  kLeft,    // whoever made it is gone and has not removed it; it stays
  kFailed,  // there cannot be one
};

struct MarkerFile {
  int fd = -1;
  char path[kMaxPathBytes];
};

Marking MakeMarker(const char* path, MarkerFile* out);
// Of one that is not open: nothing.
void RemoveMarker(MarkerFile* marker);

}  // namespace arn
