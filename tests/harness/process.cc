#include "tests/harness/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace arn::test {
namespace {

[[noreturn]] void Fail(const std::string& what) {
  throw std::runtime_error(what + ": " + std::strerror(errno));
}

struct Pipe {
  int read = -1;
  int write = -1;
  Pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) Fail("pipe");
    read = ends[0];
    write = ends[1];
  }
  ~Pipe() {
    close(read);
    CloseWrite();
  }
  void CloseWrite() {
    if (write >= 0) close(write);
    write = -1;
  }
};

// Appends the available bytes. Returns false at end of file.
bool ReadSome(int fd, std::string* text) {
  char buffer[65536];
  const ssize_t n = read(fd, buffer, sizeof buffer);
  if (n < 0 && errno == EINTR) return true;
  if (n <= 0) return false;
  text->append(buffer, static_cast<size_t>(n));
  return true;
}

}  // namespace

ProcessResult RunProcess(const std::vector<std::string>& command,
                         const std::function<void(int pid)>& while_running,
                         const std::optional<std::string>& input) {
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  Pipe in, out, err;
  // The pipe buffer holds all of `input`, so the write does not block before the child reads.
  if (input &&
      write(in.write, input->data(), input->size()) != static_cast<ssize_t>(input->size())) {
    Fail("write");
  }
  const pid_t pid = fork();
  if (pid < 0) Fail("fork");
  if (pid == 0) {
    if (input) dup2(in.read, 0);
    dup2(out.write, 1);
    dup2(err.write, 2);
    execvp(argv[0], argv.data());
    _exit(127);
  }
  in.CloseWrite();
  out.CloseWrite();
  err.CloseWrite();
  ProcessResult result;
  bool has_told = !while_running;
  pollfd fds[2] = {{out.read, POLLIN, 0}, {err.read, POLLIN, 0}};
  while (fds[0].fd >= 0 || fds[1].fd >= 0) {
    if (poll(fds, 2, -1) < 0 && errno != EINTR) Fail("poll");
    if (fds[0].revents != 0 && !ReadSome(out.read, &result.out)) fds[0].fd = -1;
    if (fds[1].revents != 0 && !ReadSome(err.read, &result.err)) fds[1].fd = -1;
    if (!has_told && !result.out.empty()) {
      while_running(pid);
      has_told = true;
    }
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) Fail("waitpid");
  }
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

std::vector<std::string> AreniteCommand(std::vector<std::string> arguments) {
  std::vector<std::string> command;
  if (ARN_EMULATOR[0] != '\0') command.push_back(ARN_EMULATOR);
  command.push_back(ARN_TOOL);
  for (std::string& argument : arguments) command.push_back(std::move(argument));
  return command;
}

ProcessResult RunArenite(std::vector<std::string> arguments,
                         const std::function<void(int pid)>& while_running,
                         const std::optional<std::string>& input) {
  return RunProcess(AreniteCommand(std::move(arguments)), while_running, input);
}

}  // namespace arn::test
