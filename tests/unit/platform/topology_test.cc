// The CPUs of fake devices, and those of this machine.
#include "platform/os/topology.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <thread>

#include "platform/os/thread_pool.h"
#include "tests/support/fake_system.h"

namespace arn {
namespace {

using test::FakeSystem;

CpuMask First(uint32_t n) {
  CpuMask mask;
  for (uint32_t cpu = 0; cpu < n; ++cpu) mask.Add(cpu);
  return mask;
}

// Formats a mask as "0,1,4".
std::string Names(const CpuMask& mask) {
  std::string names;
  for (uint32_t cpu = 0; cpu < CpuMask::kMaxCpus; ++cpu) {
    if (mask.Has(cpu)) names += (names.empty() ? "" : ",") + std::to_string(cpu);
  }
  return names;
}

void Phone(FakeSystem* fake) {
  for (uint32_t cpu = 0; cpu < 8; ++cpu) {
    fake->Cpu(cpu, "cpu_capacity", cpu < 4 ? "325\n" : cpu < 7 ? "871\n" : "1024\n");
    fake->Cpu(cpu, "cpufreq/cpuinfo_max_freq",
              cpu < 4   ? "1800000"
              : cpu < 7 ? "2400000"
                        : "2840000");
    fake->Cpu(cpu, "topology/physical_package_id", "0");
  }
}

TEST(Topology_Clusters, OfAPhone_AreThreeTheLargestFirst) {
  FakeSystem fake;
  Phone(&fake);
  const Topology topology = ReadTopology(fake.root(), First(8));
  EXPECT_EQ("4,5,6,7", Names(topology.performance));
  CpuCluster clusters[kMaxCpuClusters];
  ASSERT_EQ(3u, ReadCpuClusters(fake.root(), topology, clusters));
  EXPECT_EQ("7", Names(clusters[0].cpus));
  EXPECT_EQ("4,5,6", Names(clusters[1].cpus));
  EXPECT_EQ("0,1,2,3", Names(clusters[2].cpus));
  EXPECT_EQ(1024u, clusters[0].capacity);
  EXPECT_EQ(2840000u, clusters[0].max_khz);
  EXPECT_TRUE(clusters[1].is_performance);
  EXPECT_FALSE(clusters[2].is_performance);
}

TEST(Topology_Clusters, OfADesktop_IsOne) {
  FakeSystem fake;
  const Topology topology = ReadTopology(fake.root(), First(6));
  EXPECT_FALSE(topology.is_mixed());
  CpuCluster clusters[kMaxCpuClusters];
  ASSERT_EQ(1u, ReadCpuClusters(fake.root(), topology, clusters));
  EXPECT_EQ("0,1,2,3,4,5", Names(clusters[0].cpus));
  EXPECT_EQ(0u, clusters[0].capacity);
  EXPECT_EQ(-1, clusters[0].package);
}

TEST(Topology_Clusters, OfTwoPackages_AreTwoInTheirOrder) {
  FakeSystem fake;
  for (uint32_t cpu = 0; cpu < 4; ++cpu) {
    fake.Cpu(cpu, "topology/physical_package_id", cpu < 2 ? "0" : "1");
  }
  CpuCluster clusters[kMaxCpuClusters];
  ASSERT_EQ(2u, ReadCpuClusters(fake.root(), ReadTopology(fake.root(), First(4)), clusters));
  EXPECT_EQ("0,1", Names(clusters[0].cpus));
  EXPECT_EQ("2,3", Names(clusters[1].cpus));
}

TEST(Topology_Read, FilesThatAreAbsurdUnreadableOrGone_AreNotKnown) {
  FakeSystem fake;
  Phone(&fake);
  fake.Cpu(4, "cpu_capacity", "-5");
  fake.Cpu(5, "cpu_capacity", "99999999999");
  fake.MakeUnreadable("devices/system/cpu/cpu6/cpu_capacity");
  fake.Remove("devices/system/cpu/cpu7");
  const Topology topology = ReadTopology(fake.root(), First(8));
  EXPECT_EQ("0,1,2,3", Names(topology.performance)) << "the best of what says how good it is";
  CpuCluster clusters[kMaxCpuClusters];
  ASSERT_EQ(3u, ReadCpuClusters(fake.root(), topology, clusters));
  EXPECT_EQ("0,1,2,3", Names(clusters[0].cpus));
  EXPECT_EQ("4,5,6", Names(clusters[1].cpus));
  EXPECT_EQ("7", Names(clusters[2].cpus));
}

std::string MidrPath(uint32_t cpu) {
  return "devices/system/cpu/cpu" + std::to_string(cpu) + "/regs/identification/midr_el1";
}

TEST(Topology_StrongestCpu, OfAPhone_IsTheLargestCore) {
  FakeSystem fake;
  Phone(&fake);
  for (uint32_t cpu = 0; cpu < 8; ++cpu) {
    fake.Write(MidrPath(cpu), cpu < 4   ? "0x00000000412fd050\n"
                              : cpu < 7 ? "0x00000000413fd0b0\n"
                                        : "0x00000000411fd440\n");
  }
  uint32_t midr = 1;
  ASSERT_EQ(Status::kOk, ReadStrongestCpu(fake.root(), &midr));
  EXPECT_EQ(0x411fd440u, midr);
  // An offline CPU has no registers; the CPUs after it do.
  fake.Remove(MidrPath(7));
  fake.Remove(MidrPath(2));
  fake.Cpu(2, "online", "0\n");
  ASSERT_EQ(Status::kOk, ReadStrongestCpu(fake.root(), &midr));
  EXPECT_EQ(0x413fd0b0u, midr);
  // Without capacities the frequency decides.
  for (uint32_t cpu = 0; cpu < 8; ++cpu) {
    fake.Remove("devices/system/cpu/cpu" + std::to_string(cpu) + "/cpu_capacity");
  }
  ASSERT_EQ(Status::kOk, ReadStrongestCpu(fake.root(), &midr));
  EXPECT_EQ(0x413fd0b0u, midr);
}

TEST(Topology_StrongestCpu, WithoutSysOrWithNonsense_IsNotKnown) {
  FakeSystem fake;
  uint32_t midr = 1;
  EXPECT_EQ(Status::kOk, ReadStrongestCpu(fake.root(), &midr));
  EXPECT_EQ(0u, midr);
  EXPECT_EQ(Status::kOk, ReadStrongestCpu("/nonexistent", &midr));
  EXPECT_EQ(0u, midr);
  fake.Write(MidrPath(0), "410fd030\n");
  fake.Write(MidrPath(1), "0x410fd03q\n");
  fake.MakeUnreadable(MidrPath(2));
  EXPECT_EQ(Status::kOk, ReadStrongestCpu(fake.root(), &midr));
  EXPECT_EQ(0u, midr);
}

TEST(Topology_StrongestCpu, WithoutADescriptorLeft_SaysSoAndLaterWorks) {
  FakeSystem fake;
  fake.Write(MidrPath(0), "0x00000000410fd034\n");
  rlimit before;
  ASSERT_EQ(0, getrlimit(RLIMIT_NOFILE, &before));
  rlimit none = before;
  none.rlim_cur = 0;
  ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &none));
  uint32_t midr = 1;
  const Status status = ReadStrongestCpu(fake.root(), &midr);
  ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &before));
  EXPECT_EQ(Status::kIo, status);
  EXPECT_EQ(Status::kOk, ReadStrongestCpu(fake.root(), &midr));
  EXPECT_EQ(0x410fd034u, midr);
}

TEST(Topology_Clusters, MoreKindsThanThereIsRoomFor_TheFirst) {
  FakeSystem fake;
  for (uint32_t cpu = 0; cpu < kMaxCpuClusters + 4; ++cpu) {
    fake.Cpu(cpu, "cpu_capacity", std::to_string(100 + cpu));
  }
  CpuCluster clusters[kMaxCpuClusters];
  const Topology topology = ReadTopology(fake.root(), First(kMaxCpuClusters + 4));
  EXPECT_EQ(kMaxCpuClusters, ReadCpuClusters(fake.root(), topology, clusters));
}

TEST(Topology_Mask, WordsAndSets) {
  const CpuMask mask = CpuMask::Of(0xA1);
  EXPECT_EQ("0,5,7", Names(mask));
  EXPECT_EQ(0xA1u, mask.word(0));
  EXPECT_EQ(0u, mask.word(1));
  EXPECT_TRUE(mask.IsWithin(First(8)));
  EXPECT_FALSE(mask.IsWithin(First(7)));
  EXPECT_TRUE(CpuMask().IsWithin(CpuMask()));
}

TEST(Topology_ThreadCpus, AreThoseOfAllThreads) {
  ThreadCpus all;
  all.Add(CpuMask::Of(3));
  EXPECT_TRUE(all.are_alike);
  all.Add(CpuMask::Of(3));
  EXPECT_TRUE(all.are_alike);
  all.Add(CpuMask::Of(4));
  EXPECT_FALSE(all.are_alike);
  EXPECT_EQ(3u, all.n_threads);
  EXPECT_EQ("0,1,2", Names(all.cpus));
}

TEST(Topology_ThreadPool, ThreadsAreReadBackFromTheSystem) {
  CpuMask before;
  ASSERT_TRUE(GetThreadCpus(&before));
  CpuMask one;
  for (uint32_t cpu = 0; one.count() == 0; ++cpu) {
    if (before.Has(cpu)) one.Add(cpu);
  }
  ThreadPool pool;
  ASSERT_TRUE(SetThreadCpus(one));
  ASSERT_TRUE(pool.Start(3));
  ASSERT_TRUE(SetThreadCpus(before));
  ThreadCpus found;
  pool.ReadCpus(&found);
  EXPECT_EQ(2u, found.n_threads);
  EXPECT_TRUE(found.are_alike);
  EXPECT_TRUE(found.cpus == one);
  pool.Stop();
  ThreadCpus after;
  pool.ReadCpus(&after);
  EXPECT_EQ(0u, after.n_threads);
}

}  // namespace
}  // namespace arn
