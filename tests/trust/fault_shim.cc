// Fails the n-th call of a class of library calls in any process that preloads it, the calls of its
// third parties included, and counts what the process holds. Allocates nothing and calls nothing
// that does: it works inside malloc. Passes calls on as system calls, or to the next library.
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tests/trust/fault_control.h"

extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* block, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void* block);
}

namespace {

using arn::test::FaultControl;

constexpr unsigned kErrorSeen = 0x20;  // glibc's flag of a FILE, which ferror() reads

FaultControl g_unshared = {};
FaultControl* g_control = &g_unshared;

template <typename T>
T Load(const T& field) {
  return __atomic_load_n(&field, __ATOMIC_ACQUIRE);
}

// Counts a call. Returns the error with which it fails; 0: it does not.
uint64_t FaultOf(uint64_t fault_class) {
  if (Load(g_control->fault_class) != fault_class) return 0;
  const uint64_t call = __atomic_add_fetch(&g_control->calls, 1, __ATOMIC_ACQ_REL);
  const uint64_t at = Load(g_control->at);
  if (at == 0 || call < at || (call > at && Load(g_control->is_forever) == 0)) return 0;
  __atomic_add_fetch(&g_control->failures, 1, __ATOMIC_ACQ_REL);
  return Load(g_control->error);
}

// The same for calls that cannot be short. Sets errno.
bool Fails(uint64_t fault_class) {
  const uint64_t error = FaultOf(fault_class);
  if (error == 0 || error == arn::test::kFaultShort) return false;
  errno = static_cast<int>(error);
  return true;
}

// For calls that move bytes. Halves *bytes if the call is to be short.
bool FailsOrIsShort(uint64_t fault_class, size_t* bytes) {
  const uint64_t error = FaultOf(fault_class);
  if (error == 0) return false;
  if (error == arn::test::kFaultShort) {
    *bytes -= *bytes / 2;
    return false;
  }
  errno = static_cast<int>(error);
  return true;
}

// Streams retry interrupted calls themselves: EINTR does not reach their callers.
bool StreamFails(uint64_t fault_class, FILE* file) {
  if (Load(g_control->error) == EINTR || !Fails(fault_class)) return false;
  if (file != nullptr) file->_flags |= static_cast<int>(kErrorSeen);
  return true;
}

void* Counted(void* block) {
  if (block != nullptr) __atomic_add_fetch(&g_control->blocks, 1, __ATOMIC_RELAXED);
  return block;
}

void AddMapped(size_t bytes, bool is_added) {
  const int64_t rounded = static_cast<int64_t>((bytes + 4095) & ~size_t{4095});
  __atomic_add_fetch(&g_control->mapped, is_added ? rounded : -rounded, __ATOMIC_RELAXED);
}

template <typename F>
F Next(const char* name) {
  return reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
}

// The next library's functions are looked up before the first call can fail.
struct NextFunctions {
  decltype(&pthread_create) create_thread;
  decltype(&fopen) open_stream;
  decltype(&fdopen) stream_of;
  decltype(&fread) read_stream;
  decltype(&fgets) read_line;
  decltype(&fwrite) write_stream;
  decltype(&fflush) flush;
  decltype(&opendir) open_folder;
};
NextFunctions g_next = {};

__attribute__((constructor)) void Begin() {
  g_next = {Next<decltype(&pthread_create)>("pthread_create"),
            Next<decltype(&fopen)>("fopen"),
            Next<decltype(&fdopen)>("fdopen"),
            Next<decltype(&fread)>("fread"),
            Next<decltype(&fgets)>("fgets"),
            Next<decltype(&fwrite)>("fwrite"),
            Next<decltype(&fflush)>("fflush"),
            Next<decltype(&opendir)>("opendir")};
  const char* path = getenv(arn::test::kFaultVariable);
  if (path == nullptr) return;
  const long fd = syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0);
  if (fd < 0) return;
  const long at = syscall(SYS_mmap, nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  syscall(SYS_close, fd);
  if (at == -1) return;
  FaultControl* const shared = reinterpret_cast<FaultControl*>(at);
  __atomic_store_n(&shared->is_loaded, 1, __ATOMIC_RELEASE);
  g_control = shared;
}

int OpenAt(int folder, const char* path, int flags, mode_t mode) {
  if (Fails(arn::test::kFaultOpen)) return -1;
  return static_cast<int>(syscall(SYS_openat, folder, path, flags, mode));
}

mode_t ModeOf(int flags, va_list arguments) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
}

}  // namespace

extern "C" {

// ---- memory

void* malloc(size_t bytes) {
  return Fails(arn::test::kFaultMemory) ? nullptr : Counted(__libc_malloc(bytes));
}
void* calloc(size_t count, size_t bytes) {
  return Fails(arn::test::kFaultMemory) ? nullptr : Counted(__libc_calloc(count, bytes));
}
void* realloc(void* block, size_t bytes) {
  if (Fails(arn::test::kFaultMemory)) return nullptr;
  void* const moved = __libc_realloc(block, bytes);
  if (block == nullptr) return Counted(moved);
  if (moved == nullptr && bytes == 0) __atomic_sub_fetch(&g_control->blocks, 1, __ATOMIC_RELAXED);
  return moved;
}
void* memalign(size_t alignment, size_t bytes) {
  return Fails(arn::test::kFaultMemory) ? nullptr : Counted(__libc_memalign(alignment, bytes));
}
void* aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }
int posix_memalign(void** out, size_t alignment, size_t bytes) {
  const int before = errno;
  void* const block = memalign(alignment, bytes);
  errno = before;
  if (block == nullptr) return ENOMEM;
  *out = block;
  return 0;
}
void free(void* block) {
  if (block != nullptr) __atomic_sub_fetch(&g_control->blocks, 1, __ATOMIC_RELAXED);
  __libc_free(block);
}

// ---- maps

void* mmap(void* at, size_t bytes, int protection, int flags, int fd, off_t offset) {
  if (Fails(arn::test::kFaultMap)) return MAP_FAILED;
  void* const mapped =
      reinterpret_cast<void*>(syscall(SYS_mmap, at, bytes, protection, flags, fd, offset));
  if (mapped != MAP_FAILED && (flags & MAP_FIXED) == 0) AddMapped(bytes, true);
  return mapped;
}
void* mmap64(void* at, size_t bytes, int protection, int flags, int fd, off_t offset) {
  return mmap(at, bytes, protection, flags, fd, offset);
}
int munmap(void* at, size_t bytes) {
  const long result = syscall(SYS_munmap, at, bytes);
  if (result == 0) AddMapped(bytes, false);
  return static_cast<int>(result);
}

// ---- hints

int madvise(void* at, size_t bytes, int advice) {
  if (Fails(arn::test::kFaultHint)) return -1;
  return static_cast<int>(syscall(SYS_madvise, at, bytes, advice));
}
int posix_fadvise(int fd, off_t offset, off_t bytes, int advice) {
  if (Fails(arn::test::kFaultHint)) return errno;
  return syscall(SYS_fadvise64, fd, offset, bytes, advice) == 0 ? 0 : errno;
}
int mincore(void* at, size_t bytes, unsigned char* out) {
  if (Fails(arn::test::kFaultHint)) return -1;
  return static_cast<int>(syscall(SYS_mincore, at, bytes, out));
}
int mlock(const void* at, size_t bytes) {
  if (Fails(arn::test::kFaultHint)) return -1;
  return static_cast<int>(syscall(SYS_mlock, at, bytes));
}
int sync_file_range(int fd, off_t offset, off_t bytes, unsigned flags) {
  if (Fails(arn::test::kFaultHint)) return -1;
  return static_cast<int>(syscall(SYS_sync_file_range, fd, offset, bytes, flags));
}

// ---- open

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = ModeOf(flags, arguments);
  va_end(arguments);
  return OpenAt(AT_FDCWD, path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = ModeOf(flags, arguments);
  va_end(arguments);
  return OpenAt(AT_FDCWD, path, flags, mode);
}
int openat(int folder, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = ModeOf(flags, arguments);
  va_end(arguments);
  return OpenAt(folder, path, flags, mode);
}
int openat64(int folder, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = ModeOf(flags, arguments);
  va_end(arguments);
  return OpenAt(folder, path, flags, mode);
}
FILE* fopen(const char* path, const char* mode) {
  return StreamFails(arn::test::kFaultOpen, nullptr) ? nullptr : g_next.open_stream(path, mode);
}
FILE* fopen64(const char* path, const char* mode) { return fopen(path, mode); }
FILE* fdopen(int fd, const char* mode) noexcept {
  return StreamFails(arn::test::kFaultOpen, nullptr) ? nullptr : g_next.stream_of(fd, mode);
}
DIR* opendir(const char* path) {
  return StreamFails(arn::test::kFaultOpen, nullptr) ? nullptr : g_next.open_folder(path);
}

// ---- metadata

int stat(const char* path, struct stat* out) noexcept {
  if (Fails(arn::test::kFaultStat)) return -1;
  return static_cast<int>(syscall(SYS_newfstatat, AT_FDCWD, path, out, 0));
}
int lstat(const char* path, struct stat* out) noexcept {
  if (Fails(arn::test::kFaultStat)) return -1;
  return static_cast<int>(syscall(SYS_newfstatat, AT_FDCWD, path, out, AT_SYMLINK_NOFOLLOW));
}
int fstat(int fd, struct stat* out) noexcept {
  if (Fails(arn::test::kFaultStat)) return -1;
  return static_cast<int>(syscall(SYS_fstat, fd, out));
}
ssize_t readlink(const char* path, char* out, size_t bytes) noexcept {
  if (Fails(arn::test::kFaultStat)) return -1;
  return syscall(SYS_readlinkat, AT_FDCWD, path, out, bytes);
}
int flock(int fd, int operation) noexcept {
  if (Fails(arn::test::kFaultStat)) return -1;
  return static_cast<int>(syscall(SYS_flock, fd, operation));
}

// ---- read

ssize_t read(int fd, void* out, size_t bytes) {
  if (FailsOrIsShort(arn::test::kFaultRead, &bytes)) return -1;
  return syscall(SYS_read, fd, out, bytes);
}
ssize_t pread(int fd, void* out, size_t bytes, off_t offset) {
  if (FailsOrIsShort(arn::test::kFaultRead, &bytes)) return -1;
  return syscall(SYS_pread64, fd, out, bytes, offset);
}
ssize_t pread64(int fd, void* out, size_t bytes, off_t offset) {
  return pread(fd, out, bytes, offset);
}
ssize_t readv(int fd, const iovec* parts, int count) {
  size_t used = static_cast<size_t>(count);
  if (FailsOrIsShort(arn::test::kFaultRead, &used)) return -1;
  return syscall(SYS_readv, fd, parts, used);
}
size_t fread(void* out, size_t bytes, size_t count, FILE* file) {
  return StreamFails(arn::test::kFaultRead, file) ? 0 : g_next.read_stream(out, bytes, count, file);
}
char* fgets(char* out, int bytes, FILE* file) {
  return StreamFails(arn::test::kFaultRead, file) ? nullptr : g_next.read_line(out, bytes, file);
}

// ---- write

ssize_t write(int fd, const void* data, size_t bytes) {
  if (FailsOrIsShort(arn::test::kFaultWrite, &bytes)) return -1;
  return syscall(SYS_write, fd, data, bytes);
}
ssize_t pwrite(int fd, const void* data, size_t bytes, off_t offset) {
  if (FailsOrIsShort(arn::test::kFaultWrite, &bytes)) return -1;
  return syscall(SYS_pwrite64, fd, data, bytes, offset);
}
ssize_t pwrite64(int fd, const void* data, size_t bytes, off_t offset) {
  return pwrite(fd, data, bytes, offset);
}
ssize_t writev(int fd, const iovec* parts, int count) {
  size_t used = static_cast<size_t>(count);
  if (FailsOrIsShort(arn::test::kFaultWrite, &used)) return -1;
  return syscall(SYS_writev, fd, parts, used);
}
size_t fwrite(const void* data, size_t bytes, size_t count, FILE* file) {
  return StreamFails(arn::test::kFaultWrite, file) ? 0
                                                   : g_next.write_stream(data, bytes, count, file);
}
int fflush(FILE* file) {
  return StreamFails(arn::test::kFaultWrite, file) ? EOF : g_next.flush(file);
}
int ftruncate(int fd, off_t bytes) noexcept {
  if (Fails(arn::test::kFaultWrite)) return -1;
  return static_cast<int>(syscall(SYS_ftruncate, fd, bytes));
}
int ftruncate64(int fd, off_t bytes) noexcept { return ftruncate(fd, bytes); }

// ---- sync, rename, threads

int fsync(int fd) {
  return Fails(arn::test::kFaultSync) ? -1 : static_cast<int>(syscall(SYS_fsync, fd));
}
int fdatasync(int fd) {
  return Fails(arn::test::kFaultSync) ? -1 : static_cast<int>(syscall(SYS_fdatasync, fd));
}
int rename(const char* from, const char* to) noexcept {
  if (Fails(arn::test::kFaultRename)) return -1;
  return static_cast<int>(syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}
int pthread_create(pthread_t* out, const pthread_attr_t* attributes, void* (*run)(void*),
                   void* argument) noexcept {
  if (Fails(arn::test::kFaultThread)) return errno;
  return g_next.create_thread(out, attributes, run, argument);
}

// ---- sockets

int socket(int family, int type, int protocol) noexcept {
  if (Fails(arn::test::kFaultListen)) return -1;
  return static_cast<int>(syscall(SYS_socket, family, type, protocol));
}
int bind(int fd, const sockaddr* address, socklen_t bytes) noexcept {
  if (Fails(arn::test::kFaultListen)) return -1;
  return static_cast<int>(syscall(SYS_bind, fd, address, bytes));
}
int listen(int fd, int backlog) noexcept {
  if (Fails(arn::test::kFaultListen)) return -1;
  return static_cast<int>(syscall(SYS_listen, fd, backlog));
}
int accept4(int fd, sockaddr* address, socklen_t* bytes, int flags) {
  if (Fails(arn::test::kFaultSocket)) return -1;
  return static_cast<int>(syscall(SYS_accept4, fd, address, bytes, flags));
}
ssize_t recv(int fd, void* out, size_t bytes, int flags) {
  if (FailsOrIsShort(arn::test::kFaultSocket, &bytes)) return -1;
  return syscall(SYS_recvfrom, fd, out, bytes, flags, nullptr, nullptr);
}
ssize_t send(int fd, const void* data, size_t bytes, int flags) {
  if (FailsOrIsShort(arn::test::kFaultSocket, &bytes)) return -1;
  return syscall(SYS_sendto, fd, data, bytes, flags, nullptr, 0);
}

}  // extern "C"
