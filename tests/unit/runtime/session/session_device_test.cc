// Sessions on fake devices: reported energy, temperature and CPUs, and thermal throttling.
#include <arenite/profile.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/fake_system.h"
#include "tests/support/session_support.h"

namespace arn::test {
namespace {

constexpr const char* kEnergy = "class/powercap/intel-rapl:0/energy_uj";

class SessionDevice : public testing::Test {
 protected:
  SessionDevice() : bytes_(MakeTinyBundle(TinyBundle())), model_(OpenBytes(bytes_)) {
    options_.system_root = fake_.root();
  }

  arn_status Create() {
    arn_session* session = nullptr;
    const arn_status status =
        arn_session_create(model_.get(), &options_, nullptr, 0, error_, sizeof error_, &session);
    session_.reset(session);
    return status;
  }
  void Decode(uint32_t n) {
    for (uint32_t i = 0; i < n; ++i) {
      int32_t id = 0;
      ASSERT_EQ(ARN_OK, arn_session_decode(session_.get(), &id))
          << arn_session_last_error(session_.get());
    }
  }
  void Prefill() {
    const int32_t prompt[3] = {5, 6, 7};
    ASSERT_EQ(ARN_OK, arn_session_prefill(session_.get(), prompt, 3));
  }
  arn_session_stats_data Stats() const {
    arn_session_stats_data stats = ARN_SESSION_STATS_INIT;
    EXPECT_EQ(ARN_OK, arn_session_stats(session_.get(), &stats));
    return stats;
  }
  arn_session_cpus_data Cpus() const {
    arn_session_cpus_data cpus = ARN_SESSION_CPUS_INIT;
    EXPECT_EQ(ARN_OK, arn_session_cpus(session_.get(), &cpus));
    return cpus;
  }
  // Longer than the cache time of a sensor reading.
  static void Wait() { std::this_thread::sleep_for(std::chrono::milliseconds(110)); }

  FakeSystem fake_;
  BundleBytes bytes_;
  ModelPtr model_;
  SessionPtr session_;
  arn_session_options options_ = ARN_SESSION_OPTIONS_INIT;
  char error_[512] = "";
};

// Returns the affinity mask of the process for the first 64 CPUs.
uint64_t Allowed() {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(0, sched_getaffinity(0, sizeof set, &set));
  uint64_t mask = 0;
  for (int cpu = 0; cpu < 64; ++cpu) {
    if (CPU_ISSET(cpu, &set)) mask |= uint64_t{1} << cpu;
  }
  return mask;
}

TEST_F(SessionDevice, Stats_CountBytesThatRunsRead) {
  ASSERT_EQ(ARN_OK, Create()) << error_;
  Prefill();
  const arn_session_stats_data after_prompt = Stats();
  EXPECT_GT(after_prompt.weight_bytes_read, 0u);
  Decode(1);
  const uint64_t kv_before = after_prompt.kv_bytes_read;
  const arn_session_stats_data after_one = Stats();
  // Plus one row of the embedding.
  EXPECT_GE(after_one.weight_bytes_read - after_prompt.weight_bytes_read,
            after_one.weight_bytes_per_token);
  EXPECT_LT(after_one.weight_bytes_read - after_prompt.weight_bytes_read,
            after_one.weight_bytes_per_token * 11 / 10);
  EXPECT_EQ(after_one.kv_bytes_read - kv_before, after_one.kv_bytes_read_per_token);
  EXPECT_DOUBLE_EQ(after_one.decode_tokens_per_s, static_cast<double>(after_one.decode_tokens) *
                                                      1e9 /
                                                      static_cast<double>(after_one.decode_ns));
  ASSERT_EQ(ARN_OK, arn_session_reset_stats(session_.get()));
  EXPECT_EQ(0u, Stats().weight_bytes_read);
  EXPECT_EQ(0u, Stats().kv_bytes_read);
  EXPECT_EQ(0, Stats().decode_tokens_per_s);
}

TEST_F(SessionDevice, Stats_BytesAreThoseOfAProfileWhateverTheRunsAre) {
  options_.max_sequences = 2;
  options_.prefill_chunk = 4;
  ASSERT_EQ(ARN_OK, Create()) << error_;
  std::vector<uint64_t> memory(arn_session_profile_bytes(session_.get()) / sizeof(uint64_t));
  ASSERT_EQ(ARN_OK, arn_session_profile_start(session_.get(), memory.data(),
                                              memory.size() * sizeof(uint64_t)));
  const std::vector<int32_t> prompt = SomeIds(11, 61);
  ASSERT_EQ(ARN_OK, arn_session_prefill(session_.get(), prompt.data(), prompt.size()));
  Decode(3);
  ASSERT_EQ(ARN_OK, arn_session_fork(session_.get(), 0, 1));
  const uint32_t both[2] = {0, 1};
  int32_t ids[2];
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(ARN_OK, arn_session_decode_batch(session_.get(), both, 2, ids));
    Decode(1);
  }
  uint64_t weights = 0, kv = 0;
  for (uint32_t i = 0; i < arn_session_step_count(session_.get()); ++i) {
    arn_step_profile step = ARN_STEP_PROFILE_INIT;
    ASSERT_EQ(ARN_OK, arn_session_profile_step(session_.get(), i, &step));
    weights += step.weight_bytes;
    kv += step.kv_bytes;
  }
  EXPECT_EQ(weights, Stats().weight_bytes_read);
  EXPECT_EQ(kv, Stats().kv_bytes_read);
}

TEST_F(SessionDevice, WithoutSensors_NothingIsRead) {
  fake_.Zone(0, "cpu", "40000");
  ASSERT_EQ(ARN_OK, Create()) << error_;
  const arn_session_stats_data stats = Stats();
  EXPECT_EQ(0u, stats.n_thermal_zones);
  EXPECT_EQ(ARN_NO_TEMPERATURE, stats.temperature_mc);
  EXPECT_EQ(static_cast<uint32_t>(ARN_ENERGY_NONE), stats.energy_source);
  EXPECT_LT(stats.thermal_headroom, 0);
  arn_thermal_zone zone = ARN_THERMAL_ZONE_INIT;
  EXPECT_EQ(ARN_NOT_FOUND, arn_session_thermal_zone(session_.get(), 0, &zone));
}

TEST_F(SessionDevice, Sensors_SayHeatAndEnergyAsTheyCome) {
  fake_.Zone(0, "cpu-little", "40000");
  fake_.Zone(1, "cpu-big", "52000");
  fake_.Write("class/powercap/intel-rapl:0/name", "package-0");
  fake_.Write(kEnergy, 1000000);
  options_.sensors = 1;
  ASSERT_EQ(ARN_OK, Create()) << error_;
  arn_session_stats_data stats = Stats();
  EXPECT_EQ(2u, stats.n_thermal_zones);
  EXPECT_EQ(52000, stats.temperature_mc);
  EXPECT_EQ(1u, stats.hottest_zone);
  EXPECT_EQ(static_cast<uint32_t>(ARN_ENERGY_RAPL), stats.energy_source);
  EXPECT_STREQ("package-0", stats.energy_name);
  EXPECT_EQ(0u, stats.energy_uj);
  arn_thermal_zone zone = ARN_THERMAL_ZONE_INIT;
  ASSERT_EQ(ARN_OK, arn_session_thermal_zone(session_.get(), 0, &zone));
  EXPECT_STREQ("cpu-little", zone.name);
  EXPECT_EQ(40000, zone.millicelsius);
  EXPECT_EQ(ARN_NOT_FOUND, arn_session_thermal_zone(session_.get(), 2, &zone));

  fake_.Write(kEnergy, 3000000);
  fake_.Remove(FakeSystem::ZonePath(1, "temp"));
  Wait();
  Prefill();
  stats = Stats();
  EXPECT_EQ(2000000u, stats.energy_uj);
  EXPECT_GT(stats.energy_ns, 100u * 1000000);
  EXPECT_GT(stats.power_uw, 0u);
  EXPECT_EQ(40000, stats.temperature_mc) << "the other one is gone";
  ASSERT_EQ(ARN_OK, arn_session_thermal_zone(session_.get(), 1, &zone));
  EXPECT_EQ(ARN_NO_TEMPERATURE, zone.millicelsius);
  ASSERT_EQ(ARN_OK, arn_session_reset_stats(session_.get()));
  EXPECT_EQ(0u, Stats().energy_uj);
}

TEST_F(SessionDevice, Pace_CapHoldsDecodingBackAndNothingElse) {
  options_.max_tokens_per_s = 100;
  ASSERT_EQ(ARN_OK, Create()) << error_;
  Prefill();
  EXPECT_EQ(0u, Stats().paced_ns);
  Decode(6);
  const arn_session_stats_data stats = Stats();
  EXPECT_GE(stats.decode_ns, 50u * 1000000) << "five times ten milliseconds";
  EXPECT_LE(stats.decode_tokens_per_s, 120);
  EXPECT_GT(stats.paced_ns, 0u);
  EXPECT_EQ(0u, stats.cooled_ns);
}

TEST_F(SessionDevice, Pace_CancelEndsTheSleepAndLosesNothing) {
  options_.max_tokens_per_s = 0.01f;
  ASSERT_EQ(ARN_OK, Create()) << error_;
  Prefill();
  Decode(1);
  const auto start = std::chrono::steady_clock::now();
  std::thread canceller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    arn_session_cancel(session_.get());
  });
  int32_t id = 0;
  EXPECT_EQ(ARN_CANCELLED, arn_session_decode(session_.get(), &id));
  canceller.join();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
  EXPECT_EQ(4u, arn_session_length(session_.get()));
  const float* logits = nullptr;
  EXPECT_EQ(ARN_OK, arn_session_logits(session_.get(), &logits)) << "as before the call";
  arn_generate_options generate = ARN_GENERATE_OPTIONS_INIT;
  generate.max_tokens = 5;
  arn_generate_result result = ARN_GENERATE_RESULT_INIT;
  arn_session_cancel(session_.get());
  EXPECT_EQ(ARN_CANCELLED, arn_session_generate(session_.get(), &generate, &result));
  EXPECT_EQ(static_cast<uint32_t>(ARN_FINISH_CANCELLED), result.finish);
}

TEST_F(SessionDevice, Heat_OverTheLimitRestsAfterEachRun) {
  fake_.Zone(0, "cpu", "60000");
  fake_.Zone(1, "modem", "90000");
  options_.thermal_limit_mc = 65000;
  options_.thermal_duty_percent = 10;
  options_.thermal_zone = "cpu";
  ASSERT_EQ(ARN_OK, Create()) << error_;
  Prefill();
  Decode(3);
  EXPECT_EQ(0u, Stats().is_hot);
  EXPECT_EQ(0u, Stats().cooled_ns);
  EXPECT_EQ(1u, Stats().n_thermal_zones);
  fake_.Zone(0, "cpu", "65000");
  ASSERT_EQ(ARN_OK, Create()) << error_;
  Prefill();
  Decode(3);
  EXPECT_EQ(1u, Stats().is_hot);
  EXPECT_GT(Stats().cooled_ns, 0u);
  EXPECT_EQ(Stats().cooled_ns, Stats().paced_ns);
}

TEST_F(SessionDevice, Limits_OnWhatCannotBeRead_AreRefused) {
  options_.thermal_limit_mc = 60000;
  EXPECT_EQ(ARN_UNSUPPORTED, Create());
  EXPECT_NE(nullptr, strstr(error_, "thermal zones")) << error_;
  fake_.Zone(0, "cpu", "40000");
  EXPECT_EQ(ARN_OK, Create()) << error_;
  options_.thermal_zone = "gpu";
  EXPECT_EQ(ARN_UNSUPPORTED, Create());
  EXPECT_NE(nullptr, strstr(error_, "'gpu'")) << error_;
  options_ = ARN_SESSION_OPTIONS_INIT;
#if !defined(__ANDROID__)
  options_.thermal_headroom = 0.9f;
  EXPECT_EQ(ARN_UNSUPPORTED, Create());
  EXPECT_NE(nullptr, strstr(error_, "thermal_headroom")) << error_;
#endif
}

TEST_F(SessionDevice, Options_OutOfRange_AreRefusedByName) {
  const auto refused = [&](arn_status wanted, const char* field, auto set) {
    options_ = ARN_SESSION_OPTIONS_INIT;
    set(&options_);
    EXPECT_EQ(wanted, Create()) << field;
    EXPECT_NE(nullptr, strstr(error_, field)) << error_;
    EXPECT_EQ(nullptr, session_.get());
  };
  using Options = arn_session_options;
  refused(ARN_UNSUPPORTED, "cpus", [](Options* o) { o->cpus = 4; });
  refused(ARN_BAD_ARGUMENT, "sensors", [](Options* o) { o->sensors = 2; });
  refused(ARN_BAD_ARGUMENT, "cpu_mask", [](Options* o) { o->cpus = ARN_CPUS_MASK; });
  refused(ARN_BAD_ARGUMENT, "cpu_mask", [](Options* o) { o->cpu_mask = 1; });
  refused(ARN_BAD_ARGUMENT, "max_tokens_per_s", [](Options* o) { o->max_tokens_per_s = -1; });
  refused(ARN_BAD_ARGUMENT, "max_tokens_per_s", [](Options* o) { o->max_tokens_per_s = NAN; });
  refused(ARN_BAD_ARGUMENT, "max_tokens_per_s", [](Options* o) { o->max_tokens_per_s = 1e-4f; });
  refused(ARN_BAD_ARGUMENT, "thermal_limit_mc", [](Options* o) { o->thermal_limit_mc = 60; });
  refused(ARN_BAD_ARGUMENT, "thermal_headroom", [](Options* o) { o->thermal_headroom = INFINITY; });
  refused(ARN_BAD_ARGUMENT, "thermal_duty_percent",
          [](Options* o) { o->thermal_duty_percent = 100; });
  refused(ARN_BAD_ARGUMENT, "thermal_duty_percent",
          [](Options* o) { o->thermal_duty_percent = 50; });
}

TEST_F(SessionDevice, Cpus_AskedFor_AreAppliedAndReadBack) {
  const uint64_t allowed = Allowed();
  ASSERT_NE(0u, allowed);
  const uint64_t lowest = allowed & (~allowed + 1);
  options_.cpus = ARN_CPUS_MASK;
  options_.cpu_mask = lowest;
  options_.n_threads = 3;
  ASSERT_EQ(ARN_OK, Create()) << error_;
  EXPECT_EQ(lowest, Cpus().wanted[0]);
  EXPECT_EQ(lowest, Cpus().applied[0]);
  EXPECT_EQ(3u, Cpus().n_threads);
  EXPECT_EQ(1u, Cpus().is_as_wanted);
  Prefill();
  EXPECT_EQ(1u, Cpus().is_as_wanted);
  EXPECT_EQ(allowed, Allowed()) << "the calling thread is where it was";

  options_.cpu_mask = ~uint64_t{0};
  EXPECT_EQ(ARN_UNSUPPORTED, Create());
  EXPECT_NE(nullptr, strstr(error_, "cpu_mask")) << error_;
  options_.cpu_mask = lowest;
  options_.backend = ARN_BACKEND_REFERENCE;
  EXPECT_EQ(ARN_UNSUPPORTED, Create());
  EXPECT_NE(nullptr, strstr(error_, "reference")) << error_;
}

TEST_F(SessionDevice, Cpus_OfAMixedMachine_ArePerformanceOnesOnRequestAndByThemselves) {
  const uint64_t allowed = Allowed();
  const uint64_t first = allowed & (~allowed + 1);
  const uint64_t others = allowed & ~first;
  if (others == 0) GTEST_SKIP() << "one CPU";
  uint32_t n_others = 0;
  for (uint32_t cpu = 0; cpu < 64; ++cpu) {
    const uint64_t bit = uint64_t{1} << cpu;
    if ((allowed & bit) == 0) continue;
    fake_.Cpu(cpu, "cpu_capacity", bit == first ? "200" : "1024");
    if (bit != first) ++n_others;
  }
  ASSERT_EQ(ARN_OK, Create()) << error_;
  EXPECT_EQ(others, Cpus().wanted[0]);
  EXPECT_EQ(others, Cpus().applied[0]);
  EXPECT_EQ(n_others, Cpus().n_threads) << "one for each of them";

  options_.n_threads = n_others + 1;
  ASSERT_EQ(ARN_OK, Create()) << error_;
  EXPECT_EQ(0u, Cpus().wanted[0]) << "more threads than these: the system places them";
  EXPECT_EQ(allowed, Cpus().applied[0]);
  options_.cpus = ARN_CPUS_PERFORMANCE;
  ASSERT_EQ(ARN_OK, Create()) << error_;
  EXPECT_EQ(others, Cpus().applied[0]) << "unless that is asked for";
  arn_memory_plan plan = ARN_MEMORY_PLAN_INIT;
  ASSERT_EQ(ARN_OK, arn_session_plan(model_.get(), &options_, error_, sizeof error_, &plan));
  EXPECT_EQ(1u, plan.keeps_to_performance_cpus);
  EXPECT_EQ(n_others, plan.n_performance_cpus);
  options_.cpus = ARN_CPUS_ALL;
  options_.n_threads = 0;
  ASSERT_EQ(ARN_OK, Create()) << error_;
  EXPECT_EQ(n_others + 1, Cpus().n_threads);
  EXPECT_EQ(1u, Cpus().is_as_wanted);

  arn_cpu_cluster cluster = ARN_CPU_CLUSTER_INIT;
  ASSERT_EQ(ARN_OK, arn_cpu_cluster_at(fake_.root(), 0, &cluster));
  EXPECT_EQ(others, cluster.cpus[0]);
  EXPECT_EQ(n_others, cluster.n_cpus);
  EXPECT_EQ(1024u, cluster.capacity);
  EXPECT_EQ(1u, cluster.is_performance);
  ASSERT_EQ(ARN_OK, arn_cpu_cluster_at(fake_.root(), 1, &cluster));
  EXPECT_EQ(first, cluster.cpus[0]);
  EXPECT_EQ(0u, cluster.is_performance);
  EXPECT_EQ(ARN_NOT_FOUND, arn_cpu_cluster_at(fake_.root(), 2, &cluster));
}

}  // namespace
}  // namespace arn::test
