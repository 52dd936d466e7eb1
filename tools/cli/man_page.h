// Manual pages, made from the option tables.
#pragma once

#include <string>

#include "CLI/CLI.hpp"

namespace arn::cli {

// Returns the page of a program with all of its commands, for section 1, in roff's man macros.
std::string ManPage(const CLI::App& app, const std::string& version);

}  // namespace arn::cli
