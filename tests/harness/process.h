// Running a program and looking at what it says.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace arn::test {

struct ProcessResult {
  int exit_code = -1;  // 128 + the signal's number when a signal ended it
  std::string out;
  std::string err;
};

// Runs a program to its end. `while_running` is called once with its process id, after it wrote
// something to stdout. `input`: what it reads from stdin, at most 64 KiB; else it has the test's
// own. Throws std::runtime_error when it cannot be started.
ProcessResult RunProcess(const std::vector<std::string>& command,
                         const std::function<void(int pid)>& while_running = {},
                         const std::optional<std::string>& input = std::nullopt);

// The command `arenite` of this build with these arguments; under an emulator where there is one.
std::vector<std::string> AreniteCommand(std::vector<std::string> arguments);
ProcessResult RunArenite(std::vector<std::string> arguments,
                         const std::function<void(int pid)>& while_running = {},
                         const std::optional<std::string>& input = std::nullopt);

}  // namespace arn::test
