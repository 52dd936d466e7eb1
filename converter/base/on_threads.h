// Runs a loop on several threads.
#pragma once

#include <cstddef>
#include <future>
#include <vector>

namespace arn::convert {

// Calls body(begin, step) for begin = 0 .. step - 1 with step = `threads`, each on a thread; one of
// them is the caller's. Each is to do the items begin, begin + step, ... of the loop. Throws what a
// body throws.
template <typename Body>
void OnThreads(size_t threads, const Body& body) {
  std::vector<std::future<void>> others;
  for (size_t t = 1; t < threads; ++t) {
    others.push_back(std::async(std::launch::async, body, t, threads));
  }
  body(size_t{0}, threads);
  for (std::future<void>& other : others) other.get();
}

}  // namespace arn::convert
