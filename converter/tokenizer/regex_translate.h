// From the regular expressions of tokenizer.json, which Hugging Face tokenizers gives to Oniguruma
// (Ruby syntax, https://github.com/kkos/oniguruma/blob/master/doc/RE), to PCRE2's syntax as the
// runtime matches it: with UTF and UCP, and LF as the only newline.
#pragma once

#include <string>

namespace arn::convert {

// Throws std::invalid_argument with a phrase about the construct that has no equal, or with PCRE2's
// reason when it does not accept the result.
//
// What differs between the two and is rewritten: \s (Unicode White_Space; PCRE2's has U+180E too),
// \w, \b, \h, \v, \u, scripts in \p{...} (PCRE2's are script extensions), ^ and $ (lines always),
// (?m) (dot matches newlines), an option group without a colon (holds up to the end of the
// enclosing group, alternatives included), x{n,m}+ (not possessive). Groups do not capture.
std::string TranslateRegex(const std::string& pattern);

// A pattern that matches the text itself.
std::string LiteralRegex(const std::string& text);

}  // namespace arn::convert
