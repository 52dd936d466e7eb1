// KV edits and KV access for backends whose KV pages are in host memory.
#pragma once

#include "kernels/contract/program.h"
#include "platform/base/diag.h"
#include "platform/base/layout.h"
#include "platform/base/span.h"

namespace arn {

// Applies the edits in order. Returns kInternal, with nothing applied, if an edit names a group or
// page that does not exist.
Status ApplyKvEdits(const Program& program, const Memory& memory, Span<const KvEdit> edits,
                    Diag* diag);

// Backend::kv_read and Backend::kv_write. Return kBadArgument if the slice is not in Region::kKv or
// differs from the span in size.
Status KvReadHost(const Memory& memory, Slice from, Span<std::byte> to);
Status KvWriteHost(const Memory& memory, Slice to, Span<const std::byte> from);

}  // namespace arn
