#include "tools/serve/state_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "tools/arenite/error.h"

namespace arn::serve {
namespace {

namespace fs = std::filesystem;

class File {
 public:
  File(const fs::path& path, int flags) : fd_(open(path.c_str(), flags | O_CLOEXEC, 0600)) {}
  ~File() {
    if (fd_ >= 0) close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  bool is_open() const { return fd_ >= 0; }
  int fd() const { return fd_; }
  uint64_t size() const {
    struct stat found = {};
    return fstat(fd_, &found) == 0 ? static_cast<uint64_t>(found.st_size) : 0;
  }
  // Returns the bytes that were read: fewer at the end of the file, or of its readable part.
  size_t Read(void* to, size_t n, uint64_t offset) const {
    size_t done = 0;
    while (done < n) {
      const ssize_t some =
          pread(fd_, static_cast<char*>(to) + done, n - done, static_cast<off_t>(offset + done));
      if (some < 0 && errno == EINTR) continue;
      if (some <= 0) break;
      done += static_cast<size_t>(some);
    }
    return done;
  }
  bool Write(const char* from, size_t n) const {
    while (n > 0) {
      const ssize_t some = write(fd_, from, n);
      if (some < 0 && errno == EINTR) continue;
      if (some <= 0) return false;
      from += some;
      n -= static_cast<size_t>(some);
    }
    return true;
  }

 private:
  const int fd_;
};

void SyncFolder(const fs::path& folder) {
  const File file(folder, O_RDONLY | O_DIRECTORY);
  if (file.is_open()) fsync(file.fd());
}

// Returns true if it was not there.
bool MakeFolder(const fs::path& folder) {
  std::error_code error;
  const fs::path above = folder.parent_path();
  if (fs::exists(folder, error)) return false;
  if (above != folder && !above.empty()) MakeFolder(above);
  if (!fs::create_directory(folder, error)) return false;
  SyncFolder(above);
  return true;
}

// Offsets in the header of a state.
constexpr char kMagic[] = "ARNSTATE";
constexpr size_t kHeaderBytes = 152, kSequencesAt = 44, kTokensAt = 96;

template <typename T>
T At(const char* header, size_t offset) {
  T value;
  std::memcpy(&value, header + offset, sizeof value);
  return value;
}

}  // namespace

void MakeStateFolder(const fs::path& folder) {
  std::error_code error;
  if (MakeFolder(folder)) fs::permissions(folder, fs::perms::owner_all, error);
  if (!fs::is_directory(folder, error)) {
    throw tool::Error("--state-folder " + folder.string() + ": no folder");
  }
}

std::vector<int32_t> ReadStateIds(const fs::path& path, uint32_t max_tokens) {
  const File file(path, O_RDONLY);
  char header[kHeaderBytes];
  if (!file.is_open() || file.Read(header, sizeof header, 0) != sizeof header ||
      std::memcmp(header, kMagic, sizeof kMagic - 1) != 0 ||
      At<uint32_t>(header, kSequencesAt) != 1) {
    return {};
  }
  const auto offset = At<uint64_t>(header, kTokensAt);
  const auto bytes = At<uint64_t>(header, kTokensAt + sizeof offset);
  if (bytes % sizeof(int32_t) != 0 || bytes / sizeof(int32_t) > max_tokens ||
      offset > file.size()) {
    return {};
  }
  std::vector<int32_t> ids(bytes / sizeof(int32_t));
  if (file.Read(ids.data(), bytes, offset) != bytes) ids.clear();
  return ids;
}

std::shared_ptr<const std::vector<char>> ReadStateFile(const fs::path& path) {
  const File file(path, O_RDONLY);
  if (!file.is_open()) return nullptr;
  auto bytes = std::make_shared<std::vector<char>>(file.size());
  if (file.Read(bytes->data(), bytes->size(), 0) != bytes->size()) return nullptr;
  return bytes;
}

void ReadStateThrough(const fs::path& path) {
  const File file(path, O_RDONLY);
  if (!file.is_open()) return;
  char part[64 * 1024];
  for (uint64_t at = 0; size_t n = file.Read(part, sizeof part, at); at += n) {
  }
}

std::string WriteStateFile(const fs::path& path, const std::vector<char>& bytes) {
  fs::path unfinished = path;
  unfinished += ".tmp";
  bool is_written = false;
  {
    const File file(unfinished, O_WRONLY | O_CREAT | O_TRUNC);
    is_written = file.is_open() && file.Write(bytes.data(), bytes.size()) && fsync(file.fd()) == 0;
  }
  const int failure = errno;
  if (is_written && rename(unfinished.c_str(), path.c_str()) == 0) {
    SyncFolder(path.parent_path());
    return "";
  }
  const std::string why = std::strerror(is_written ? errno : failure);
  unlink(unfinished.c_str());
  return path.string() + ": cannot be written: " + why;
}

}  // namespace arn::serve
