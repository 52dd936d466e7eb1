// The heap of a server that must not grow.
#pragma once

#include <cstddef>

namespace arn::serve {

// One heap for all threads, which gives large blocks back. Call it before there are threads.
void SetUpHeap();
// Commits that many bytes for small blocks and keeps them, so that the pages come now and not one
// by one while requests meet in new ways.
void CommitHeap(size_t bytes);
// Gives back what a large request took.
void TrimHeap();

}  // namespace arn::serve
