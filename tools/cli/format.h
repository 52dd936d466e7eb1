// Texts with numbers.
#pragma once

#include <cstdint>
#include <string>

namespace arn::cli {

// Returns a printf-style string.
std::string Format(const char* format, ...) __attribute__((format(printf, 1, 2)));

// Returns "1.50 GB", "12.3 MB", "640 B": powers of 1000.
std::string HumanBytes(uint64_t bytes);

// Describes what ParseSize accepts, for messages.
inline constexpr const char* kSizeForms =
    "a number of bytes like 300000000, 300M, 2GiB (the same as 2G) or 2GB";

// Reads a number of bytes. Returns false for any other text.
bool ParseSize(const std::string& text, uint64_t* bytes);

}  // namespace arn::cli
