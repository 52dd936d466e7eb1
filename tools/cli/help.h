// Help texts.
#pragma once

#include <string>

#include "CLI/CLI.hpp"

namespace arn::cli {

// Returns the help of an app or a subcommand, wrapped to `columns`. `is_short`: without the
// advanced options, which it counts instead.
std::string Help(const CLI::App& app, bool is_short, size_t columns);

}  // namespace arn::cli
