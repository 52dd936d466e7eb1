// Loads a bundle that lies in several files, as if it were one: they are mapped one behind another
// into one range of addresses, or copied.
#pragma once

#include <cstdint>

#include "runtime/model/model_bytes.h"

namespace arn {

// Returns the number of parts if `path` ends as that of a first part does; else 0.
uint32_t CountParts(const char* path);

// Loads `n` parts. paths: of each, in order; null: `first` and its siblings by name. In huge pages
// as far as the system does so by itself. Errors name the part: kNotFound, kIo, kBundleTruncated,
// kBadBundle (no part, not of this bundle, or not in its place), kHashMismatch, kOutOfMemory.
Status LoadModelParts(const char* const* paths, const char* first, uint32_t n, Residency residency,
                      ModelBytes* out, Diag* diag);

}  // namespace arn
