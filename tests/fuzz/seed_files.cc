#include "tests/fuzz/seed_files.h"

#include <fstream>
#include <stdexcept>

namespace arn::test {

void WriteSeeds(const FuzzTarget& target, const std::filesystem::path& folder) {
  if (target.seeds == nullptr) return;
  size_t n = 0;
  for (const std::string& seed : target.seeds()) {
    const std::filesystem::path path = folder / ("seed_" + std::to_string(n++));
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file.write(seed.data(), static_cast<std::streamsize>(seed.size()));
    file.close();
    if (!file) throw std::runtime_error("cannot write " + path.string());
  }
}

}  // namespace arn::test
