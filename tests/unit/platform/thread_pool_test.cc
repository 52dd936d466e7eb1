// ThreadPool runs each task exactly once, in any order of arrival.
#include "platform/os/thread_pool.h"

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
  explicit Started(uint32_t n_threads) : ok(pool.Start(n_threads)) {}
  ~Started() { pool.Stop(); }
  ThreadPool pool;
  bool ok;
};

template <typename Body>
void Share(ThreadPool* pool, size_t n, Body body) {
  pool->Run(
      n,
      [](void* context, uint32_t thread, size_t i) { (*static_cast<Body*>(context))(thread, i); },
      &body);
}

TEST(ThreadPoolTest, Run_ManyRunsOfAnySize_EachTaskOnceByThreadsThatTakePart) {
  for (const uint32_t n_threads : {1u, 2u, 3u, 5u, 17u}) {
    Started s(n_threads);
    ASSERT_TRUE(s.ok);
    for (size_t run = 0; run < 3000; ++run) {
      const size_t n = run * 7 % 41;
      // Plain memory: writes of a task are visible after Run() returns.
      std::vector<uint32_t> times(n, 0);
      Share(&s.pool, n, [&](uint32_t thread, size_t i) {
        ASSERT_LT(i, n);
        ASSERT_LT(thread, n_threads);
        ++times[i];
      });
      for (size_t i = 0; i < n; ++i) ASSERT_EQ(1u, times[i]) << n << " tasks, task " << i;
    }
  }
}

// Long enough for the other threads to sleep.
TEST(ThreadPoolTest, Run_AfterAPause_WakesTheOthers) {
  Started s(2);
  ASSERT_TRUE(s.ok);
  for (int i = 0; i < 5; ++i) {
    std::this_thread::sleep_for(milliseconds(5));
    std::atomic<bool> other_came{false};
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    Share(&s.pool, 2, [&](uint32_t thread, size_t) {
      if (thread == 1) other_came = true;
      // Thread 0 holds its task until thread 1 has the other.
      while (!other_came && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    });
    EXPECT_TRUE(other_came);
  }
}

// The caller sleeps while another thread runs the last task.
TEST(ThreadPoolTest, Run_ALongLastTask_IsWaitedFor) {
  Started s(3);
  ASSERT_TRUE(s.ok);
  for (int i = 0; i < 10; ++i) {
    std::atomic<uint32_t> done{0};
    std::atomic<bool> other_came{false};
    Share(&s.pool, 6, [&](uint32_t thread, size_t) {
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

TEST(ThreadPoolTest, Use_FewerAndMore_OnlyThoseTakePart) {
  Started s(4);
  ASSERT_TRUE(s.ok);
  for (int round = 0; round < 200; ++round) {
    const uint32_t n_threads = 1 + static_cast<uint32_t>(round) % 4;
    s.pool.Use(n_threads);
    EXPECT_EQ(n_threads, s.pool.count());
    std::atomic<uint32_t> done{0};
    std::atomic<bool> stranger{false};
    Share(&s.pool, 16, [&](uint32_t thread, size_t) {
      if (thread >= 4) stranger = true;
      done.fetch_add(1);
    });
    EXPECT_EQ(16u, done.load());
    EXPECT_FALSE(stranger);
    if (round % 50 == 49) std::this_thread::sleep_for(milliseconds(2));
  }
}

TEST(ThreadPoolTest, SetPrefetch_WhileRunning_ChangesNothing) {
  Started s(3);
  ASSERT_TRUE(s.ok);
  const std::vector<std::byte> data(1000 * 1000 + 3);
  for (size_t run = 0; run < 2000; ++run) {
    s.pool.SetPrefetch(run % 3 == 2 ? nullptr : data.data() + run, run % 3 == 2 ? 0 : 999 * 1000);
    std::atomic<size_t> done{0};
    Share(&s.pool, run % 9, [&](uint32_t, size_t) { done.fetch_add(1); });
    EXPECT_EQ(run % 9, done.load());
  }
}

TEST(ThreadPoolTest, Stop_AtOnceOrAsleep_Ends) {
  for (int i = 0; i < 50; ++i) {
    auto pool = std::make_unique<ThreadPool>();
    ASSERT_TRUE(pool->Start(4));
    if (i % 2 == 1) std::this_thread::sleep_for(microseconds(200));
    pool->Stop();
  }
  ThreadPool never_started;
  never_started.Stop();
}

}  // namespace
}  // namespace arn
