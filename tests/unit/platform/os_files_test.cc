// Files that replace each other, lie under memory, or are mapped over it.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "platform/os/backing_file.h"
#include "platform/os/mapped_file.h"
#include "platform/os/marker_file.h"
#include "platform/os/pages.h"
#include "platform/os/replace_file.h"

namespace arn {
namespace {

namespace fs = std::filesystem;

class OsFiles : public testing::Test {
 protected:
  OsFiles() {
    char name[] = "/var/tmp/arn_os_files_XXXXXX";
    folder_ = mkdtemp(name);
    path_ = (folder_ / "file").string();
  }
  ~OsFiles() override { fs::remove_all(folder_); }
  static Span<const std::byte> Bytes(const std::string& text) {
    return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
  }
  std::string Contents() const {
    std::ifstream file(path_, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }
  size_t Files() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), {}));
  }

  fs::path folder_;
  std::string path_;
  Diag diag_;
};

using ReplaceFileTest = OsFiles;

TEST_F(ReplaceFileTest, AnyOrder_TakesThePlaceAtTheEnd) {
  std::ofstream(path_) << "old";
  ReplaceFile file;
  ASSERT_EQ(Status::kOk, BeginReplace(path_.c_str(), &file, &diag_));
  ASSERT_EQ(Status::kOk, WriteReplace(&file, 4, Bytes("there"), &diag_));
  ASSERT_EQ(Status::kOk, WriteReplace(&file, 0, Bytes("here"), &diag_));
  EXPECT_EQ("old", Contents());
  ASSERT_EQ(Status::kOk, FinishReplace(&file, &diag_)) << diag_.text();
  EXPECT_EQ("herethere", Contents());
  EXPECT_EQ(1u, Files());
}

TEST_F(ReplaceFileTest, Abandoned_NothingIsLeft) {
  ReplaceFile file, second;
  ASSERT_EQ(Status::kOk, BeginReplace(path_.c_str(), &file, &diag_));
  ASSERT_EQ(Status::kOk, WriteReplace(&file, 0, Bytes("x"), &diag_));
  EXPECT_EQ(Status::kBadState, BeginReplace(path_.c_str(), &second, &diag_));
  EXPECT_EQ(1u, Files());
  AbandonReplace(&file);
  EXPECT_EQ(0u, Files());
  AbandonReplace(&file);  // twice does no harm
  ASSERT_EQ(Status::kOk, BeginReplace(path_.c_str(), &second, &diag_));
  AbandonReplace(&second);
}

TEST_F(ReplaceFileTest, LeftByAKilledProcess_IsEmptiedFirst) {
  std::ofstream(path_ + ".tmp") << std::string(10000, 'x');
  ReplaceFile file;
  ASSERT_EQ(Status::kOk, BeginReplace(path_.c_str(), &file, &diag_));
  ASSERT_EQ(Status::kOk, WriteReplace(&file, 0, Bytes("new"), &diag_));
  ASSERT_EQ(Status::kOk, FinishReplace(&file, &diag_));
  EXPECT_EQ("new", Contents());
}

TEST_F(ReplaceFileTest, LinkInThePlaceOfTheTemporary_IsNotFollowed) {
  std::ofstream(folder_ / "victim") << "precious";
  fs::create_symlink(folder_ / "victim", path_ + ".tmp");
  ReplaceFile file;
  EXPECT_EQ(Status::kIo, BeginReplace(path_.c_str(), &file, &diag_));
  EXPECT_EQ(8u, fs::file_size(folder_ / "victim"));
}

using MapCopyTest = OsFiles;

TEST_F(MapCopyTest, WholePages_AreMappedAndWritesStayPrivate) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  std::ofstream(path_) << std::string(page, 'a') << std::string(page, 'b') << "tail";
  const Span<std::byte> memory = ReservePages(4 * page).value();
  int fd = -1;
  ASSERT_EQ(Status::kOk, OpenToMap(path_.c_str(), &fd, &diag_));
  std::memset(memory.data(), 'z', memory.size());
  EXPECT_EQ(0u, MapCopy(fd, 1, memory.subspan(0, page)));
  EXPECT_EQ(0u, MapCopy(fd, 0, memory.subspan(1, page)));
  EXPECT_EQ(0u, MapCopy(fd, 0, memory.subspan(0, page - 1)));
  EXPECT_EQ(0u, MapCopy(-1, 0, memory.subspan(0, page)));
  EXPECT_EQ(std::byte{'z'}, memory[0]);
  // A page and a part: the part is left to the caller.
  EXPECT_EQ(page, MapCopy(fd, page, memory.subspan(page, page + 4)));
  CloseMapped(fd);
  EXPECT_EQ(std::byte{'z'}, memory[page - 1]);
  EXPECT_EQ(std::byte{'b'}, memory[page]);
  EXPECT_EQ(std::byte{'b'}, memory[2 * page - 1]);
  EXPECT_EQ(std::byte{'z'}, memory[2 * page]);
  memory[page] = std::byte{'c'};
  EXPECT_EQ('b', Contents()[page]);
  ReleasePages(memory);
}

using BackingFileTest = OsFiles;

TEST_F(BackingFileTest, Mapped_HoldsWhatIsWrittenAndTheNameIsGone) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const Span<std::byte> memory = ReservePages(4 * page).value();
  int fd = -1;
  ASSERT_EQ(Status::kOk, MakeBacking(path_.c_str(), 4 * page, &fd, &diag_)) << diag_.text();
  EXPECT_EQ(0u, Files());
  ASSERT_EQ(Status::kOk, MapBacking(fd, page, memory.subspan(page, 2 * page), &diag_));
  memory[page] = std::byte{5};
  memory[2 * page] = std::byte{6};
  std::byte found[1];
  ASSERT_EQ(1, pread(fd, found, 1, static_cast<off_t>(page)));
  EXPECT_EQ(std::byte{5}, found[0]);
  // Not page-aligned on either side: the page that is only touched keeps its contents.
  ASSERT_EQ(Status::kOk, DiscardBacking(memory.subspan(page + 1, 2 * page - 1)));
  EXPECT_EQ(std::byte{5}, memory[page]);
  EXPECT_EQ(std::byte{0}, memory[2 * page]);
  CloseBacking(fd);
  ReleasePages(memory);
}

TEST_F(BackingFileTest, WhatIsThereAlready_IsLeftAlone) {
  std::ofstream(path_) << "precious";
  int fd = 7;
  EXPECT_EQ(Status::kIo, MakeBacking(path_.c_str(), 4096, &fd, &diag_));
  EXPECT_EQ(-1, fd);
  EXPECT_EQ("precious", Contents());
}

TEST_F(BackingFileTest, MoreThanTheDiskHas_IsDiskFull) {
  int fd = -1;
  EXPECT_EQ(Status::kDiskFull, MakeBacking(path_.c_str(), uint64_t{1} << 55, &fd, &diag_));
  EXPECT_EQ(0u, Files());
}

using MarkerFileTest = OsFiles;

TEST_F(MarkerFileTest, MakeMarker_HeldLeftOrRemoved_EachIsTold) {
  MarkerFile first, second;
  ASSERT_EQ(Marking::kMade, MakeMarker(path_.c_str(), &first));
  EXPECT_EQ(Marking::kHeld, MakeMarker(path_.c_str(), &second));
  RemoveMarker(&second);  // not ours: it stays
  EXPECT_EQ(0, access(path_.c_str(), F_OK));
  RemoveMarker(&first);
  EXPECT_NE(0, access(path_.c_str(), F_OK));
  const pid_t child = fork();
  if (child == 0) _exit(MakeMarker(path_.c_str(), &first) == Marking::kMade ? 0 : 1);
  int ended = -1;
  ASSERT_EQ(child, waitpid(child, &ended, 0));
  ASSERT_EQ(0, ended);
  EXPECT_EQ(Marking::kLeft, MakeMarker(path_.c_str(), &first));
  EXPECT_EQ(Marking::kLeft, MakeMarker(path_.c_str(), &first));
  EXPECT_EQ(Marking::kFailed, MakeMarker((folder_ / "none" / "mark").c_str(), &first));
}

}  // namespace
}  // namespace arn
