// ShareRows: which rows a step runs.
#pragma once

#include <cstdint>

#include "platform/base/span.h"

namespace arn {

// Rows that a request could run now.
struct RowWish {
  uint64_t request = 0;
  uint64_t since = 0;  // the step in which it had its last row
  uint32_t most = 0;   // tokens of a reply that are known, or what is left of a prompt
  uint32_t rows = 0;   // what it gets
};

// Shares out `budget` rows. Everyone gets one before anyone gets a second. If the budget is too
// small for that, those that have waited longest get theirs: of n requests none waits longer than
// ceil(n / budget) steps, whoever joins. What is left goes to those that have more in equal parts,
// so that a short prompt is not held up by a long one. REQUIRES: `most` is not 0.
void ShareRows(uint32_t budget, Span<RowWish> wishes);

}  // namespace arn
