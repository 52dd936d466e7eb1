// Expresses the pre-tokenizer UnicodeScripts as a regular expression.
#pragma once

#include <string>

namespace arn::convert {

// Returns a PCRE2 pattern that matches its pieces, each of one script. A character without a script
// (a blank, a mark of an unknown script) belongs to the piece before it; before the first piece it
// matches nothing, and the reference drops it.
std::string UnicodeScriptsRegex();

}  // namespace arn::convert
