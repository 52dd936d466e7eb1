#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>

#include "platform/os/retry.h"
#include "platform/os/system_file.h"

namespace arn {
namespace {

constexpr size_t kFullPath = kMaxSystemRoot + kMaxSystemPath;

bool FullPath(const char* root, const char* path, char (&out)[kFullPath]) {
  const int n = std::snprintf(out, sizeof out, "%s%s", root, path);
  return n > 0 && static_cast<size_t>(n) < sizeof out;
}

}  // namespace

bool ReadSystemText(const char* root, const char* path, char* out, size_t capacity) {
  out[0] = '\0';
  char full[kFullPath];
  if (!FullPath(root, path, full)) return false;
  // O_NONBLOCK: the read must not block whatever the file is.
  const int fd = Retried([&] { return open(full, O_RDONLY | O_CLOEXEC | O_NONBLOCK); });
  if (fd < 0) return false;
  const ssize_t got = Retried([&] { return read(fd, out, capacity - 1); });
  close(fd);
  size_t n = 0;
  while (got > 0 && n < static_cast<size_t>(got) && out[n] != '\n' && out[n] != '\0') ++n;
  while (n > 0 && (out[n - 1] == ' ' || out[n - 1] == '\t' || out[n - 1] == '\r')) --n;
  for (size_t i = 0; i < n; ++i) {
    if (out[i] < ' ' || out[i] > '~') out[i] = '?';
  }
  out[n] = '\0';
  return n > 0;
}

bool ReadSystemNumber(const char* root, const char* path, int64_t* out) {
  char text[32];
  if (!ReadSystemText(root, path, text, sizeof text)) return false;
  const bool is_negative = text[0] == '-';
  const char* at = text + (is_negative ? 1 : 0);
  if (*at == '\0') return false;
  int64_t value = 0;
  for (; *at != '\0'; ++at) {
    if (*at < '0' || *at > '9') return false;
    if (__builtin_mul_overflow(value, int64_t{10}, &value) ||
        __builtin_add_overflow(value, int64_t{*at - '0'}, &value)) {
      return false;
    }
  }
  *out = is_negative ? -value : value;
  return true;
}

void ListSystemFolder(const char* root, const char* path, bool (*see)(void* user, const char* name),
                      void* user) {
  char full[kFullPath];
  if (!FullPath(root, path, full)) return;
  DIR* folder = nullptr;
  do {
    folder = opendir(full);
  } while (folder == nullptr && errno == EINTR);
  if (folder == nullptr) return;
  for (const dirent* entry = readdir(folder); entry != nullptr; entry = readdir(folder)) {
    if (entry->d_name[0] != '.' && !see(user, entry->d_name)) break;
  }
  closedir(folder);
}

}  // namespace arn
