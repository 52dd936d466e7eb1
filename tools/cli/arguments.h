// Mistakes in a command line, in words.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"

namespace arn::cli {

// Returns a sentence on the first word that no command or option explains, with the nearest one
// that does; nullopt if there is none. The parser would complain about what is missing first.
std::optional<std::string> FindUnknown(const CLI::App& app, const std::vector<std::string>& words);

// Returns the parser's complaint as a sentence that names option, value and what is allowed.
std::string Explain(const CLI::App& app, const CLI::ParseError& error);

// Returns the subcommand that `words` name, or the app itself.
const CLI::App& CommandOf(const CLI::App& app, const std::vector<std::string>& words);

}  // namespace arn::cli
