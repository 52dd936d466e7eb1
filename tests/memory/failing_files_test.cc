// Every system call of a save fails once, with each error a disk gives: the old file stays, nothing
// is left beside it, and the next save works. The calls are replaced at link time.
#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
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

int g_countdown = -1;  // the n-th call from now fails
int g_error = 0;
bool g_is_short = false;  // writes put down half of what they are asked

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
int fsync(int fd) { return FailsNow() ? -1 : static_cast<int>(syscall(SYS_fsync, fd)); }
int ftruncate(int fd, off_t bytes) noexcept {
  return FailsNow() ? -1 : static_cast<int>(syscall(SYS_ftruncate, fd, bytes));
}
int rename(const char* from, const char* to) noexcept {
  if (FailsNow()) return -1;
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
  ~FailingFiles() override { std::filesystem::remove_all(folder_); }

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
      // The last call syncs the folder: the new file has its name by then.
      if (Contents() != old) {
        EXPECT_EQ(ARN_OK, arn_session_restore(session_.get(), path_.c_str(), nullptr));
      }
    }
    EXPECT_GE(failures, 6);  // truncate, some writes, sync, rename, sync
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

}  // namespace
}  // namespace arn::test
