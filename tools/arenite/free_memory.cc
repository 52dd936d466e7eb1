#include "tools/arenite/free_memory.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>

namespace arn::tool {
namespace {

namespace fs = std::filesystem;

// Returns the number behind the key of a line "key 123" or "key: 123 kB".
std::optional<uint64_t> NumberOf(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string word; file >> word;) {
    uint64_t number = 0;
    if ((word == key || word == key + ":") && file >> number) return number;
  }
  return std::nullopt;
}

// Returns the only number of a file; none for "max".
std::optional<uint64_t> NumberIn(const fs::path& path) {
  std::ifstream file(path);
  uint64_t number = 0;
  if (file >> number) return number;
  return std::nullopt;
}

uint64_t Left(uint64_t limit, uint64_t used) { return limit > used ? limit - used : 0; }

uint64_t LeftOfGroup(const fs::path& group) {
  const std::optional<uint64_t> limit = NumberIn(group / "memory.max");
  const std::optional<uint64_t> used = NumberIn(group / "memory.current");
  if (!limit || !used) return UINT64_MAX;
  uint64_t cached = 0;
  for (const char* key : {"inactive_file", "active_file"}) {
    cached += NumberOf((group / "memory.stat").string(), key).value_or(0);
  }
  return Left(*limit, Left(*used, cached));
}

// The path of the process's group, from the line "0::/path".
std::string GroupPath(const std::string& root) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, 3, "0::") == 0) return line.substr(3);
  }
  return "/";
}

}  // namespace

uint64_t FreeMemory(const std::string& root) {
  uint64_t least = UINT64_MAX;
  if (const auto available = NumberOf(root + "/proc/meminfo", "MemAvailable")) {
    least = *available * 1024;
  }
  // In a container the path may be that outside of it: then only the mount's root is there.
  const fs::path mount(root + "/sys/fs/cgroup");
  for (fs::path group = fs::path(GroupPath(root)).relative_path(); !group.empty();
       group = group.parent_path()) {
    least = std::min(least, LeftOfGroup(mount / group));
  }
  least = std::min(least, LeftOfGroup(mount));
  return least;
}

}  // namespace arn::tool
