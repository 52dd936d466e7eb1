// Formats and parses numbers as Python does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace arn::chat {

inline constexpr size_t kMaxNumberBytes = 32;

// repr(float): the shortest digits that round-trip, "1.0", "1e-05", "nan", "inf". Writes at most
// kMaxNumberBytes and returns the count.
size_t FormatFloat(double value, char* out);
size_t FormatInt(int64_t value, char* out);

// float(text), without surrounding white space; false if invalid.
bool ParseFloat(std::string_view text, double* out);
// int(text, base) with base 10 (underscores between digits allowed) or 2 to 36.
bool ParseInt(std::string_view text, uint32_t base, int64_t* out);

// round(value, digits): to the nearest decimal, exact ties to even.
double RoundTo(double value, int digits);

}  // namespace arn::chat
