// Maps Oniguruma's \p{...} properties to PCRE2's.
#pragma once

#include <string_view>

namespace arn::convert {

// Returns PCRE2's name of the property; empty if it is neither a general category nor one of the
// known binary properties (then it is a script). `name`: lower case, without blanks, hyphens or
// underscores.
std::string_view Pcre2Property(std::string_view name);

}  // namespace arn::convert
