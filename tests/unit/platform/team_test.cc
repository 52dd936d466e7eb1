// Team runs each task exactly once, in any order of arrival.
#include "platform/os/team.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

namespace arn {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

struct Started {
  explicit Started(uint32_t n_threads) : ok(team.Start(n_threads)) {}
  ~Started() { team.Stop(); }
  Team team;
  bool ok;
};

template <typename Body>
void Share(Team* team, size_t n, Body body) {
  team->Run(
      n,
      [](void* context, uint32_t thread, size_t i) { (*static_cast<Body*>(context))(thread, i); },
      &body);
}

TEST(TeamTest, Run_ManyRunsOfAnySize_EachPieceOnceByThreadsThatTakePart) {
  for (const uint32_t n_threads : {1u, 2u, 3u, 5u, 17u}) {
    Started s(n_threads);
    ASSERT_TRUE(s.ok);
    for (size_t run = 0; run < 3000; ++run) {
      const size_t n = run * 7 % 41;
      // Plain memory: writes of a task are visible after Run() returns.
      std::vector<uint32_t> times(n, 0);
      Share(&s.team, n, [&](uint32_t thread, size_t i) {
        ASSERT_LT(i, n);
        ASSERT_LT(thread, n_threads);
        ++times[i];
      });
      for (size_t i = 0; i < n; ++i) ASSERT_EQ(1u, times[i]) << n << " pieces, piece " << i;
    }
  }
}

// Long enough for the other threads to sleep.
TEST(TeamTest, Run_AfterAPause_WakesTheOthers) {
  Started s(2);
  ASSERT_TRUE(s.ok);
  for (int i = 0; i < 5; ++i) {
    std::this_thread::sleep_for(milliseconds(5));
    std::atomic<bool> other_came{false};
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    Share(&s.team, 2, [&](uint32_t thread, size_t) {
      if (thread == 1) other_came = true;
      // Thread 0 holds its task until thread 1 has the other.
      while (!other_came && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    });
    EXPECT_TRUE(other_came);
  }
}

// The caller sleeps while another thread runs the last task.
TEST(TeamTest, Run_ALongLastPiece_IsWaitedFor) {
  Started s(3);
  ASSERT_TRUE(s.ok);
  for (int i = 0; i < 10; ++i) {
    std::atomic<uint32_t> done{0};
    std::atomic<bool> other_came{false};
    Share(&s.team, 6, [&](uint32_t thread, size_t) {
      if (thread != 0) {
        other_came = true;
        std::this_thread::sleep_for(milliseconds(3));
      }
      while (!other_came) std::this_thread::yield();
      done.fetch_add(1);
    });
    EXPECT_EQ(6u, done.load());
  }
}

TEST(TeamTest, Use_FewerAndMore_OnlyThoseTakePart) {
  Started s(4);
  ASSERT_TRUE(s.ok);
  for (int round = 0; round < 200; ++round) {
    const uint32_t n_threads = 1 + static_cast<uint32_t>(round) % 4;
    s.team.Use(n_threads);
    EXPECT_EQ(n_threads, s.team.count());
    std::atomic<uint32_t> done{0};
    std::atomic<bool> stranger{false};
    Share(&s.team, 16, [&](uint32_t thread, size_t) {
      if (thread >= 4) stranger = true;
      done.fetch_add(1);
    });
    EXPECT_EQ(16u, done.load());
    EXPECT_FALSE(stranger);
    if (round % 50 == 49) std::this_thread::sleep_for(milliseconds(2));
  }
}

TEST(TeamTest, SetAhead_WhileRunning_ChangesNothing) {
  Started s(3);
  ASSERT_TRUE(s.ok);
  const std::vector<std::byte> data(1000 * 1000 + 3);
  for (size_t run = 0; run < 2000; ++run) {
    s.team.SetAhead(run % 3 == 2 ? nullptr : data.data() + run, run % 3 == 2 ? 0 : 999 * 1000);
    std::atomic<size_t> done{0};
    Share(&s.team, run % 9, [&](uint32_t, size_t) { done.fetch_add(1); });
    EXPECT_EQ(run % 9, done.load());
  }
}

TEST(TeamTest, Stop_AtOnceOrAsleep_Ends) {
  for (int i = 0; i < 50; ++i) {
    auto team = std::make_unique<Team>();
    ASSERT_TRUE(team->Start(4));
    if (i % 2 == 1) std::this_thread::sleep_for(microseconds(200));
    team->Stop();
  }
  Team never_started;
  never_started.Stop();
}

}  // namespace
}  // namespace arn
