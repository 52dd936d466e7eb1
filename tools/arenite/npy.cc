#include "tools/arenite/npy.h"

#include <bit>

#include "tools/arenite/io.h"

namespace arn::tool {

static_assert(std::endian::native == std::endian::little);

void WriteNpy(const std::string& path, const std::vector<float>& values, size_t rows, size_t cols) {
  std::string header =
      Format("{'descr': '<f4', 'fortran_order': False, 'shape': (%zu, %zu), }", rows, cols);
  constexpr size_t kAlign = 64, kBefore = 10;  // magic, version, length of the header
  header.append((kAlign - (kBefore + header.size() + 1) % kAlign) % kAlign, ' ');
  header += '\n';
  std::string start("\x93NUMPY\x01\x00", 8);
  start += static_cast<char>(header.size() & 0xff);
  start += static_cast<char>(header.size() >> 8);
  OutputFile file(path);
  file.Write(start.data(), start.size());
  file.Write(header.data(), header.size());
  file.Write(values.data(), values.size() * sizeof(float));
  file.Close();
}

}  // namespace arn::tool
