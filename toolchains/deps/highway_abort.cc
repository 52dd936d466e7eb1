// Replaces Highway's abort.cc, which prints to stderr. The only callers are assertions in builds
// without NDEBUG, and a warning if the CPU lacks a feature the compiler was told to use.
#include "hwy/base.h"

namespace hwy {

void Warn(const char*, int, const char*, ...) {}

void Abort(const char*, int, const char*, ...) { __builtin_trap(); }

}  // namespace hwy
