#include "tools/arenite/device_folder.h"

#include <cstdlib>
#include <filesystem>

#include "tools/arenite/error.h"

namespace arn::tool {

namespace fs = std::filesystem;

std::string DefaultDeviceFolder() {
  // Ignores relative paths, as the XDG Base Directory Specification requires.
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && cache[0] == '/') return (fs::path(cache) / "arenite").string();
  const char* home = std::getenv("HOME");
  if (home == nullptr || home[0] != '/') return "";
  return (fs::path(home) / ".cache" / "arenite").string();
}

bool MakeDeviceFolder(const std::string& folder) {
  if (folder.empty()) return false;
  std::error_code error;
  fs::create_directories(folder, error);
  if (fs::is_directory(folder)) return true;
  if (folder == DefaultDeviceFolder()) return false;
  throw Error("--device-folder " + folder + ": " + (error ? error.message() : "not a folder"));
}

}  // namespace arn::tool
