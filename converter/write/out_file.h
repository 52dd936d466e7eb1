// A file that appears under its name only when it is whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

namespace arn::convert {

// Writes to PATH.tmp-<pid> in the same folder. Commit() syncs it to the disk and renames it;
// without Commit() the destructor removes it. Failures throw ConvertError with the system's reason
// ("disk full" in so many words).
//
// What is appended goes out in large aligned blocks. The system keeps a file in memory in pieces of
// the size that it was written in, and maps it piece by piece: a bundle of 140 MB that was written
// in small ones takes 15 ms to be touched, in large ones less than 1.
class OutFile {
 public:
  explicit OutFile(const std::filesystem::path& path);
  ~OutFile();
  OutFile(const OutFile&) = delete;
  OutFile& operator=(const OutFile&) = delete;

  uint64_t position() const { return position_; }
  // The name until Commit(). The file has all that was appended before the last Flush().
  const std::filesystem::path& temporary() const { return temporary_; }
  void Flush();
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
  std::vector<char> block_;  // the last bytes before position_, not written yet
};

}  // namespace arn::convert
