// Numbers as Python writes and reads them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace arn::chat {

inline constexpr size_t kMaxNumberBytes = 32;

// repr(float): the shortest digits that give it back, "1.0", "1e-05", "nan", "inf". At most
// kMaxNumberBytes; returns how many.
size_t FormatFloat(double value, char* out);
size_t FormatInt(int64_t value, char* out);

// float(text), without white space around it: false when it is not one.
bool ParseFloat(std::string_view text, double* out);
// int(text, base) with base 10 (underscores between digits allowed) or 2 to 36.
bool ParseInt(std::string_view text, uint32_t base, int64_t* out);

// round(value, digits): to the nearest decimal, exact ties to even.
double RoundTo(double value, int digits);

}  // namespace arn::chat
