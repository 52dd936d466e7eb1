// ShareRows: which rows a step runs.
#pragma once

#include <cstdint>

#include "platform/base/span.h"

namespace arn {

// Rows that a request could run now.
struct RowWish {
  uint64_t request = 0;
  uint32_t most = 0;  // 1 for a reply, the rest of its prompt for others
  uint32_t rows = 0;  // what it gets
};

// Shares out `budget` rows. Everyone gets one before anyone gets a second, beginning with request
// *turn, or the next one after it; if the budget ends before all have one, *turn is the first that
// has none. So no one waits longer than ceil(wishes / budget) steps. What is left goes to prompts
// in equal parts, so that a short one is not held up by a long one.
// REQUIRES: wishes are ordered by request, `most` is not 0.
void ShareRows(uint32_t budget, uint64_t* turn, Span<RowWish> wishes);

}  // namespace arn
