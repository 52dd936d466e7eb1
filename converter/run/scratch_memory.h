// Memory in a file that has no name: the system may write its pages there, and they count as the
// process's only while it uses them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>

#include "platform/base/span.h"

namespace arn::convert {

class ScratchMemory {
 public:
  static constexpr uint64_t kAlign = 65536;

  // Reserves `bytes` zeros in a file of that size, whose blocks are allocated at once, as far as
  // the file system can: no later write then finds the disk full, which would end the process
  // (SIGBUS). `path`: an unused name, which is gone again when this returns. Throws ConvertError
  // with the name and the size, and "disk full" for a full disk.
  ScratchMemory(const std::filesystem::path& path, uint64_t bytes);
  ~ScratchMemory();
  ScratchMemory(const ScratchMemory&) = delete;
  ScratchMemory& operator=(const ScratchMemory&) = delete;

  // Starts at a multiple of kAlign, which every OS page and session does.
  Span<std::byte> bytes() const { return bytes_; }

 private:
  Span<std::byte> reserved_, bytes_;
};

}  // namespace arn::convert
