#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "platform/os/clock.h"
#include "platform/os/mapped_file.h"
#include "platform/os/pages.h"
#include "platform/os/topology.h"

namespace arn {
namespace {

class TempFile {
 public:
  explicit TempFile(const std::string& contents) {
    char name[] = "/tmp/arn_os_test_XXXXXX";
    const int fd = mkstemp(name);
    EXPECT_GE(fd, 0);
    close(fd);
    path_ = name;
    std::ofstream(path_, std::ios::binary) << contents;
  }
  ~TempFile() { std::remove(path_.c_str()); }
  const char* path() const { return path_.c_str(); }

 private:
  std::string path_;
};

TEST(Pages_Reserve, Fresh_IsZeroAndWritable) {
  Result<Span<std::byte>> pages = ReservePages(100000);
  ASSERT_TRUE(pages.ok());
  ASSERT_GE(pages.value().size(), 100000u);
  for (std::byte b : pages.value()) ASSERT_EQ(std::byte{0}, b);
  for (std::byte& b : pages.value()) b = std::byte{1};
  ReleasePages(pages.value());
}

TEST(Pages_Reserve, Impossible_IsOutOfMemory) {
  EXPECT_EQ(Status::kOutOfMemory, ReservePages(0).status());
  EXPECT_EQ(Status::kOutOfMemory, ReservePages(UINT64_MAX - 5).status());
  EXPECT_EQ(Status::kOutOfMemory, ReservePages(uint64_t{1} << 60).status());
}

TEST(Pages_Trim, WholePages_BecomeZero) {
  Result<Span<std::byte>> pages = ReservePages(1 << 20);
  ASSERT_TRUE(pages.ok());
  for (std::byte& b : pages.value()) b = std::byte{9};
  // Not page-aligned on either side: the partial pages keep their contents.
  ASSERT_EQ(Status::kOk, TrimPages(pages.value().subspan(1, (1 << 20) - 2)));
  EXPECT_EQ(std::byte{9}, pages.value()[0]);
  EXPECT_EQ(std::byte{9}, pages.value()[(1 << 20) - 1]);
  EXPECT_EQ(std::byte{0}, pages.value()[1 << 19]);
  EXPECT_EQ(Status::kOk, TrimPages(pages.value().subspan(10, 20)));
  ReleasePages(pages.value());
}

Status MapPath(const char* path, MappedFile* out, Diag* diag) {
  int fd = -1;
  ARN_TRY(OpenToMap(path, &fd, diag));
  const Status status = MapFd(fd, 0, 0, out, diag);
  CloseMapped(fd);
  return status;
}

TEST(MappedFile_Map, Path_ShowsTheBytes) {
  const std::string contents(40000, 'q');
  TempFile temp(contents);
  MappedFile file;
  Diag diag;
  ASSERT_EQ(Status::kOk, MapPath(temp.path(), &file, &diag)) << diag.text();
  ASSERT_EQ(contents.size(), file.bytes.size());
  EXPECT_EQ(contents, std::string(reinterpret_cast<const char*>(file.bytes.data()), 40000));
  UnmapFile(&file);
  EXPECT_TRUE(file.bytes.empty());
}

TEST(MappedFile_Map, MissingFile_IsNotFoundWithItsName) {
  MappedFile file;
  Diag diag;
  EXPECT_EQ(Status::kNotFound, MapPath("/nonexistent/x.arn", &file, &diag));
  EXPECT_NE(nullptr, strstr(diag.text(), "/nonexistent/x.arn"));
}

TEST(MappedFile_Map, DirectoryOrEmptyFile_IsAnError) {
  MappedFile file;
  Diag diag;
  EXPECT_EQ(Status::kIo, MapPath("/tmp", &file, &diag));
  TempFile empty("");
  EXPECT_EQ(Status::kBundleTruncated, MapPath(empty.path(), &file, &diag));
}

TEST(MappedFile_MapFd, Range_IsChecked) {
  std::string contents(16384, 'a');
  contents += "tail";
  TempFile temp(contents);
  const int fd = open(temp.path(), O_RDONLY);
  MappedFile file;
  Diag diag;
  EXPECT_EQ(Status::kBadArgument, MapFd(fd, 5, 1, &file, &diag));
  EXPECT_EQ(Status::kBundleTruncated, MapFd(fd, 16384, 5, &file, &diag));
  EXPECT_EQ(Status::kBundleTruncated, MapFd(fd, 16384, UINT64_MAX, &file, &diag));
  EXPECT_EQ(Status::kBundleTruncated, MapFd(fd, 32768, 0, &file, &diag));
  ASSERT_EQ(Status::kOk, MapFd(fd, 16384, 0, &file, &diag)) << diag.text();
  EXPECT_EQ(4u, file.bytes.size());
  UnmapFile(&file);
  close(fd);
  EXPECT_EQ(Status::kIo, MapFd(fd, 0, 0, &file, &diag));
}

// The files are sparse: they take a page of the disk.
TEST(MappedFile_MapFd, BeyondTwoGibibytes_ShowsTheBytes) {
  TempFile temp("");
  const int fd = open(temp.path(), O_RDWR);
  ASSERT_GE(fd, 0);
  constexpr uint64_t kAt = (uint64_t{3} << 30) + 16384;
  ASSERT_EQ(pwrite(fd, "here", 4, static_cast<off_t>(kAt)), 4);
  MappedFile file;
  Diag diag;
  ASSERT_EQ(Status::kOk, MapFd(fd, kAt, 4, &file, &diag)) << diag.text();
  EXPECT_EQ("here", std::string(reinterpret_cast<const char*>(file.bytes.data()), 4));
  UnmapFile(&file);
  close(fd);
}

TEST(MappedFile_Map, MoreThan32BitsAddress_IsOutOfMemoryThere) {
  TempFile temp("");
  const int fd = open(temp.path(), O_RDWR);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(ftruncate(fd, static_cast<off_t>(uint64_t{5} << 30)), 0);
  MappedFile file;
  Diag diag;
  const Status status = MapFd(fd, 0, 0, &file, &diag);
  if (sizeof(void*) == 8) {
    EXPECT_EQ(status, Status::kOk) << diag.text();
  } else {
    EXPECT_EQ(status, Status::kOutOfMemory);
    EXPECT_STREQ(diag.text(), "5368709120 bytes do not fit the address space");
  }
  UnmapFile(&file);
  close(fd);
}

TEST(Clock_Monotonic, NeverGoesBack) {
  uint64_t last = MonotonicNs();
  for (int i = 0; i < 1000; ++i) {
    const uint64_t now = MonotonicNs();
    ASSERT_GE(now, last);
    last = now;
  }
}

// Capacities of the CPUs 0, 1, ...; all but `forbidden` may be used.
std::vector<uint32_t> PerformanceCpus(const std::vector<uint32_t>& capacities, int forbidden = -1) {
  std::vector<uint32_t> all(CpuMask::kMaxCpus, 0);
  CpuMask allowed;
  for (uint32_t cpu = 0; cpu < capacities.size(); ++cpu) {
    all[cpu] = capacities[cpu];
    if (static_cast<int>(cpu) != forbidden) allowed.Add(cpu);
  }
  const CpuMask chosen = SelectPerformanceCpus(allowed, all.data());
  std::vector<uint32_t> cpus;
  for (uint32_t cpu = 0; cpu < CpuMask::kMaxCpus; ++cpu) {
    if (chosen.Has(cpu)) cpus.push_back(cpu);
  }
  EXPECT_EQ(cpus.size(), chosen.count());
  return cpus;
}

TEST(Topology_SelectPerformanceCpus, AreThoseOfHalfTheLargestCapacity) {
  using Cpus = std::vector<uint32_t>;
  EXPECT_EQ(Cpus({4, 5, 6, 7}), PerformanceCpus({250, 250, 250, 250, 780, 780, 780, 1024}));
  EXPECT_EQ(Cpus({7}), PerformanceCpus({160, 160, 160, 160, 500, 500, 500, 1024}));
  EXPECT_EQ(Cpus({4, 5, 6}), PerformanceCpus({160, 160, 160, 160, 500, 500, 500, 1024}, 7))
      << "the largest of those that may be used";
  EXPECT_EQ(Cpus({0, 1, 2}), PerformanceCpus({0, 0, 0})) << "no capacity is known";
  EXPECT_EQ(Cpus({0, 1}), PerformanceCpus({1024, 1024}));
  EXPECT_EQ(Cpus(), PerformanceCpus({}));
}

TEST(Topology_ThreadCpus, AreThoseSetAndInherited) {
  CpuMask before;
  ASSERT_TRUE(GetThreadCpus(&before));
  ASSERT_GE(before.count(), 1u);
  CpuMask one;
  for (uint32_t cpu = 0; one.count() == 0; ++cpu) {
    if (before.Has(cpu)) one.Add(cpu);
  }
  ASSERT_TRUE(SetThreadCpus(one));
  CpuMask inherited;
  std::thread([&] { ASSERT_TRUE(GetThreadCpus(&inherited)); }).join();
  EXPECT_TRUE(inherited == one);
  EXPECT_FALSE(SetThreadCpus(CpuMask())) << "no CPU at all";
  ASSERT_TRUE(SetThreadCpus(before));
}

TEST(Topology_PerformanceCpuCount, IsAtLeastOneAndAtMostAll) {
  EXPECT_GE(PerformanceCpuCount(), 1u);
  EXPECT_LE(PerformanceCpuCount(), static_cast<uint32_t>(sysconf(_SC_NPROCESSORS_CONF)));
}

}  // namespace
}  // namespace arn
