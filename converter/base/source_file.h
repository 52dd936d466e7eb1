// A regular file that is read by position.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>

namespace arn::convert {

class SourceFile {
 public:
  // Throws ConvertError with the system's reason, also if it is not a regular file.
  explicit SourceFile(const std::filesystem::path& path);
  ~SourceFile();
  SourceFile(const SourceFile&) = delete;
  SourceFile& operator=(const SourceFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  uint64_t bytes() const { return bytes_; }
  // Copies `bytes` bytes from `offset`. Thread-safe. Throws ConvertError, also beyond the end.
  void Read(uint64_t offset, void* out, size_t bytes) const;
  // Starts to fetch bytes that will be read soon. Thread-safe.
  void Expect(uint64_t offset, uint64_t bytes) const;
  int fd() const { return fd_; }

 private:
  std::filesystem::path path_;
  int fd_ = -1;
  uint64_t bytes_ = 0;
};

}  // namespace arn::convert
