#include "runtime/memory/placement.h"

#include "platform/base/arith.h"

namespace arn {
namespace {

// Tokens per second: a pause lasts at most 1000 s.
constexpr float kMinPace = 0.001f;
constexpr float kMaxPace = 1e6f;
// Millidegrees Celsius.
constexpr int32_t kMinThermalLimit = 20 * 1000;
constexpr int32_t kMaxThermalLimit = 150 * 1000;
constexpr float kMaxHeadroom = 10;

}  // namespace

Status PlaceThreads(const Backend& backend, SessionPlan* plan, Diag* diag) {
  SessionOptions& options = plan->options;
  plan->topology = ReadTopology(options.system_root == nullptr ? "" : options.system_root);
  const Topology& topology = plan->topology;
  const CpuMask mask = CpuMask::Of(options.cpu_mask);
  const bool is_asked = options.cpus == CpuChoice::kPerformance || options.cpus == CpuChoice::kMask;
  if (is_asked && backend.threads == nullptr) {
    return diag->Fail(Status::kUnsupported, "cpus: the %s backend has no threads to place",
                      backend.name);
  }
  if ((options.cpus == CpuChoice::kMask) != (options.cpu_mask != 0)) {
    return diag->Fail(Status::kBadArgument,
                      "cpu_mask has %u CPUs, expected some with ARN_CPUS_MASK and none without",
                      mask.count());
  }
  if (!mask.IsWithin(topology.allowed)) {
    return diag->Fail(Status::kUnsupported,
                      "cpu_mask 0x%llx has CPUs that the process may not use: of the first 64 it "
                      "may use 0x%llx",
                      static_cast<unsigned long long>(options.cpu_mask),
                      static_cast<unsigned long long>(topology.allowed.word(0)));
  }
  plan->cpus = topology.performance;
  if (options.cpus == CpuChoice::kAll) plan->cpus = topology.allowed;
  if (options.cpus == CpuChoice::kMask) plan->cpus = mask;
  if (options.n_threads == 0) {
    options.n_threads = Min(Max(plan->cpus.count(), 1u), kMaxThreads);
  }
  if (options.n_prefill_threads == 0) options.n_prefill_threads = options.n_threads;
  plan->keeps_cpus =
      is_asked || (options.cpus == CpuChoice::kAuto && backend.threads != nullptr &&
                   topology.keeps(Max(options.n_threads, options.n_prefill_threads)));
  return Status::kOk;
}

Status CheckPace(PaceOptions* pace, Diag* diag) {
  if (!(pace->max_tokens_per_s >= 0 && pace->max_tokens_per_s <= kMaxPace) ||
      (pace->max_tokens_per_s > 0 && pace->max_tokens_per_s < kMinPace)) {
    return diag->Fail(Status::kBadArgument, "max_tokens_per_s is %g, expected 0, or %g to %g",
                      static_cast<double>(pace->max_tokens_per_s), static_cast<double>(kMinPace),
                      static_cast<double>(kMaxPace));
  }
  if (!(pace->thermal_headroom >= 0 && pace->thermal_headroom <= kMaxHeadroom)) {
    return diag->Fail(Status::kBadArgument, "thermal_headroom is %g, expected 0 to %g",
                      static_cast<double>(pace->thermal_headroom),
                      static_cast<double>(kMaxHeadroom));
  }
  if (pace->thermal_limit_mc != 0 &&
      (pace->thermal_limit_mc < kMinThermalLimit || pace->thermal_limit_mc > kMaxThermalLimit)) {
    return diag->Fail(Status::kBadArgument,
                      "thermal_limit_mc is %d, expected 0, or %d to %d thousandths of a degree",
                      pace->thermal_limit_mc, kMinThermalLimit, kMaxThermalLimit);
  }
  if (pace->thermal_duty_percent > 99) {
    return diag->Fail(Status::kBadArgument, "thermal_duty_percent is %u, expected 0, or 1 to 99",
                      pace->thermal_duty_percent);
  }
  const bool has_limit = pace->thermal_limit_mc != 0 || pace->thermal_headroom > 0;
  if (pace->thermal_duty_percent != 0 && !has_limit) {
    return diag->Fail(Status::kBadArgument,
                      "thermal_duty_percent is %u, but no thermal limit is set",
                      pace->thermal_duty_percent);
  }
  if (pace->thermal_duty_percent == 0) pace->thermal_duty_percent = kDefaultThermalDuty;
  return Status::kOk;
}

}  // namespace arn
