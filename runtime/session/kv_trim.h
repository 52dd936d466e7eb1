// Gives the memory of unused KV pages back to the system.
#pragma once

#include <cstdint>

#include "runtime/cache/kv_cache.h"
#include "runtime/session/core.h"

namespace arn {

// *out_bytes: the bytes given back; their contents are lost. REQUIRES: the pages lie in memory that
// the session owns, and no edits of the cache are pending.
Status TrimUnusedPages(const SessionCore& core, const KvCache& cache, uint64_t* out_bytes);

}  // namespace arn
