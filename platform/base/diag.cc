#include "platform/base/diag.h"

#include <cstdio>

namespace arn {

Status Diag::Fail(Status status, const char* format, ...) {
  va_list args;
  va_start(args, format);
  std::vsnprintf(text_, kCapacity, format, args);
  va_end(args);
  return status;
}

}  // namespace arn
