// Files, standard output, and numbers as people read them.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace arn::tool {

// printf to a string.
std::string Format(const char* format, ...) __attribute__((format(printf, 1, 2)));

// The bytes of a file as they are. Throws Error.
std::string ReadFile(const std::string& path);

// Writes to stdout and flushes. Throws Error when it cannot (a full disk, a closed pipe).
void Print(std::string_view text);

// A file that is being written. Throws Error on every failure; a file that was not closed is
// removed.
class OutputFile {
 public:
  explicit OutputFile(std::string path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  void Write(const void* data, size_t bytes);
  void Close();

 private:
  [[noreturn]] void Fail() const;

  std::string path_;
  std::FILE* file_ = nullptr;
};

// "1.50 GB", "12.3 MB", "640 B": powers of 1000.
std::string HumanBytes(uint64_t bytes);

// `count` per second, 0 when no time has passed.
double PerSecond(uint64_t count, uint64_t ns);

// The most memory that this process had resident so far, in bytes; 0 when the system does not say.
uint64_t PeakRssBytes();

}  // namespace arn::tool
