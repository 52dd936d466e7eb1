// Files that are removed with their owners.
#pragma once

#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

namespace arn::convert {

// Returns OUTPUT.what.tmp: the same name in every process, so that the next run reuses and removes
// a killed run's leftover.
inline std::filesystem::path TemporaryName(const std::filesystem::path& output, const char* what) {
  std::filesystem::path path = output;
  path += std::string(".") + what + ".tmp";
  return path;
}

class TemporaryFile {
 public:
  explicit TemporaryFile(std::filesystem::path path) : path_(std::move(path)) {}
  ~TemporaryFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace arn::convert
