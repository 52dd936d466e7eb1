// RunObserver: is notified of what the runner has run.
#pragma once

#include <cstdint>

#include "platform/base/span.h"

namespace arn {

class RunObserver {
 public:
  // A run of one sequence has succeeded: of `ids`, behind the tokens `before`. The values of its
  // program are as it left them.
  virtual void OnRun(Span<const int32_t> before, Span<const int32_t> ids) = 0;

 protected:
  ~RunObserver() = default;
};

}  // namespace arn
