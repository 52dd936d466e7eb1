// Handles a command line before the program's own work, for both programs.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "CLI/CLI.hpp"

namespace arn::cli {

inline constexpr int kExitFailure = 1;
inline constexpr int kExitUsage = 2;

// Runs a program and returns its exit code. Exceptions become an error on stderr and kExitFailure,
// also those that are thrown when there is no memory to handle another.
int RunProgram(const char* program, const std::function<int()>& run);

// Holds some memory, if it does not already, that is given back to the heap when an allocation
// fails: what a program does then, such as destroying a JSON text, allocates too.
void HoldReserve();

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
