// Fails each system call of a save once, with every error a disk gives: the old file stays, no
// temporary file is left, and the next save works. Also interrupts each system call with a signal.
// The calls are replaced at link time.
#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdarg.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/support/session_support.h"
#include "tests/support/state_support.h"

namespace {

int g_countdown = -1;  // calls left before one fails; negative: none fails
int g_error = 0;
bool g_is_short = false;    // pwrite() writes half of the bytes
bool g_is_watched = false;  // open() and flock() fail too
int g_lock_error = 0;       // error of every flock()
bool g_has_numbers = true;  // inode numbers are stable
int g_folder_error = 0;     // error of fsync() on a folder

bool FailsNow() {
  if (g_countdown < 0 || g_countdown-- > 0) return false;
  errno = g_error;
  return true;
}

}  // namespace

extern "C" {
ssize_t pwrite(int fd, const void* data, size_t bytes, off_t offset) {
  if (FailsNow()) return -1;
  if (g_is_short && bytes > 1) bytes /= 2;
  return syscall(SYS_pwrite64, fd, data, bytes, offset);
}
ssize_t pwrite64(int fd, const void* data, size_t bytes, off_t offset) {
  return pwrite(fd, data, bytes, offset);
}
int fsync(int fd) {
  struct stat info;
  if (g_folder_error != 0 && fstat(fd, &info) == 0 && S_ISDIR(info.st_mode)) {
    errno = g_folder_error;
    return -1;
  }
  return FailsNow() ? -1 : static_cast<int>(syscall(SYS_fsync, fd));
}
int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  if (g_is_watched && FailsNow()) return -1;
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}
int flock(int fd, int operation) noexcept {
  if (g_lock_error != 0) {
    errno = g_lock_error;
    return -1;
  }
  if (g_is_watched && FailsNow()) return -1;
  return static_cast<int>(syscall(SYS_flock, fd, operation));
}
int lstat(const char* path, struct stat* out) noexcept {
  static ino_t shift = 0;
  const int result = fstatat(AT_FDCWD, path, out, AT_SYMLINK_NOFOLLOW);
  if (!g_has_numbers) out->st_ino += ++shift;
  return result;
}
int ftruncate(int fd, off_t bytes) noexcept {
  return FailsNow() ? -1 : static_cast<int>(syscall(SYS_ftruncate, fd, bytes));
}
int rename(const char* from, const char* to) noexcept {
  if (g_error != EINTR && FailsNow()) return -1;  // rename() is not interrupted by signals
  return static_cast<int>(syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}
}

namespace arn::test {
namespace {

class FailingFiles : public testing::Test {
 protected:
  FailingFiles() : bytes_(MakeTinyBundle(TinyBundle())), model_(OpenBytes(bytes_)) {
    char name[] = "/tmp/arn_failing_XXXXXX";
    folder_ = mkdtemp(name);
    path_ = folder_ / "chat.state";
    arn_session_options options = ARN_SESSION_OPTIONS_INIT;
    options.n_threads = 1;
    session_ = NewSession(model_.get(), options);
    Greedy(session_.get(), SomeIds(150, 61), 3);
  }
  ~FailingFiles() override {
    g_countdown = -1;
    g_is_watched = false;
    g_has_numbers = true;
    g_lock_error = g_folder_error = 0;
    std::filesystem::remove_all(folder_);
  }

  std::string Contents() const {
    std::ifstream file(path_, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }
  size_t Files() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder_), {}));
  }

  BundleBytes bytes_;
  ModelPtr model_;
  SessionPtr session_;
  std::filesystem::path folder_, path_;
};

TEST_F(FailingFiles, EachCallFailsOnce_TheOldFileStays) {
  struct Failure {
    int error;
    arn_status status;
  };
  for (const auto& [error, status] :
       {Failure{ENOSPC, ARN_DISK_FULL}, Failure{EDQUOT, ARN_DISK_FULL}, Failure{EIO, ARN_IO}}) {
    ASSERT_EQ(ARN_OK, arn_session_save(session_.get(), path_.c_str()));
    const std::string old = Contents();
    Decode(session_.get(), 1);
    g_is_watched = true;
    int failures = 0;
    for (;; ++failures) {
      ASSERT_LT(failures, 100);
      g_error = error;
      g_countdown = failures;
      const arn_status found = arn_session_save(session_.get(), path_.c_str());
      g_countdown = -1;
      ASSERT_EQ(1u, Files()) << failures;
      if (found == ARN_OK) break;
      ASSERT_EQ(status, found) << failures;
      EXPECT_NE(std::string::npos,
                std::string(arn_session_last_error(session_.get())).find(strerror(error)));
      // The last call syncs the folder, after the rename.
      if (Contents() != old) {
        EXPECT_NE(nullptr,
                  strstr(arn_session_last_error(session_.get()), "new contents are written"));
        EXPECT_EQ(ARN_OK, arn_session_restore(session_.get(), path_.c_str(), nullptr));
      }
    }
    EXPECT_GE(failures, 7);  // create, lock, some writes, open the folder, sync, rename, sync
    EXPECT_NE(old, Contents());
    EXPECT_EQ(ARN_OK, arn_session_restore(session_.get(), path_.c_str(), nullptr));
  }
}

TEST_F(FailingFiles, WithoutAnOldFile_NothingIsLeft) {
  g_error = ENOSPC;
  g_countdown = 2;
  EXPECT_EQ(ARN_DISK_FULL, arn_session_save(session_.get(), path_.c_str()));
  g_countdown = -1;
  EXPECT_EQ(0u, Files());
}

TEST_F(FailingFiles, ShortAndInterruptedWrites_AreContinued) {
  g_is_short = true;
  g_error = EINTR;
  g_countdown = 3;
  EXPECT_EQ(ARN_OK, arn_session_save(session_.get(), path_.c_str()));
  g_is_short = false;
  g_countdown = -1;
  const std::string contents = Contents();
  const std::vector<uint8_t> expected = Save(session_.get());
  EXPECT_EQ(std::string(expected.begin(), expected.end()), contents);
}

TEST_F(FailingFiles, EachCallIsInterruptedOnce_ItIsCalledAgain) {
  g_is_watched = true;
  g_error = EINTR;
  for (int n = 0; n < 20; ++n) {
    g_countdown = n;
    EXPECT_EQ(ARN_OK, arn_session_save(session_.get(), path_.c_str()))
        << n << ": " << arn_session_last_error(session_.get());
    if (n < 1) {
      g_countdown = n;
      EXPECT_EQ(ARN_OK, arn_session_restore(session_.get(), path_.c_str(), nullptr));
    }
  }
  EXPECT_GE(g_countdown, 0);  // more than the number of calls
  g_countdown = -1;
}

TEST_F(FailingFiles, NoLocks_IsSaidAndNothingIsLeft) {
  g_lock_error = ENOLCK;
  EXPECT_EQ(ARN_IO, arn_session_save(session_.get(), path_.c_str()));
  EXPECT_NE(nullptr, strstr(arn_session_last_error(session_.get()), strerror(ENOLCK)));
  EXPECT_EQ(0u, Files());
}

TEST_F(FailingFiles, FilesWithoutLastingNumbers_AreSavedOrGivenUp) {
  g_has_numbers = false;
  EXPECT_EQ(ARN_OK, arn_session_save(session_.get(), path_.c_str()));
  EXPECT_EQ(1u, Files());
  // Without stable inode numbers a leftover file cannot be told from the opened one.
  std::ofstream(path_.string() + ".tmp") << "left";
  EXPECT_EQ(ARN_IO, arn_session_save(session_.get(), path_.c_str()));
  EXPECT_EQ(2u, Files());
}

TEST_F(FailingFiles, FolderIsNotSynced_SaysThatTheFileIsThere) {
  g_folder_error = EIO;
  EXPECT_EQ(ARN_IO, arn_session_save(session_.get(), path_.c_str()));
  EXPECT_NE(nullptr, strstr(arn_session_last_error(session_.get()), "new contents are written"));
  g_folder_error = EINVAL;  // a file system without fsync() on folders
  EXPECT_EQ(ARN_OK, arn_session_save(session_.get(), path_.c_str()));
  g_folder_error = 0;
  EXPECT_EQ(ARN_OK, arn_session_restore(session_.get(), path_.c_str(), nullptr));
}

}  // namespace
}  // namespace arn::test
