// The heap of a server that must not grow.
#pragma once

namespace arn::serve {

// One heap for all threads, which gives large blocks back. Call it before there are threads.
void SetUpHeap();
// Gives back what a large request took.
void TrimHeap();

}  // namespace arn::serve
