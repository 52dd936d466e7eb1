// Files, standard output, and human-readable numbers.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "tools/cli/format.h"

namespace arn::tool {

using cli::Format;
using cli::HumanBytes;

// Returns the raw bytes of a file, or of standard input for "-". Throws Error.
std::string ReadFile(const std::string& path);

// Writes to stdout and flushes. Throws Error on failure (a full disk, a closed pipe).
void Print(std::string_view text);

// Output file. Throws Error on every failure; the destructor removes a file that was not closed.
class OutputFile {
 public:
  // `is_private`: only the owner may read the file.
  explicit OutputFile(std::string path, bool is_private = false);
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

// Returns `count` per second, 0 if ns is 0.
double PerSecond(uint64_t count, uint64_t ns);

// Returns the peak resident memory of this process in bytes; 0 if unknown.
uint64_t PeakRssBytes();

}  // namespace arn::tool
