// Records what a process does to the files of a folder, for an emulated loss of power: preloaded,
// with ARN_DISK_FOLDER and ARN_DISK_LOG. A record is a DiskRecord, two names, and data
// (power_loss.py reads it).
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

namespace {

struct DiskRecord {
  // open (new or emptied), write, truncate, sync, rename, unlink, mkdir
  char op;
  char padding[7];
  uint64_t inode;
  uint64_t offset;  // of a write; length of a truncated file
  uint32_t name_bytes, other_bytes, data_bytes, unused;
};

char g_folder[PATH_MAX];
size_t g_folder_bytes = 0;
int g_log = -1;

__attribute__((constructor)) void Begin() {
  const char* folder = getenv("ARN_DISK_FOLDER");
  const char* log = getenv("ARN_DISK_LOG");
  if (folder == nullptr || log == nullptr || strlen(folder) >= sizeof g_folder) return;
  g_folder_bytes = strlen(folder);
  memcpy(g_folder, folder, g_folder_bytes + 1);
  g_log = static_cast<int>(
      syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
}

bool IsWatched(const char* path) {
  return g_log >= 0 && strncmp(path, g_folder, g_folder_bytes) == 0 &&
         (path[g_folder_bytes] == '/' || path[g_folder_bytes] == '\0');
}

// Completes a name by the current folder.
void Complete(const char* name, char (&path)[PATH_MAX]) {
  size_t n = 0;
  if (name[0] != '/' && syscall(SYS_getcwd, path, sizeof path) > 0) {
    n = strlen(path);
    path[n++] = '/';
  }
  snprintf(path + n, sizeof path - n, "%s", name);
}

// Finds the path of an open file. Returns false unless it is watched.
bool FindPath(int fd, char (&path)[PATH_MAX]) {
  if (g_log < 0) return false;
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const long n = syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path - 1);
  if (n <= 0) return false;
  path[n] = '\0';
  return IsWatched(path);
}

uint64_t InodeOf(int fd) {
  struct stat info;
  return syscall(SYS_fstat, fd, &info) == 0 ? info.st_ino : 0;
}

void Log(char op, uint64_t inode, uint64_t offset, const char* name, const char* other = "",
         const void* data = nullptr, size_t data_bytes = 0) {
  DiskRecord record = {};
  record.op = op;
  record.inode = inode;
  record.offset = offset;
  record.name_bytes = static_cast<uint32_t>(strlen(name));
  record.other_bytes = static_cast<uint32_t>(strlen(other));
  record.data_bytes = static_cast<uint32_t>(data_bytes);
  const iovec parts[] = {{&record, sizeof record},
                         {const_cast<char*>(name), record.name_bytes},
                         {const_cast<char*>(other), record.other_bytes},
                         {const_cast<void*>(data), data_bytes}};
  const int before = errno;
  syscall(SYS_writev, g_log, parts, 4);
  errno = before;
}

void LogOfFile(char op, int fd, uint64_t offset, const void* data = nullptr, size_t bytes = 0) {
  char path[PATH_MAX];
  if (FindPath(fd, path)) Log(op, InodeOf(fd), offset, path, "", data, bytes);
}

int Open(const char* path, int flags, mode_t mode) {
  const int fd = static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
  if (fd >= 0 && (flags & (O_CREAT | O_TRUNC)) != 0) LogOfFile('o', fd, 0);
  return fd;
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  return Open(path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  return Open(path, flags, mode);
}
ssize_t write(int fd, const void* data, size_t bytes) {
  const off_t at = g_log >= 0 ? syscall(SYS_lseek, fd, 0, SEEK_CUR) : 0;
  const ssize_t n = syscall(SYS_write, fd, data, bytes);
  if (n > 0) LogOfFile('w', fd, static_cast<uint64_t>(at), data, static_cast<size_t>(n));
  return n;
}
ssize_t pwrite(int fd, const void* data, size_t bytes, off_t offset) {
  const ssize_t n = syscall(SYS_pwrite64, fd, data, bytes, offset);
  if (n > 0) LogOfFile('w', fd, static_cast<uint64_t>(offset), data, static_cast<size_t>(n));
  return n;
}
ssize_t pwrite64(int fd, const void* data, size_t bytes, off_t offset) {
  return pwrite(fd, data, bytes, offset);
}
int ftruncate(int fd, off_t bytes) noexcept {
  const long result = syscall(SYS_ftruncate, fd, bytes);
  if (result == 0) LogOfFile('t', fd, static_cast<uint64_t>(bytes));
  return static_cast<int>(result);
}
int ftruncate64(int fd, off_t bytes) noexcept { return ftruncate(fd, bytes); }
int fsync(int fd) {
  const long result = syscall(SYS_fsync, fd);
  if (result == 0) LogOfFile('s', fd, 0);
  return static_cast<int>(result);
}
int fdatasync(int fd) { return fsync(fd); }
int rename(const char* from, const char* to) noexcept {
  const long result = syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
  char before[PATH_MAX], after[PATH_MAX];
  Complete(from, before);
  Complete(to, after);
  if (result == 0 && IsWatched(after)) Log('r', 0, 0, before, after);
  return static_cast<int>(result);
}
int unlink(const char* path) noexcept {
  const long result = syscall(SYS_unlinkat, AT_FDCWD, path, 0);
  char whole[PATH_MAX];
  Complete(path, whole);
  if (result == 0 && IsWatched(whole)) Log('u', 0, 0, whole);
  return static_cast<int>(result);
}
int remove(const char* path) noexcept {
  if (unlink(path) == 0) return 0;
  return errno != EISDIR ? -1
                         : static_cast<int>(syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR));
}
int mkdir(const char* path, mode_t mode) noexcept {
  const long result = syscall(SYS_mkdirat, AT_FDCWD, path, mode);
  char whole[PATH_MAX];
  Complete(path, whole);
  if (result == 0 && IsWatched(whole)) Log('m', 0, 0, whole);
  return static_cast<int>(result);
}

}  // extern "C"
