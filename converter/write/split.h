// --split: cuts a bundle into files of bounded size (runtime/bundle/parts.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace arn::convert {

// The least size of a part: smaller ones are not worth a file.
inline constexpr uint64_t kLeastPartBytes = 1 << 20;

// Returns the number of parts of at most `part_bytes` bytes that a bundle of `bytes` makes.
uint64_t CountPartsOf(uint64_t bytes, uint64_t part_bytes);

// Replaces the complete bundle NAME.arn by NAME-00001-of-NNNNN.arn and so on, and returns their
// paths; keeps a bundle that fits into one part. The first part appears last, and the bundle goes
// then. Throws ConvertError and leaves the bundle alone on failure.
std::vector<std::filesystem::path> SplitBundle(const std::filesystem::path& bundle,
                                               uint64_t part_bytes);

}  // namespace arn::convert
