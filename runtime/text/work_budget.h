// WorkBudget: step limit and cancellation of one call.
#pragma once

#include <cstdint>

#include "platform/base/diag.h"
#include "platform/base/status.h"

namespace arn {

class WorkBudget {
 public:
  // max_steps: steps of regular expressions. stop: called periodically, non-zero ends the call; may
  // be null.
  WorkBudget(uint64_t max_steps, int (*stop)(void*), void* user)
      : max_steps_(max_steps), stop_(stop), user_(user) {}

  // Returns false if the call must end.
  bool Spend(uint64_t steps) {
    if (steps > max_steps_ - steps_) {
      is_spent_ = true;
      return false;
    }
    steps_ += steps;
    return Pass(steps);
  }
  // Reports uncounted work that is linear in the text, in bytes.
  bool Pass(uint64_t bytes) {
    since_asked_ += bytes;
    return stop_ == nullptr || since_asked_ < kAskEvery || Ask();
  }

  // Writes the reason for the end.
  Status Fail(Diag* diag) const {
    if (!is_spent_) return diag->Fail(Status::kCancelled, "tokenizing was cancelled");
    return diag->Fail(Status::kUnsupported,
                      "the tokenizer's regular expressions take more than %llu steps on this text",
                      static_cast<unsigned long long>(max_steps_));
  }

 private:
  static constexpr uint64_t kAskEvery = 16384;
  bool Ask() {
    since_asked_ = 0;
    return stop_(user_) == 0;
  }

  const uint64_t max_steps_;
  int (*const stop_)(void*);
  void* const user_;
  uint64_t steps_ = 0;
  uint64_t since_asked_ = kAskEvery;  // polls at once the first time
  bool is_spent_ = false;
};

}  // namespace arn
