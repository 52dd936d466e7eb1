// Completions for shells, made from the option tables.
#pragma once

#include <string>
#include <vector>

#include "CLI/CLI.hpp"

namespace arn::cli {

// The shells that Completion() knows.
const std::vector<std::string>& Shells();
// Returns the completion script of a program. REQUIRES: `shell` is one of Shells().
std::string Completion(const CLI::App& app, const std::string& shell);

}  // namespace arn::cli
