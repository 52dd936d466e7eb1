// Pacer: sleeps between runs to cap the token rate and to let a hot device cool.
#pragma once

#include <atomic>
#include <cstdint>

#include "platform/base/status.h"
#include "runtime/memory/session_plan.h"

namespace arn {

// Temperature reading.
struct ThermalState {
  int32_t millicelsius = INT32_MIN;  // of the hottest zone; INT32_MIN: unknown
  float headroom = -1;               // Android's thermal headroom; negative: unknown
};

class Pacer {
 public:
  // Clock, sleep and sensors of the session; replaced in tests.
  struct World {
    void* user = nullptr;
    uint64_t (*now_ns)(void* user) = nullptr;
    // May return early; the Pacer checks the clock again.
    void (*sleep_ns)(void* user, uint64_t ns) = nullptr;
    // Called at most once per kThermalCheckNs, and only if a limit is set.
    ThermalState (*thermal)(void* user) = nullptr;
  };

  // Interval between temperature readings.
  static constexpr uint64_t kThermalCheckNs = 500 * 1000 * 1000;
  // Hysteresis: throttling ends this far below the limit.
  static constexpr int32_t kCoolerMillicelsius = 3000;
  static constexpr float kCoolerHeadroom = 0.05f;
  // Longest sleep between checks of the cancel flag.
  static constexpr uint64_t kNapNs = 5 * 1000 * 1000;

  void Init(const PaceOptions& options, const World& world);
  bool is_on() const { return options_.max_tokens_per_s > 0 || HasThermalLimit(); }

  // Sleeps until a run that decodes n_decoded tokens may begin (0: a prompt chunk). Returns
  // kCancelled if `cancel` is or becomes non-zero; does not clear it.
  Status Begin(uint32_t n_decoded, const std::atomic<uint32_t>& cancel);
  // Call after every run, even a failed one.
  void End();

  bool is_hot() const { return is_hot_; }
  // Time slept since Init() or ResetStats(), and the part due to thermal throttling.
  uint64_t slept_ns() const { return slept_ns_; }
  uint64_t cooled_ns() const { return cooled_ns_; }
  void ResetStats() { slept_ns_ = cooled_ns_ = 0; }

 private:
  bool HasThermalLimit() const {
    return options_.thermal_limit_mc != 0 || options_.thermal_headroom > 0;
  }
  void UpdateThermalState(uint64_t now);
  Status SleepUntil(uint64_t until, const std::atomic<uint32_t>& cancel, uint64_t* slept);

  PaceOptions options_;
  World world_;
  bool is_hot_ = false;
  bool has_looked_ = false;
  uint64_t looked_at_ = 0;
  uint64_t began_at_ = 0;
  uint64_t cool_until_ = 0;  // end of the cooling pause after the last run
  uint64_t due_at_ = 0;      // earliest time of the next token under the rate limit
  uint64_t slept_ns_ = 0, cooled_ns_ = 0;
};

}  // namespace arn
