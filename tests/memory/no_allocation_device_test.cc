// No allocation in device statistics and thermal throttling.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "tests/memory/allocation_trap.h"
#include "tests/support/fake_system.h"
#include "tests/support/session_support.h"

namespace arn::test {
namespace {

TEST(NoAllocation_Device, StatsZonesCpusAndPacing_AllocateNothing) {
  FakeSystem fake;
  for (uint32_t i = 0; i < 20; ++i) fake.Zone(i, "cpu", "70000");
  fake.Write("class/power_supply/battery/type", "Battery");
  fake.Write("class/power_supply/battery/status", "Discharging");
  fake.Write("class/power_supply/battery/current_now", "-400000");
  fake.Write("class/power_supply/battery/voltage_now", "4000000");
  const BundleBytes bytes = MakeTinyBundle(TinyBundle());
  const ModelPtr model = OpenBytes(bytes);
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.n_threads = 2;
  options.cpus = ARN_CPUS_PERFORMANCE;
  options.system_root = fake.root();
  options.sensors = 1;
  options.thermal_limit_mc = 60000;
  options.max_tokens_per_s = 50;
  const SessionPtr session = NewSession(model.get(), options);
  const int32_t prompt[3] = {5, 6, 7};
  arn_session_stats_data stats = ARN_SESSION_STATS_INIT;
  arn_session_cpus_data cpus = ARN_SESSION_CPUS_INIT;
  arn_thermal_zone zone = ARN_THERMAL_ZONE_INIT;

  g_calls = 0;
  g_trap = true;
  arn_status status = arn_session_prefill(session.get(), prompt, 3);
  // Longer than the cache time of a sensor reading.
  for (int i = 0; i < 12 && status == ARN_OK; ++i) {
    int32_t id = 0;
    status = arn_session_decode(session.get(), &id);
    if (status == ARN_OK) status = arn_session_stats(session.get(), &stats);
    if (status == ARN_OK) status = arn_session_thermal_zone(session.get(), 7, &zone);
    if (status == ARN_OK) status = arn_session_cpus(session.get(), &cpus);
  }
  const arn_status reset = arn_session_reset_stats(session.get());
  g_trap = false;

  EXPECT_EQ(ARN_OK, status) << arn_session_last_error(session.get());
  EXPECT_EQ(ARN_OK, reset);
  EXPECT_EQ(0u, g_calls.load());
  EXPECT_EQ(70000, zone.millicelsius);
  EXPECT_EQ(1u, stats.is_hot);
  EXPECT_GT(stats.paced_ns, 0u);
  EXPECT_GT(stats.energy_uj, 0u);
}

}  // namespace
}  // namespace arn::test
