// Memory of an object over a session: the caller's, or reserved from the OS.
#pragma once

#include "platform/base/layout.h"
#include "runtime/api/handles.h"

namespace arn::api {

struct CallerBlock {
  Span<std::byte> block;
  Span<std::byte> pages;  // to release at the object's end; empty: the caller's memory
};

// memory: null to reserve. `what` names the object in messages. kBadArgument: not aligned to
// kSliceAlign; kOutOfMemory: less than `needed`, or the OS has none.
Status FindBlock(const char* what, uint64_t needed, void* memory, uint64_t memory_bytes,
                 CallerBlock* out, Diag* diag);

}  // namespace arn::api
