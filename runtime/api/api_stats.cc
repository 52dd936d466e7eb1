// Implements arn_session_stats.
#include <cstring>

#include "platform/os/clock.h"
#include "runtime/api/handles.h"

using namespace arn;       // NOLINT(google-build-using-namespace): the entry points below are C
using namespace arn::api;  // NOLINT(google-build-using-namespace)

namespace arn::api {
namespace {

#define ARN_SAME(c_name, cpp_name) \
  static_assert(static_cast<uint32_t>(c_name) == static_cast<uint32_t>(EnergySource::cpp_name))
ARN_SAME(ARN_ENERGY_NONE, kNone);
ARN_SAME(ARN_ENERGY_RAPL, kRapl);
ARN_SAME(ARN_ENERGY_BOARD_COUNTER, kHwmonEnergy);
ARN_SAME(ARN_ENERGY_BOARD_POWER, kHwmonPower);
ARN_SAME(ARN_ENERGY_BATTERY_POWER, kBatteryPower);
ARN_SAME(ARN_ENERGY_BATTERY_LEFT, kBatteryEnergy);
#undef ARN_SAME
static_assert(sizeof(arn_session_stats_data::energy_name) == EnergyMeter::kNameBytes);

double PerSecond(uint64_t count, uint64_t ns) {
  return ns == 0 ? 0 : static_cast<double>(count) * 1e9 / static_cast<double>(ns);
}

void FillDevice(const Session& s, arn_session_stats_data* out) {
  out->is_hot = s.throttle().pacer().is_hot() ? 1 : 0;
  DeviceWatch& watch = s.throttle().ReadWatch();
  if (!watch.is_open()) return;
  const EnergyMeter& energy = watch.energy();
  out->energy_uj = energy.microjoules();
  out->energy_ns = energy.counted_ns();
  out->power_uw = energy.microwatts();
  out->energy_source = static_cast<uint32_t>(energy.source());
  std::memcpy(out->energy_name, energy.name(), sizeof out->energy_name);
  out->n_thermal_zones = watch.zones().count();
  const uint64_t now = MonotonicNs();
  const DeviceWatch::Temperature hottest = watch.Hottest(now);
  out->temperature_mc = hottest.millicelsius;
  out->hottest_zone = hottest.zone;
  out->thermal_headroom = watch.Headroom(now);
}

}  // namespace
}  // namespace arn::api

extern "C" {

arn_status arn_session_stats(const arn_session* session, arn_session_stats_data* out_stats) {
  if (session == nullptr) return ARN_BAD_ARGUMENT;
  const Session& s = *ToSession(session);
  const SessionPlan& plan = s.plan();
  const Sequences& sequences = s.sequences();
  arn_session_stats_data out = ARN_SESSION_STATS_INIT;
  out.prefill_tokens = s.stats().prefill_tokens;
  out.prefill_ns = s.stats().prefill_ns;
  out.decode_tokens = s.stats().decode_tokens;
  out.decode_ns = s.stats().decode_ns;
  out.create_ns = s.create_ns();
  out.weight_bytes_per_token = WeightBytesPerToken(plan.program);
  out.kv_bytes_read_per_token =
      KvBytesReadPerToken(plan.program, sequences.cache(), sequences.selected());
  out.kv_used_bytes = sequences.KvUsedBytes();
  out.constants_used_bytes = plan.RegionBytes(Region::kConstants);
  out.activations_used_bytes = plan.RegionBytes(Region::kActivations);
  out.io_used_bytes = plan.RegionBytes(Region::kIo);
  out.kv_capacity_bytes = plan.RegionBytes(Region::kKv);
  out.prefill_tokens_per_s = PerSecond(out.prefill_tokens, out.prefill_ns);
  out.decode_tokens_per_s = PerSecond(out.decode_tokens, out.decode_ns);
  out.weight_bytes_read = s.stats().weight_bytes_read;
  out.kv_bytes_read = s.stats().kv_bytes_read;
  out.paced_ns = s.throttle().pacer().slept_ns();
  out.cooled_ns = s.throttle().pacer().cooled_ns();
  out.kv_file_bytes_read = s.kv_file_stats().bytes_read;
  out.kv_file_bytes_written = s.kv_file_stats().bytes_written;
  out.kv_file_wait_ns = s.kv_file_stats().waited_ns;
  out.recomputed_tokens = s.stats().recomputed_tokens;
  out.n_state_snapshots =
      static_cast<uint32_t>(sequences.cache().snapshots().places(sequences.selected()).size());
  out.guess_runs = s.stats().guess_runs;
  out.guesses_proposed = s.stats().guesses_proposed;
  out.guesses_accepted = s.stats().guesses_accepted;
  out.draft_ns = s.stats().draft_ns;
  FillDevice(s, &out);
  return ToC(WriteStruct(out, out_stats));
}

arn_status arn_session_reset_stats(arn_session* session) {
  if (session == nullptr) return ARN_BAD_ARGUMENT;
  return BesideScheduler(session, [](Session& s) {
    s.ResetStats();
    return Status::kOk;
  });
}

}  // extern "C"
