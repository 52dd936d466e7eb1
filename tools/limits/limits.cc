#include "tools/limits/limits.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <thread>
#include <vector>

#include "tools/limits/loops.h"

namespace arn::limits {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kAlone = size_t{512} << 20;    // bytes read by a single thread
constexpr size_t kShare = size_t{256} << 20;    // by each of several threads
constexpr size_t kHugeBytes = size_t{2} << 20;  // of a huge page, on most systems
constexpr int kRounds = 6;
constexpr double kRoundSeconds = 0.03;  // of arithmetic

// Buffer in huge pages if possible, for the highest memory bandwidth. Writes every page, so that
// all are mapped and none is the zero page.
class Buffer {
 public:
  explicit Buffer(size_t n)
      : data_(static_cast<std::byte*>(std::aligned_alloc(kHugeBytes, n))), n_(n) {
    if (data_ == nullptr) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
    (void)madvise(data_.get(), n, MADV_HUGEPAGE);
#endif
    std::memset(data_.get(), 1, n);
  }
  const std::byte* data() const { return data_.get(); }
  size_t size() const { return n_; }

 private:
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  std::unique_ptr<std::byte, Free> data_;
  size_t n_;
};

// Runs body(thread) on all threads, started together. Returns the seconds from the start until the
// last one ends.
template <typename Body>
double Together(uint32_t n_threads, const Body& body) {
  std::atomic<uint32_t> waiting{n_threads};
  std::vector<Clock::time_point> starts(n_threads), ends(n_threads);
  const auto run = [&](uint32_t thread) {
    waiting.fetch_sub(1);
    while (waiting.load() != 0) std::this_thread::yield();
    starts[thread] = Clock::now();
    body(thread);
    ends[thread] = Clock::now();
  };
  std::vector<std::thread> threads;
  for (uint32_t i = 1; i < n_threads; ++i) threads.emplace_back(run, i);
  run(0);
  for (std::thread& thread : threads) thread.join();
  return std::chrono::duration<double>(*std::max_element(ends.begin(), ends.end()) -
                                       *std::min_element(starts.begin(), starts.end()))
      .count();
}

double ReadSpeed(const Loops& loops, uint32_t n_threads) {
  std::vector<std::unique_ptr<Buffer>> buffers(n_threads);
  Together(n_threads, [&](uint32_t i) {
    buffers[i] = std::make_unique<Buffer>(n_threads == 1 ? kAlone : kShare);
  });
  double best = 0;
  for (int round = 0; round < kRounds; ++round) {
    const double seconds = Together(
        n_threads, [&](uint32_t i) { loops.read(buffers[i]->data(), buffers[i]->size()); });
    best = std::max(best, static_cast<double>(buffers[0]->size()) * n_threads / seconds);
  }
  return best;
}

double OpsPerSecond(const Loop& loop, uint32_t n_threads) {
  double best = 0;
  uint64_t turns = 1000;
  for (int round = 0; round < kRounds;) {
    const double seconds = Together(n_threads, [&](uint32_t) { loop.run(turns); });
    if (seconds < kRoundSeconds) {
      turns *= 2;
      continue;
    }
    best = std::max(best, loop.ops_per_turn * static_cast<double>(turns) * n_threads / seconds);
    ++round;
  }
  return best;
}

}  // namespace

Limits Measure(uint32_t n_threads) {
  const Loops loops = ChooseLoops();
  Limits limits;
  limits.n_threads = n_threads;
  limits.read_bytes_per_s = ReadSpeed(loops, n_threads);
  limits.integer_ops_per_s = OpsPerSecond(loops.integer, n_threads);
  limits.float_ops_per_s = OpsPerSecond(loops.floating, n_threads);
  limits.integer_instruction = loops.integer.instruction;
  limits.float_instruction = loops.floating.instruction;
  return limits;
}

}  // namespace arn::limits
