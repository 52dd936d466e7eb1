// Texts with numbers.
#pragma once

#include <cstdint>
#include <string>

namespace arn::cli {

// Returns a printf-style string.
std::string Format(const char* format, ...) __attribute__((format(printf, 1, 2)));

// Returns "1.50 GB", "12.3 MB", "640 B": powers of 1000.
std::string HumanBytes(uint64_t bytes);

}  // namespace arn::cli
