// A Program as text, one line a step, for `inspect --program` and for golden tests.
#pragma once

#include <cstddef>

#include "kernels/program.h"
#include "platform/base/span.h"

namespace arn {

// Names of weights by index; `context` is the caller's.
using WeightNamer = const char* (*)(const void* context, WeightId id);

// Writes at most text.size() bytes (no NUL) and returns how many the whole text has.
size_t DumpProgram(const Program& program, WeightNamer name, const void* context, Span<char> text);

}  // namespace arn
