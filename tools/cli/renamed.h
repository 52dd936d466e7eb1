// Flags that have another name now.
#pragma once

#include <string>
#include <vector>

namespace arn::cli {

// Replaces flags by their current names, so that scripts written for an earlier version keep
// working. Help and completions show the current names only.
std::vector<std::string> WithCurrentNames(std::vector<std::string> words);

}  // namespace arn::cli
