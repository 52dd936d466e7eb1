// Pacer with a fake clock that advances only in sleeps and runs.
#include "runtime/session/pacer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

namespace arn {
namespace {

constexpr uint64_t kMs = 1000000;
constexpr uint64_t kSecond = 1000 * kMs;

struct World {
  uint64_t now = 5 * kSecond;
  ThermalState thermal;
  uint32_t looks = 0;
  uint64_t longest_nap = 0;
  uint64_t cancel_at = UINT64_MAX;
  std::atomic<uint32_t> cancel{0};

  Pacer::World ForPacer() {
    Pacer::World world;
    world.user = this;
    world.now_ns = [](void* self) { return static_cast<World*>(self)->now; };
    world.sleep_ns = [](void* self, uint64_t ns) {
      World& w = *static_cast<World*>(self);
      w.longest_nap = std::max(w.longest_nap, ns);
      w.now += ns;
      if (w.now >= w.cancel_at) w.cancel = 1;
    };
    world.thermal = [](void* self) {
      ++static_cast<World*>(self)->looks;
      return static_cast<World*>(self)->thermal;
    };
    return world;
  }
};

class PacerTest : public testing::Test {
 protected:
  void Start(const PaceOptions& options) { pacer_.Init(options, world_.ForPacer()); }
  // Runs for `ns` and returns the delay before the run.
  uint64_t Run(uint64_t ns, uint32_t n_decoded = 1) {
    const uint64_t start = world_.now;
    EXPECT_EQ(Status::kOk, pacer_.Begin(n_decoded, world_.cancel));
    const uint64_t slept = world_.now - start;
    world_.now += ns;
    pacer_.End();
    return slept;
  }

  World world_;
  Pacer pacer_;
};

PaceOptions Hot(int32_t limit_mc, uint32_t percent) {
  PaceOptions options;
  options.thermal_limit_mc = limit_mc;
  options.thermal_duty_percent = percent;
  return options;
}

TEST_F(PacerTest, WithoutOptions_NeverSleepsNorLooks) {
  Start(PaceOptions());
  EXPECT_FALSE(pacer_.is_on());
  for (int i = 0; i < 10; ++i) EXPECT_EQ(0u, Run(kMs));
  EXPECT_EQ(0u, world_.looks);
  EXPECT_EQ(0u, pacer_.slept_ns());
}

TEST_F(PacerTest, Cap_MakesNoMoreTokensThanThat) {
  PaceOptions options;
  options.max_tokens_per_s = 20;
  Start(options);
  EXPECT_TRUE(pacer_.is_on());
  const uint64_t start = world_.now;
  EXPECT_EQ(0u, Run(10 * kMs)) << "the first is due at once";
  for (int i = 0; i < 100; ++i) EXPECT_EQ(40 * kMs, Run(10 * kMs));
  EXPECT_EQ(5 * kSecond + 10 * kMs, world_.now - start);
  EXPECT_EQ(4 * kSecond, pacer_.slept_ns());
  EXPECT_EQ(0u, pacer_.cooled_ns());
  EXPECT_LE(world_.longest_nap, Pacer::kNapNs);
  pacer_.ResetStats();
  EXPECT_EQ(0u, pacer_.slept_ns());
}

TEST_F(PacerTest, Cap_SlowRunsAreNotHeldBackNorPaidBack) {
  PaceOptions options;
  options.max_tokens_per_s = 20;
  Start(options);
  Run(70 * kMs);
  EXPECT_EQ(0u, Run(70 * kMs));
  world_.now += 10 * kSecond;  // time between calls
  EXPECT_EQ(0u, Run(10 * kMs));
  EXPECT_EQ(40 * kMs, Run(10 * kMs)) << "no burst after it";
}

TEST_F(PacerTest, Cap_CountsTokensOfAllSequencesAndNoPrompts) {
  PaceOptions options;
  options.max_tokens_per_s = 20;
  Start(options);
  EXPECT_EQ(0u, Run(0, 4));
  EXPECT_EQ(0u, Run(0, 0));
  EXPECT_EQ(0u, Run(0, 0));
  EXPECT_EQ(200 * kMs, Run(0, 4));
}

TEST_F(PacerTest, ThermalLimit_RestsInProportionUntilItIsCooler) {
  Start(Hot(45000, 25));
  world_.thermal.millicelsius = 44999;
  EXPECT_EQ(0u, Run(10 * kMs));
  EXPECT_FALSE(pacer_.is_hot());
  world_.thermal.millicelsius = 45000;
  world_.now += Pacer::kThermalCheckNs;
  EXPECT_EQ(0u, Run(10 * kMs)) << "it has rested longer than that already";
  EXPECT_TRUE(pacer_.is_hot());
  EXPECT_EQ(30 * kMs, Run(10 * kMs));
  EXPECT_EQ(30 * kMs, Run(20 * kMs, 0)) << "prompts too";
  EXPECT_EQ(60 * kMs, Run(20 * kMs));
  EXPECT_EQ(120 * kMs, pacer_.cooled_ns());
  EXPECT_EQ(120 * kMs, pacer_.slept_ns());
  world_.thermal.millicelsius = 42001;
  world_.now += Pacer::kThermalCheckNs;
  Run(10 * kMs);
  EXPECT_TRUE(pacer_.is_hot()) << "less than three degrees cooler";
  world_.thermal.millicelsius = 41999;
  world_.now += Pacer::kThermalCheckNs;
  Run(10 * kMs);
  EXPECT_FALSE(pacer_.is_hot());
  EXPECT_EQ(0u, Run(10 * kMs));
}

TEST_F(PacerTest, Temperature_IsCheckedNowAndThen) {
  Start(Hot(45000, 50));
  world_.thermal.millicelsius = 30000;
  for (int i = 0; i < 1000; ++i) Run(10 * kMs);
  EXPECT_EQ(20u, world_.looks);
}

TEST_F(PacerTest, Temperature_ThatIsNotKnownAnyMore_IsNone) {
  Start(Hot(45000, 50));
  world_.thermal.millicelsius = 60000;
  Run(kMs);
  EXPECT_TRUE(pacer_.is_hot());
  world_.thermal.millicelsius = INT32_MIN;
  world_.now += Pacer::kThermalCheckNs;
  Run(kMs);
  EXPECT_FALSE(pacer_.is_hot());
}

TEST_F(PacerTest, Headroom_IsALimitOfItsOwn) {
  PaceOptions options;
  options.thermal_headroom = 0.8f;
  options.thermal_duty_percent = 50;
  Start(options);
  world_.thermal.millicelsius = 99000;
  world_.thermal.headroom = 0.7f;
  Run(kMs);
  EXPECT_FALSE(pacer_.is_hot()) << "no limit was set on zones";
  for (const auto& [headroom, is_hot] :
       {std::pair(0.8f, true), std::pair(0.76f, true), std::pair(0.74f, false),
        std::pair(1.2f, true), std::pair(-1.0f, false)}) {
    world_.thermal.headroom = headroom;
    world_.now += Pacer::kThermalCheckNs;
    Run(kMs);
    EXPECT_EQ(is_hot, pacer_.is_hot()) << headroom;
  }
}

TEST_F(PacerTest, Cancel_EndsTheSleepWithinANap) {
  PaceOptions options = Hot(45000, 1);
  options.max_tokens_per_s = 0.5f;
  Start(options);
  world_.thermal.millicelsius = 60000;
  Run(100 * kMs);  // the next rest is 9.9 s
  world_.cancel_at = world_.now + 52 * kMs;
  EXPECT_EQ(Status::kCancelled, pacer_.Begin(1, world_.cancel));
  EXPECT_LE(world_.now, world_.cancel_at + Pacer::kNapNs);
  EXPECT_EQ(1u, world_.cancel) << "who called clears it";
  EXPECT_EQ(Status::kCancelled, pacer_.Begin(1, world_.cancel)) << "remembered";
}

}  // namespace
}  // namespace arn
