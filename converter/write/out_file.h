// A file that appears under its name only when it is whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>

namespace arn::convert {

// Writes to PATH.tmp-<pid> in the same folder. Commit() syncs it to the disk and renames it;
// without Commit() the destructor removes it. Failures throw ConvertError with the system's reason
// ("disk full" in so many words).
class OutFile {
 public:
  explicit OutFile(const std::filesystem::path& path);
  ~OutFile();
  OutFile(const OutFile&) = delete;
  OutFile& operator=(const OutFile&) = delete;

  uint64_t position() const { return position_; }
  // The name until Commit().
  const std::filesystem::path& temporary() const { return temporary_; }
  void Append(const void* data, size_t bytes);
  // Appends zeros up to `position`, which is not before the end.
  void PadTo(uint64_t position);
  // Forgets what was appended behind `position`.
  void Truncate(uint64_t position);
  // Overwrites bytes that were appended before.
  void Overwrite(uint64_t offset, const void* data, size_t bytes);
  void Commit();

 private:
  void WriteAt(uint64_t offset, const void* data, size_t bytes);
  [[noreturn]] void FailWrite(const char* action, int error) const;

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  int fd_ = -1;
  uint64_t position_ = 0;
};

}  // namespace arn::convert
