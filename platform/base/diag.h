// Diag: error message with values, written once where the error is detected. Callers only propagate
// the Status. Passed explicitly: no global state, no heap.
#pragma once

#include <cstdarg>
#include <cstddef>

#include "platform/base/status.h"

namespace arn {

class Diag {
 public:
  static constexpr size_t kCapacity = 512;

  // Sets the text (printf-style, cut at kCapacity - 1 bytes) and returns `status`, for: return
  // diag.Fail(Status::kBadBundle, "segment %s: ...", name).
  Status Fail(Status status, const char* format, ...) __attribute__((format(printf, 3, 4)));
  const char* text() const { return text_; }
  void Clear() { text_[0] = '\0'; }

 private:
  char text_[kCapacity] = {0};
};

}  // namespace arn
