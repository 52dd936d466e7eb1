// White space and string escapes as in Python.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace arn::convert {

// Returns the bytes of the white space character (str.isspace) at the start of `text`; 0: none.
// REQUIRES: `text` is not empty.
size_t WhiteSpaceBytes(std::string_view text);
bool IsAllSpace(std::string_view text);
// Returns the bytes of the text without trailing white space.
size_t TrimmedEnd(std::string_view text);

// Decodes the contents of a string literal ("unicode-escape") to UTF-8. Returns the error, or "".
std::string Unescape(std::string_view literal, std::string* out);

// True if the whole text is UTF-8 (no surrogates, no overlong forms).
bool IsUtf8(std::string_view text);

}  // namespace arn::convert
