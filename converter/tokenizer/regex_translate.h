// Translates the regular expressions of tokenizer.json, which Hugging Face tokenizers runs with
// Oniguruma (Ruby syntax, https://github.com/kkos/oniguruma/blob/master/doc/RE), to PCRE2 as the
// runtime uses it: UTF and UCP, with LF as the only newline.
#pragma once

#include <string>

namespace arn::convert {

// Throws std::invalid_argument with the construct that has no equivalent, or with PCRE2's reason if
// it rejects the result.
//
// Rewrites the differences: \s (Unicode White_Space; PCRE2's includes U+180E), \w, \b, \h, \v, \u,
// scripts in \p{...} (PCRE2's are script extensions), ^ and $ (always per line), (?m) (dot matches
// newlines), an option group without a colon (applies up to the end of the enclosing group,
// alternatives included), x{n,m}+ (not possessive). Groups do not capture.
std::string TranslateRegex(const std::string& pattern);

// Returns a pattern that matches the text literally.
std::string LiteralRegex(const std::string& text);

}  // namespace arn::convert
