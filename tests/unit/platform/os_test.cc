#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "platform/os/civil_time.h"
#include "platform/os/clock.h"
#include "platform/os/huge_pages.h"
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

TEST(Pages_ReserveHuge, Pages_BeginAtAHugeOneAndAreNoMoreThanAsked) {
  const uint64_t huge = HugePageBytes();
  for (const uint64_t bytes : {uint64_t{5}, huge, 3 * huge + 1, 4 * huge + 123456}) {
    if (bytes == 0) continue;
    Result<Span<std::byte>> pages = ReserveHugePages(bytes);
    ASSERT_TRUE(pages.ok());
    const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    EXPECT_EQ((bytes + page - 1) / page * page, pages.value().size());
    if (huge != 0 && bytes >= huge) {
      EXPECT_EQ(0u, reinterpret_cast<uintptr_t>(pages.value().data()) % huge);
    }
    pages.value()[static_cast<size_t>(bytes) - 1] = std::byte{7};
    ProtectPages(pages.value());
    EXPECT_EQ(std::byte{7}, pages.value()[static_cast<size_t>(bytes) - 1]);
    PageCounts counts;
    if (CountPages({pages.value().data(), pages.value().size()}, &counts)) {
#ifndef ARN_EMULATED  // qemu's /proc/self/smaps says 0 everywhere
      EXPECT_GE(counts.resident_bytes, page);
#endif
      EXPECT_LE(counts.resident_bytes, pages.value().size());
      EXPECT_LE(counts.huge_bytes, counts.resident_bytes);
    }
    ReleasePages(pages.value());
  }
  EXPECT_EQ(Status::kOutOfMemory, ReserveHugePages(0).status());
  EXPECT_EQ(Status::kOutOfMemory, ReserveHugePages(UINT64_MAX - 5).status());
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

#ifndef ARN_EMULATED  // qemu's /proc/self/smaps says 0 everywhere
TEST(Pages_ForgetAround, PartOfAMapping_DropsItsSurroundingsOnly) {
  constexpr size_t kMiB = size_t{1} << 20;
  TempFile temp(std::string(12 * kMiB, 'r'));
  MappedFile file;
  Diag diag;
  ASSERT_EQ(Status::kOk, MapPath(temp.path(), &file, &diag)) << diag.text();
  const auto read_all = [&] {
    size_t n = 0;
    for (const std::byte b : file.bytes) n += b == std::byte{'r'};
    return n;
  };
  ASSERT_EQ(file.bytes.size(), read_all());
  PageCounts counts;
  if (!CountPages(file.bytes, &counts)) GTEST_SKIP() << "pages are not counted on this system";
  ASSERT_EQ(12 * kMiB, counts.resident_bytes);
  // What a row may have brought: up to 2 MiB on either side, in the middle and at the ends.
  const std::pair<size_t, size_t> cases[] = {{6 * kMiB, 8}, {0, 10}, {12 * kMiB - 8192, 10}};
  for (const auto& [at, left_mib] : cases) {
    ASSERT_EQ(file.bytes.size(), read_all());
    ForgetPagesAround(file.bytes.subspan(at, 4096), file.bytes);
    ASSERT_TRUE(CountPages(file.bytes, &counts));
    EXPECT_LE(counts.resident_bytes, left_mib * kMiB) << at;
    // A huge page is dropped whole.
    EXPECT_GE(counts.resident_bytes + 4 * kMiB, left_mib * kMiB) << at;
  }
  EXPECT_EQ(file.bytes.size(), read_all());
  UnmapFile(&file);
}
#endif

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

// The files are sparse: they use one page of disk.
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

TEST(CalendarTime_Of, SecondsOfManyCenturies_AreTheDaysOfTheGregorianCalendar) {
  const auto text = [](int64_t seconds) {
    const CalendarTime t = CalendarTimeOf(seconds, 123456789);
    EXPECT_EQ(123456u, t.microsecond);
    char out[64];
    std::snprintf(out, sizeof out, "%d-%02d-%02d %02d:%02d:%02d", t.year, t.month, t.day, t.hour,
                  t.minute, t.second);
    return std::string(out);
  };
  EXPECT_EQ("1970-01-01 00:00:00", text(0));
  EXPECT_EQ("1969-12-31 23:59:59", text(-1));
  EXPECT_EQ("2000-02-29 12:34:56", text(951827696));
  EXPECT_EQ("2001-09-09 01:46:40", text(1000000000));
  EXPECT_EQ("2038-01-19 03:14:08", text(int64_t{1} << 31));
  EXPECT_EQ("2100-03-01 00:00:00", text(4107542400));
  EXPECT_GE(ReadUtcTime().year, 2024);
}

TEST(MappedFile_MapFd, HugePagesOfTheFile_LieAtHugePages) {
  const uint64_t huge = HugePageBytes();
  if (huge == 0) GTEST_SKIP() << "this system has no huge pages";
  TempFile temp("");
  const int fd = open(temp.path(), O_RDWR);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(ftruncate(fd, static_cast<off_t>(5 * huge)), 0);
  ASSERT_EQ(pwrite(fd, "here", 4, static_cast<off_t>(2 * huge)), 4);
  for (const uint64_t offset : {uint64_t{0}, uint64_t{16384}, huge + 49152}) {
    MappedFile file;
    Diag diag;
    ASSERT_EQ(Status::kOk, MapFd(fd, offset, 0, &file, &diag)) << diag.text();
    EXPECT_EQ(offset % huge, reinterpret_cast<uintptr_t>(file.bytes.data()) % huge);
    EXPECT_EQ(5 * huge - offset, file.bytes.size());
    AskForHugePages(file.bytes);
    EXPECT_EQ(std::byte{'h'}, file.bytes[static_cast<size_t>(2 * huge - offset)]);
    UnmapFile(&file);
    ASSERT_EQ(Status::kOk, MapFd(fd, offset, 0, &file, &diag)) << diag.text();
    MoveToHugePages(fd, offset, file.bytes);
    EXPECT_EQ(std::byte{'h'}, file.bytes[static_cast<size_t>(2 * huge - offset)]);
    UnmapFile(&file);
  }
  close(fd);
}

TEST(MappedFile_ReadFd, RangeBehindTheEnd_IsTruncated) {
  TempFile temp("0123456789");
  const int fd = open(temp.path(), O_RDONLY);
  std::byte out[8];
  Diag diag;
  ASSERT_EQ(Status::kOk, ReadFd(fd, 2, out, &diag));
  EXPECT_EQ(std::byte{'9'}, out[7]);
  EXPECT_EQ(Status::kBundleTruncated, ReadFd(fd, 3, out, &diag));
  EXPECT_NE(nullptr, strstr(diag.text(), "10"));
  close(fd);
  EXPECT_EQ(Status::kIo, ReadFd(fd, 3, out, &diag));
}

TEST(Clock_Monotonic, NeverGoesBack) {
  uint64_t last = MonotonicNs();
  for (int i = 0; i < 1000; ++i) {
    const uint64_t now = MonotonicNs();
    ASSERT_GE(now, last);
    last = now;
  }
}

// Sets the capacities of CPUs 0, 1, ...; all except `forbidden` may be used.
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
