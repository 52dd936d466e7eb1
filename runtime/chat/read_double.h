// std::from_chars for doubles, which LLVM's libc++, and so Android's NDK, lacked for long.
#pragma once

#include <charconv>

namespace arn::chat {

// Reads what std::from_chars reads in its general form, but for "inf" and "nan": the longest prefix
// of [begin, end) that is a decimal number. *out is left alone by errors; result_out_of_range: too
// large, or so small that it would be 0.
std::from_chars_result ReadDouble(const char* begin, const char* end, double* out);

// The same by strtod, whatever the locale: what ReadDouble does where there is no from_chars.
std::from_chars_result ReadDoubleByStrtod(const char* begin, const char* end, double* out);

}  // namespace arn::chat
