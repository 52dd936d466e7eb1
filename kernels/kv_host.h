// What a backend whose KV pages lie in host memory does with them outside its steps.
#pragma once

#include "kernels/program.h"
#include "platform/base/diag.h"
#include "platform/base/layout.h"
#include "platform/base/span.h"

namespace arn {

// Carries the edits out, in their order. kInternal, with nothing done, when one names a group or a
// page that does not exist.
Status ApplyKvEdits(const Program& program, const Memory& memory, Span<const KvEdit> edits,
                    Diag* diag);

// Backend::kv_read and Backend::kv_write. kBadArgument when the slice is not of Region::kKv or not
// of the span's size.
Status KvReadHost(const Memory& memory, Slice from, Span<std::byte> to);
Status KvWriteHost(const Memory& memory, Slice to, Span<const std::byte> from);

}  // namespace arn
