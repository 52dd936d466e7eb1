#include "runtime/session/pacer.h"

#include "platform/base/arith.h"
#include "platform/base/result.h"

namespace arn {

void Pacer::Init(const PaceOptions& options, const World& world) {
  *this = Pacer();
  options_ = options;
  world_ = world;
}

void Pacer::UpdateThermalState(uint64_t now) {
  if (!HasThermalLimit() || (has_looked_ && now - looked_at_ < kThermalCheckNs)) return;
  has_looked_ = true;
  looked_at_ = now;
  const ThermalState thermal = world_.thermal(world_.user);
  const int64_t limit_mc = int64_t{options_.thermal_limit_mc} - (is_hot_ ? kCoolerMillicelsius : 0);
  const float limit = options_.thermal_headroom - (is_hot_ ? kCoolerHeadroom : 0);
  const bool is_warm = options_.thermal_limit_mc != 0 && thermal.millicelsius != INT32_MIN &&
                       thermal.millicelsius >= limit_mc;
  is_hot_ = is_warm || (options_.thermal_headroom > 0 && thermal.headroom >= limit);
}

Status Pacer::SleepUntil(uint64_t until, const std::atomic<uint32_t>& cancel, uint64_t* slept) {
  const uint64_t start = world_.now_ns(world_.user);
  uint64_t now = start;
  bool is_cancelled = cancel.load(std::memory_order_relaxed) != 0;
  while (now < until && !is_cancelled) {
    world_.sleep_ns(world_.user, Min(until - now, kNapNs));
    now = world_.now_ns(world_.user);
    is_cancelled = cancel.load(std::memory_order_relaxed) != 0;
  }
  *slept = now - start;
  return is_cancelled ? Status::kCancelled : Status::kOk;
}

Status Pacer::Begin(uint32_t n_decoded, const std::atomic<uint32_t>& cancel) {
  if (!is_on()) return Status::kOk;
  UpdateThermalState(world_.now_ns(world_.user));
  uint64_t slept = 0;
  if (is_hot_) {
    const Status status = SleepUntil(cool_until_, cancel, &slept);
    cooled_ns_ += slept;
    slept_ns_ += slept;
    ARN_TRY(status);
  }
  if (options_.max_tokens_per_s > 0 && n_decoded > 0) {
    const Status status = SleepUntil(due_at_, cancel, &slept);
    slept_ns_ += slept;
    ARN_TRY(status);
    // Catches up a delay of less than one token; longer delays are not saved up.
    const uint64_t now = world_.now_ns(world_.user);
    const double ns = 1e9 * n_decoded / static_cast<double>(options_.max_tokens_per_s);
    const auto interval = static_cast<uint64_t>(ns);
    due_at_ = (now - due_at_ < interval ? due_at_ : now) + interval;
  }
  began_at_ = world_.now_ns(world_.user);
  return Status::kOk;
}

void Pacer::End() {
  if (!HasThermalLimit()) return;
  const uint64_t now = world_.now_ns(world_.user);
  const uint64_t percent = options_.thermal_duty_percent;
  cool_until_ = now + (now - began_at_) * (100 - percent) / percent;
}

}  // namespace arn
