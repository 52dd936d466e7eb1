// FreeMemory over made-up systems.
#include "tools/arenite/free_memory.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/tiny_checkpoint.h"

namespace arn::test {
namespace {

class FreeMemoryTest : public testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = folder_.path() / path;
    std::filesystem::create_directories(file.parent_path());
    WriteFile(file, text);
  }
  void Group(const std::string& path, const std::string& limit, const std::string& used) {
    const std::string group = "sys/fs/cgroup" + path;
    Write(group + "/memory.max", limit + "\n");
    Write(group + "/memory.current", used + "\n");
    Write(group + "/memory.stat", "anon 7\nfile 500\ninactive_file 100\nactive_file 200\n");
  }
  uint64_t Free() { return tool::FreeMemory(folder_.path().string()); }

  TempFolder folder_;
};

TEST_F(FreeMemoryTest, NothingIsKnown_IsUnlimited) { EXPECT_EQ(UINT64_MAX, Free()); }

TEST_F(FreeMemoryTest, IsTheLeastOfSystemAndGroups) {
  Write("proc/meminfo", "MemTotal: 9000 kB\nMemFree: 10 kB\nMemAvailable:    4000 kB\n");
  EXPECT_EQ(4000u * 1024, Free());
  Write("proc/self/cgroup", "1:name=systemd:/x\n0::/user/app\n");
  Group("/user/app", "max", "5000000");
  EXPECT_EQ(4000u * 1024, Free());
  Group("/user", "3000000", "2000000");
  EXPECT_EQ(1'000'300u, Free());  // page cache counts as free
  Group("/user/app", "400000", "399900");
  EXPECT_EQ(400u, Free());
  Group("/user/app", "400000", "500000");  // a limit that was lowered
  EXPECT_EQ(0u, Free());
}

// In a container the mount is the process's group.
TEST_F(FreeMemoryTest, TheMountsRootCounts) {
  Write("proc/self/cgroup", "0::/../outside\n");
  Group("", "1000", "600");
  EXPECT_EQ(700u, Free());
}

}  // namespace
}  // namespace arn::test
