// White space and escapes as Python has them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace arn::convert {

// Bytes of the white space character (str.isspace) at the start of `text`; 0: none is there.
size_t WhiteSpaceBytes(std::string_view text);
bool IsAllSpace(std::string_view text);
// Bytes of the text without the white space at its end.
size_t TrimmedEnd(std::string_view text);

// The inside of a string literal ("unicode-escape") to UTF-8. Returns what is wrong, or "".
std::string Unescape(std::string_view literal, std::string* out);

// Whether all of it is UTF-8 (no surrogates, nothing overlong).
bool IsUtf8(std::string_view text);

}  // namespace arn::convert
