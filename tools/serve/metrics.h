// Metrics: what the server counted, as Prometheus reads it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

namespace arn::serve {

struct Metrics {
  std::atomic<uint64_t> requests{0};  // answered, by any status
  std::atomic<uint64_t> refused{0};   // 429: no place in the queue
  std::atomic<uint64_t> failed{0};    // 5xx
  std::atomic<uint64_t> aborted{0};   // replies whose client went away
  std::atomic<uint64_t> timed_out{0};
  std::atomic<uint64_t> prompt_tokens{0};
  std::atomic<uint64_t> cached_tokens{0};  // part of prompt_tokens that was not computed
  std::atomic<uint64_t> reply_tokens{0};
  std::atomic<uint64_t> steps{0};                  // runs that decoded
  std::atomic<uint64_t> proposed{0}, accepted{0};  // guesses
  std::atomic<uint64_t> put_off{0};                // steps that a reply's constraint sat out
  std::atomic<uint64_t> busy_ns{0};                // time in the model
  std::atomic<uint64_t> evictions{0};              // kept sequences dropped for others
  std::atomic<uint64_t> states_saved{0}, states_restored{0}, states_skipped{0};
  std::atomic<uint64_t> states_kept{0}, states_bytes{0};
};

// Adds the time of its scope to busy_ns.
class BusyTime {
 public:
  explicit BusyTime(Metrics* metrics)
      : metrics_(*metrics), start_(std::chrono::steady_clock::now()) {}
  ~BusyTime() {
    metrics_.busy_ns += static_cast<uint64_t>((std::chrono::steady_clock::now() - start_).count());
  }
  BusyTime(const BusyTime&) = delete;
  BusyTime& operator=(const BusyTime&) = delete;

 private:
  Metrics& metrics_;
  std::chrono::steady_clock::time_point start_;
};

struct SchedulerStatus;
// Returns the text of /metrics, format 0.0.4.
std::string MetricsText(const Metrics& metrics, const SchedulerStatus& status);
// Returns the resident memory of this process; 0 if unknown.
uint64_t ResidentBytes();

}  // namespace arn::serve
