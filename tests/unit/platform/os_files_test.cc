// Files that are replaced atomically, back memory, or are mapped over it.
#include <gtest/gtest.h>
#include <sys/stat.h>
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
  ASSERT_EQ(Status::kOk, BeginReplace(path_.c_str(), 0600, &file, &diag_));
  ASSERT_EQ(Status::kOk, WriteReplace(&file, 4, Bytes("there"), &diag_));
  ASSERT_EQ(Status::kOk, WriteReplace(&file, 0, Bytes("here"), &diag_));
  EXPECT_EQ("old", Contents());
  ASSERT_EQ(Status::kOk, FinishReplace(&file, &diag_)) << diag_.text();
  EXPECT_EQ("herethere", Contents());
  EXPECT_EQ(1u, Files());
}

TEST_F(ReplaceFileTest, Abandoned_NothingIsLeft) {
  ReplaceFile file, second;
  ASSERT_EQ(Status::kOk, BeginReplace(path_.c_str(), 0600, &file, &diag_));
  ASSERT_EQ(Status::kOk, WriteReplace(&file, 0, Bytes("x"), &diag_));
  EXPECT_EQ(Status::kBadState, BeginReplace(path_.c_str(), 0600, &second, &diag_));
  EXPECT_EQ(1u, Files());
  AbandonReplace(&file);
  EXPECT_EQ(0u, Files());
  AbandonReplace(&file);  // a second call is harmless
  ASSERT_EQ(Status::kOk, BeginReplace(path_.c_str(), 0600, &second, &diag_));
  AbandonReplace(&second);
}

TEST_F(ReplaceFileTest, LeftByAKilledProcess_IsEmptiedFirst) {
  std::ofstream(path_ + ".tmp") << std::string(10000, 'x');
  ReplaceFile file;
  ASSERT_EQ(Status::kOk, BeginReplace(path_.c_str(), 0600, &file, &diag_));
  ASSERT_EQ(Status::kOk, WriteReplace(&file, 0, Bytes("new"), &diag_));
  ASSERT_EQ(Status::kOk, FinishReplace(&file, &diag_));
  EXPECT_EQ("new", Contents());
}

TEST_F(ReplaceFileTest, LinkInThePlaceOfTheTemporary_IsNotFollowed) {
  std::ofstream(folder_ / "victim") << "precious";
  fs::create_symlink(folder_ / "victim", path_ + ".tmp");
  ReplaceFile file;
  EXPECT_EQ(Status::kIo, BeginReplace(path_.c_str(), 0600, &file, &diag_));
  EXPECT_EQ(8u, fs::file_size(folder_ / "victim"));
}

TEST_F(ReplaceFileTest, LinkInThePlaceOfTheFile_IsWrittenThrough) {
  fs::create_directories(folder_ / "there");
  std::ofstream(folder_ / "there/real") << "old";
  fs::create_symlink("there/link", path_);
  fs::create_symlink("real", folder_ / "there/link");
  ReplaceFile file;
  ASSERT_EQ(Status::kOk, BeginReplace(path_.c_str(), 0600, &file, &diag_)) << diag_.text();
  EXPECT_EQ((folder_ / "there/real.tmp").string(), file.temporary);
  ASSERT_EQ(Status::kOk, WriteReplace(&file, 0, Bytes("new"), &diag_));
  ASSERT_EQ(Status::kOk, FinishReplace(&file, &diag_)) << diag_.text();
  EXPECT_TRUE(fs::is_symlink(path_));
  EXPECT_TRUE(fs::is_symlink(folder_ / "there/link"));
  EXPECT_EQ("new", Contents());

  // A dangling link creates its target; a link to itself is refused.
  fs::remove(folder_ / "there/real");
  ASSERT_EQ(Status::kOk, BeginReplace(path_.c_str(), 0600, &file, &diag_)) << diag_.text();
  ASSERT_EQ(Status::kOk, FinishReplace(&file, &diag_));
  EXPECT_TRUE(fs::is_regular_file(folder_ / "there/real"));
  fs::create_symlink("circle", folder_ / "circle");
  EXPECT_EQ(Status::kIo, BeginReplace((folder_ / "circle").c_str(), 0600, &file, &diag_));
}

TEST_F(ReplaceFileTest, WhatIsNoRegularFile_IsRefusedAndStays) {
  ReplaceFile file;
  ASSERT_EQ(0, mkfifo(path_.c_str(), 0600));
  fs::create_symlink("/dev/full", folder_ / "device");
  for (const std::string& path :
       {path_, folder_.string(), (folder_ / "device").string(), std::string("/dev/null")}) {
    EXPECT_EQ(Status::kIo, BeginReplace(path.c_str(), 0600, &file, &diag_)) << path;
    EXPECT_NE(nullptr, strstr(diag_.text(), "is not a regular file")) << diag_.text();
  }
  EXPECT_EQ(2u, Files());
  // A temporary path that is not a regular file is refused too.
  ASSERT_EQ(0, mkfifo((folder_ / "new.tmp").c_str(), 0600));
  EXPECT_EQ(Status::kIo, BeginReplace((folder_ / "new").c_str(), 0600, &file, &diag_));
  EXPECT_EQ(3u, Files());
}

TEST_F(ReplaceFileTest, HardLinkInThePlaceOfTheTemporary_KeepsItsContents) {
  std::ofstream(folder_ / "victim") << "precious";
  fs::create_hard_link(folder_ / "victim", path_ + ".tmp");
  ReplaceFile file;
  ASSERT_EQ(Status::kOk, BeginReplace(path_.c_str(), 0600, &file, &diag_)) << diag_.text();
  ASSERT_EQ(Status::kOk, WriteReplace(&file, 0, Bytes("new"), &diag_));
  ASSERT_EQ(Status::kOk, FinishReplace(&file, &diag_));
  EXPECT_EQ(8u, fs::file_size(folder_ / "victim"));
}

using OpenToMapTest = OsFiles;

TEST_F(OpenToMapTest, WhatIsNoRegularFile_IsRefusedAtOnce) {
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(0, mkfifo(pipe.c_str(), 0600));
  int fd = 7;
  EXPECT_EQ(Status::kIo, OpenToMap(pipe.c_str(), &fd, &diag_));
  EXPECT_EQ(-1, fd);
  EXPECT_EQ(pipe.string() + ": is a pipe, not a regular file", diag_.text());
  EXPECT_EQ(Status::kIo, OpenToMap(folder_.c_str(), &fd, &diag_));
  EXPECT_EQ(folder_.string() + ": is a folder, not a regular file", diag_.text());
  EXPECT_EQ(Status::kIo, OpenToMap("/dev/zero", &fd, &diag_));
  EXPECT_STREQ("/dev/zero: is a device, not a regular file", diag_.text());
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
  // One page and a part: the caller copies the part.
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
  // Not page-aligned on either side: the partial page keeps its contents.
  ASSERT_EQ(Status::kOk, DiscardBacking(memory.subspan(page + 1, 2 * page - 1)));
  EXPECT_EQ(std::byte{5}, memory[page]);
  EXPECT_EQ(std::byte{0}, memory[2 * page]);
  CloseBacking(fd);
  ReleasePages(memory);
}

TEST_F(BackingFileTest, WrittenAndDropped_IsReadAheadWithTheSameContents) {
  const auto page = static_cast<size_t>(OsPageBytes());
  constexpr size_t kPages = 256;
  const Span<std::byte> memory = ReservePages(kPages * page).value();
  int fd = -1;
  ASSERT_EQ(Status::kOk, MakeBacking(path_.c_str(), kPages * page, &fd, &diag_)) << diag_.text();
  ASSERT_EQ(Status::kOk, MapBacking(fd, 0, memory, &diag_));
  unsigned char found[kPages];
  const auto count = [&] {
    EXPECT_TRUE(FindResident(memory, found));
    size_t n = 0;
    for (unsigned char f : found) n += f & 1;
    return n;
  };
  EXPECT_EQ(0u, count());
  for (size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::byte>(i / page * 7 + i);
  EXPECT_EQ(kPages, count());
  WriteBacking(fd, 0, memory.size());
  // What is still being written stays.
  size_t left = kPages;
  for (int i = 0; i < 500 && left > 0; ++i) {
    if (i > 0) usleep(1000);
    DropBacking(fd, 0, memory);
    left = count();
  }
  if (left > 0) GTEST_SKIP() << "this system keeps " << left << " pages of " << path_;
  // Part of it, and nothing beside it.
  AskForBacking(fd, 16 * page, 128 * page);
  AwaitBacking(fd, 16 * page, memory.subspan(16 * page, 128 * page));
  EXPECT_EQ(128u, count());
  EXPECT_EQ(0, found[15] & 1);
  EXPECT_EQ(1, found[16] & 1);
  size_t n_wrong = 0;
  for (size_t i = 0; i < memory.size(); ++i) {
    n_wrong += memory[i] != static_cast<std::byte>(i / page * 7 + i);
  }
  EXPECT_EQ(0u, n_wrong);
  EXPECT_FALSE(FindResident(memory, Span<unsigned char>(found, kPages - 1)));
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
  RemoveMarker(&second);  // not created by this call: it stays
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
