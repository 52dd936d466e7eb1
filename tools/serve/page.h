// The page at /, which CMake makes a text of (page.html).
#pragma once

#include <string_view>

namespace arn::serve {

std::string_view PageText();

}  // namespace arn::serve
