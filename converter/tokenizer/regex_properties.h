// The properties that \p{...} may name in Oniguruma.
#pragma once

#include <string_view>

namespace arn::convert {

// What PCRE2 calls the property; empty when it is none of the general categories and of the few
// binary properties that are known (it is a script then). `name` has lower-case letters and neither
// blanks nor hyphens nor underscores.
std::string_view Pcre2Property(std::string_view name);

}  // namespace arn::convert
