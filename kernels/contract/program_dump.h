// Writes a Program as text, one step per line, for `inspect --program` and golden tests.
#pragma once

#include <cstddef>

#include "kernels/contract/program.h"
#include "platform/base/span.h"

namespace arn {

// Returns the name of a weight. `context` is passed through.
using WeightNamer = const char* (*)(const void* context, WeightId id);

// Writes at most text.size() bytes (no NUL) and returns the full size.
size_t DumpProgram(const Program& program, WeightNamer name, const void* context, Span<char> text);

}  // namespace arn
