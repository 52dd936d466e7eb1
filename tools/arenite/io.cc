#include "tools/arenite/io.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "tools/arenite/error.h"

namespace arn::tool {

std::string ReadFile(const std::string& path) {
  const bool is_stdin = path == "-";
  std::FILE* file = is_stdin ? stdin : std::fopen(path.c_str(), "rb");
  if (file == nullptr) {
    throw Error(Format("cannot open %s: %s", path.c_str(), std::strerror(errno)));
  }
  std::string text;
  char buffer[65536];
  size_t n;
  while ((n = std::fread(buffer, 1, sizeof buffer, file)) > 0) text.append(buffer, n);
  const bool failed = std::ferror(file) != 0;
  const int error = errno;
  if (!is_stdin) std::fclose(file);
  if (failed) throw Error(Format("cannot read %s: %s", path.c_str(), std::strerror(error)));
  return text;
}

void Print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    throw Error(Format("cannot write to standard output: %s", std::strerror(errno)));
  }
}

OutputFile::OutputFile(std::string path, bool is_private) : path_(std::move(path)) {
  const int fd =
      open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, is_private ? 0600 : 0666);
  if (fd < 0) Fail();
  // A file that was there before keeps its mode otherwise.
  if (is_private) fchmod(fd, 0600);
  file_ = fdopen(fd, "wb");
  if (file_ == nullptr) {
    close(fd);
    Fail();
  }
}

OutputFile::~OutputFile() {
  if (file_ == nullptr) return;
  std::fclose(file_);
  std::error_code ignored;  // keeps a device or a pipe
  if (std::filesystem::is_regular_file(path_, ignored)) std::filesystem::remove(path_, ignored);
}

void OutputFile::Write(const void* data, size_t bytes) {
  if (std::fwrite(data, 1, bytes, file_) != bytes) Fail();
}

void OutputFile::Close() {
  if (std::fflush(file_) != 0) Fail();
  std::FILE* file = file_;
  file_ = nullptr;
  if (std::fclose(file) != 0) Fail();
}

void OutputFile::Fail() const {
  throw Error(Format("cannot write %s: %s", path_.c_str(), std::strerror(errno)));
}

double PerSecond(uint64_t count, uint64_t ns) {
  return ns == 0 ? 0 : static_cast<double>(count) * 1e9 / static_cast<double>(ns);
}

uint64_t PeakRssBytes() {
  // On Linux getrusage's maximum carries over from the parent before exec; VmHWM starts with the
  // program itself.
  if (std::FILE* file = std::fopen("/proc/self/status", "r")) {
    char line[256];
    unsigned long long kib = 0;
    bool found = false;
    while (!found && std::fgets(line, sizeof line, file) != nullptr) {
      found = std::sscanf(line, "VmHWM: %llu kB", &kib) == 1;
    }
    std::fclose(file);
    if (found) return kib * 1024;
  }
  struct rusage usage = {};
  if (getrusage(RUSAGE_SELF, &usage) != 0) return 0;
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace arn::tool
