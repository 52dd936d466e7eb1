// Edits of a valid file, chosen by the bytes of a fuzzer: a byte of flags, a u16 offset, and the
// bytes to write there, until the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace arn::test {

inline constexpr uint8_t kEditBytesMask = 7;  // number of bytes to write, minus one
inline constexpr uint8_t kEditCut = 8;        // truncates the file there and writes nothing
inline constexpr uint8_t kEditAtSecond = 16;  // the offset counts from the second beginning

// `place(flags, offset)` turns an edit's offset into a position, modulo the file's size.
template <typename Place>
std::vector<uint8_t> EditedBytes(const std::vector<uint8_t>& good, const uint8_t* data, size_t size,
                                 const Place& place) {
  std::vector<uint8_t> file = good;
  while (size >= 4 && !file.empty()) {
    const uint8_t flags = data[0];
    const uint64_t at = place(flags, data[1] + (uint64_t{data[2]} << 8)) % file.size();
    data += 3;
    size -= 3;
    if ((flags & kEditCut) != 0) {
      file.resize(at);
      continue;
    }
    for (uint64_t i = 0; i <= (flags & kEditBytesMask) && size > 0 && at + i < file.size(); ++i) {
      file[at + i] = *data++;
      --size;
    }
  }
  return file;
}

}  // namespace arn::test
