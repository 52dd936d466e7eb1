// Pacer: lets a session sleep between its runs, so that it makes no more tokens than are wanted and
// a device that is hot has time to cool.
#pragma once

#include <atomic>
#include <cstdint>

#include "platform/base/status.h"
#include "runtime/memory/session_plan.h"

namespace arn {

// How warm the device is.
struct Heat {
  int32_t millicelsius = INT32_MIN;  // of the hottest zone; INT32_MIN: not known
  float headroom = -1;               // Android's; less than 0: not known
};

class Pacer {
 public:
  // What a session asks for time, sleep and heat; tests have their own.
  struct World {
    void* user = nullptr;
    uint64_t (*now_ns)(void* user) = nullptr;
    // May return early; the Pacer looks at the clock again.
    void (*sleep_ns)(void* user, uint64_t ns) = nullptr;
    // Asked every kHeatLookNs at most, and only when there is a limit.
    Heat (*heat)(void* user) = nullptr;
  };

  // Between two looks at how warm the device is.
  static constexpr uint64_t kHeatLookNs = 500 * 1000 * 1000;
  // A hot device is so until it is this much below the limit.
  static constexpr int32_t kCoolerMillicelsius = 3000;
  static constexpr float kCoolerHeadroom = 0.05f;
  // The longest sleep between two looks at whether the call is cancelled.
  static constexpr uint64_t kNapNs = 5 * 1000 * 1000;

  void Init(const PaceOptions& options, const World& world);
  bool is_on() const { return options_.max_tokens_per_s > 0 || HasHeatLimit(); }

  // Sleeps until a run may begin that decodes n_decoded tokens (0: one of a prompt). kCancelled
  // when `cancel` is or becomes non-zero; it is left as it is.
  Status Begin(uint32_t n_decoded, const std::atomic<uint32_t>& cancel);
  // That run is over, well or not.
  void End();

  bool is_hot() const { return is_hot_; }
  // Slept, since Init() or ResetStats(); and the part of it that was for the heat.
  uint64_t slept_ns() const { return slept_ns_; }
  uint64_t cooled_ns() const { return cooled_ns_; }
  void ResetStats() { slept_ns_ = cooled_ns_ = 0; }

 private:
  bool HasHeatLimit() const { return options_.heat_limit_mc != 0 || options_.heat_headroom > 0; }
  void LookAtHeat(uint64_t now);
  Status SleepUntil(uint64_t until, const std::atomic<uint32_t>& cancel, uint64_t* slept);

  PaceOptions options_;
  World world_;
  bool is_hot_ = false;
  bool has_looked_ = false;
  uint64_t looked_at_ = 0;
  uint64_t began_at_ = 0;
  uint64_t cool_until_ = 0;  // after the last run
  uint64_t due_at_ = 0;      // when the cap allows the next token
  uint64_t slept_ns_ = 0, cooled_ns_ = 0;
};

}  // namespace arn
