// Words for the values of the options in help, and the groups of the advanced ones.
#pragma once

#include <vector>

#include "tools/cli/option_table.h"

namespace arn::tool {

// An option without a row is shown as its type, in its own group.
const std::vector<cli::OptionWords>& OptionWordRows();

}  // namespace arn::tool
