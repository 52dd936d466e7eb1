// Runs a child process and captures its output.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace arn::test {

struct ProcessResult {
  int exit_code = -1;  // 128 + signal number if a signal killed it
  std::string out;
  std::string err;
};

// Runs a program until it exits. Calls `while_running` once with the process id, after the first
// output on stdout. `input` is its stdin, at most 64 KiB; without it the child inherits the stdin
// of the test. Throws std::runtime_error if the program cannot be started.
ProcessResult RunProcess(const std::vector<std::string>& command,
                         const std::function<void(int pid)>& while_running = {},
                         const std::optional<std::string>& input = std::nullopt);

// Returns the command line of this build's `arenite`, prefixed with the emulator if one is set.
std::vector<std::string> AreniteCommand(std::vector<std::string> arguments);
ProcessResult RunArenite(std::vector<std::string> arguments,
                         const std::function<void(int pid)>& while_running = {},
                         const std::optional<std::string>& input = std::nullopt);

}  // namespace arn::test
