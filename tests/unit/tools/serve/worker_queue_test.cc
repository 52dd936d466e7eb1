// The queue of the server's connections: what a task throws is dropped, and a full queue refuses.
#include "tools/serve/worker_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <new>

namespace arn::serve {
namespace {

TEST(WorkerQueueTest, TaskThatThrows_TheNextOneRuns) {
  WorkerQueue queue(1, 4);
  ASSERT_EQ(1u, queue.n_threads());
  std::promise<int> done;
  ASSERT_TRUE(queue.Add([] { throw std::bad_alloc(); }));
  ASSERT_TRUE(queue.Add([&done] { done.set_value(7); }));
  EXPECT_EQ(7, done.get_future().get());
}

TEST(WorkerQueueTest, FullOrEnding_RefusesAndFinishesWhatItHas) {
  std::promise<void> begun, goes_on;
  std::atomic<int> n_done{0};
  WorkerQueue queue(1, 2);
  ASSERT_TRUE(queue.Add([&] {
    begun.set_value();
    goes_on.get_future().wait();
  }));
  begun.get_future().wait();
  EXPECT_TRUE(queue.Add([&n_done] { ++n_done; }));
  EXPECT_TRUE(queue.Add([&n_done] { ++n_done; }));
  EXPECT_FALSE(queue.Add([&n_done] { ++n_done; }));
  goes_on.set_value();
  queue.End();
  EXPECT_EQ(2, n_done);
  EXPECT_FALSE(queue.Add([&n_done] { ++n_done; }));
}

}  // namespace
}  // namespace arn::serve
