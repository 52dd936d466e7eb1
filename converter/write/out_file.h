// Output file that appears under its name only once it is complete.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "platform/os/replace_file.h"

namespace arn::convert {

// Writes to PATH.tmp in the same folder (platform/os/replace_file.h). Commit() syncs it to disk and
// renames it; without Commit() the destructor removes it, unless it keeps it. The next OutFile of
// the same path removes a killed process's leftover. Throws ConvertError with the system's reason
// on failure (a full disk as "disk full").
//
// Writes in large aligned blocks. The kernel caches a file in chunks of the size of its writes, and
// maps it chunk by chunk: touching a bundle of 140 MB takes 15 ms if written in small chunks, and
// less than 1 ms in large ones.
class OutFile {
 public:
  explicit OutFile(const std::filesystem::path& path, bool keeps_unfinished = false);
  ~OutFile();
  OutFile(const OutFile&) = delete;
  OutFile& operator=(const OutFile&) = delete;

  uint64_t position() const { return position_; }
  // Returns the name before Commit(). The file holds everything appended before the last Flush().
  const std::filesystem::path& temporary() const { return temporary_; }
  void Flush();
  void Append(const void* data, size_t bytes);
  // Appends zeros up to `position`. REQUIRES: `position` is not before the end.
  void PadTo(uint64_t position);
  // Leaves a hole, which reads as zeros, up to `position`. REQUIRES: `position` is not before the
  // end.
  void SkipTo(uint64_t position);
  // Drops everything after `position`.
  void Truncate(uint64_t position);
  // Overwrites bytes appended earlier.
  void Overwrite(uint64_t offset, const void* data, size_t bytes);
  void Commit();

 private:
  void WriteAt(uint64_t offset, const void* data, size_t bytes);
  [[noreturn]] void FailWrite(const char* action, int error) const;

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  const bool keeps_unfinished_;
  ReplaceFile file_;
  uint64_t position_ = 0;
  std::vector<char> block_;  // the last bytes before position_, not yet written
};

}  // namespace arn::convert
