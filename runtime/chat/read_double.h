// Replaces std::from_chars for doubles, which older LLVM libc++ (Android's NDK) lacks.
#pragma once

#include <charconv>

namespace arn::chat {

// Reads as std::from_chars in its general form, without "inf" and "nan": the longest prefix of
// [begin, end) that is a decimal number. Leaves *out unchanged if there is none.
// result_out_of_range: too large, or so small that it rounds to 0; *out is then infinite or 0, with
// the number's sign.
std::from_chars_result ReadDouble(const char* begin, const char* end, double* out);

// As ReadDouble by strtod, for any locale: used where from_chars is missing.
std::from_chars_result ReadDoubleByStrtod(const char* begin, const char* end, double* out);

}  // namespace arn::chat
