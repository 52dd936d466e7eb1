// Writes the seeds of a target as files, as libFuzzer reads a corpus.
#pragma once

#include <filesystem>

#include "tests/fuzz/fuzz_target.h"

namespace arn::test {

// Names them seed_N. Throws std::runtime_error if a file cannot be written.
void WriteSeeds(const FuzzTarget& target, const std::filesystem::path& folder);

}  // namespace arn::test
