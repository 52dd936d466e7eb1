// Handles a command line before the program's own work, for both programs.
#pragma once

#include <optional>
#include <string>

#include "CLI/CLI.hpp"

namespace arn::cli {

inline constexpr int kExitUsage = 2;

// Adds --help, --version, --completion and --man-page; to an app with commands also `help`.
// `version`: "0.1.0".
void AddCommonOptions(CLI::App* app, const std::string& version);

// Parses, and answers what the common options and `help [COMMAND]` ask for. Returns the exit code
// if the program is done; a mistake is printed as one line on stderr. `check`, if not empty, is
// called after parsing and may throw CLI::ParseError.
std::optional<int> ParseOrAnswer(CLI::App* app, int argc, const char* const* argv,
                                 const std::string& version,
                                 const std::function<void()>& check = {});

// Prints "PROGRAM: error: SENTENCE" on stderr, in colour on a terminal.
void PrintError(const std::string& program, const std::string& sentence);
void PrintWarning(const std::string& program, const std::string& sentence);

}  // namespace arn::cli
