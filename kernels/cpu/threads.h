// The thread pool: a thin skin over pthreadpool that runs lambdas and runs small work in place.
#pragma once

#include <pthreadpool.h>

#include <cstddef>
#include <cstdint>

namespace arn::cpu {

class Threads {
 public:
  // One thread needs no pool. False when the system gives no threads. Allocates.
  bool Start(uint32_t n_threads) {
    n_threads_ = n_threads;
    if (n_threads <= 1) return true;
    pool_ = pthreadpool_create(n_threads);
    return pool_ != nullptr;
  }
  void Stop() {
    if (pool_ != nullptr) pthreadpool_destroy(pool_);
    pool_ = nullptr;
  }
  uint32_t count() const { return n_threads_; }

  // body(begin, end) over [0, n) in pieces of at most `tile` that begin at multiples of `tile`.
  template <typename Body>
  void ForTiles(size_t n, size_t tile, const Body& body) const {
    if (pool_ == nullptr || n <= tile) {
      for (size_t i = 0; i < n; i += tile) body(i, i + tile < n ? i + tile : n);
      return;
    }
    pthreadpool_parallelize_1d_tile_1d(
        pool_,
        [](void* context, size_t begin, size_t count) {
          (*static_cast<const Body*>(context))(begin, begin + count);
        },
        const_cast<Body*>(&body), n, tile, /*flags=*/0);
  }

  // body(thread, i) for each i of [0, n); thread < count() says whose scratch to use.
  template <typename Body>
  void ForEach(size_t n, const Body& body) const {
    if (pool_ == nullptr || n <= 1) {
      for (size_t i = 0; i < n; ++i) body(0, i);
      return;
    }
    pthreadpool_parallelize_1d_with_thread(
        pool_,
        [](void* context, size_t thread, size_t i) {
          (*static_cast<const Body*>(context))(thread, i);
        },
        const_cast<Body*>(&body), n, /*flags=*/0);
  }

 private:
  pthreadpool_t pool_ = nullptr;
  uint32_t n_threads_ = 1;
};

}  // namespace arn::cpu
