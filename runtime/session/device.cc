// Statistics of the session and its device, and pacing.
#include "kernels/contract/kv_page.h"
#include "kernels/contract/step_work.h"
#include "platform/os/clock.h"
#include "runtime/session/session.h"

namespace arn {

Status Session::OpenWatch(const SessionOptions& options, Diag* diag) {
  const PaceOptions& pace = options.pace;
  Pacer::World world;
  world.user = this;
  world.now_ns = [](void*) { return MonotonicNs(); };
  world.sleep_ns = [](void*, uint64_t ns) { SleepNs(ns); };
  world.thermal = [](void* self) {
    DeviceWatch& watch = static_cast<Session*>(self)->watch_;
    const uint64_t now = MonotonicNs();
    return ThermalState{watch.Hottest(now).millicelsius, watch.Headroom(now)};
  };
  pacer_.Init(pace, world);
  if (!options.sensors && pace.thermal_limit_mc == 0 && pace.thermal_headroom == 0) {
    return Status::kOk;
  }
  const char* root = options.system_root == nullptr ? "" : options.system_root;
  ARN_TRY(watch_.Open(root, options.thermal_zone, pace, diag));
  watch_.Sample(MonotonicNs());
  return Status::kOk;
}

Status Session::Pace(Span<const Part> parts) {
  if (!pacer_.is_on()) return Status::kOk;
  // A part with more than one token is a prompt chunk.
  uint32_t n_decoded = 0;
  for (const Part& part : parts) {
    if (part.ids.size() == 1) ++n_decoded;
  }
  const Status status = pacer_.Begin(n_decoded, cancel_);
  if (status != Status::kCancelled) return status;
  cancel_.store(0, std::memory_order_relaxed);
  return RunError(status, parts[0].sequence);
}

// Counts weight and KV bytes of a run. Weight bytes depend only on the shape of the run, and most
// runs have the shape of the previous one; those recount only steps that read KV or state.
void Session::CountWork(const RunArgs& args) {
  const bool is_like_last =
      !args.is_encoder && !args.tokens.empty() && args.tokens.size() == counted_.n_tokens &&
      args.sequences.size() == counted_.n_sequences && args.logit_rows == counted_.logit_rows;
  if (!is_like_last) counted_ = {};
  for (const Step& step : StepsOf(plan_.program, args.is_encoder)) {
    const bool reads_cache =
        step.op == Op::kAttention || step.op == Op::kConv || step.op == Op::kScan;
    if (is_like_last && !reads_cache) continue;
    const StepWork work = WorkOf(plan_.program, step, args);
    stats_.kv_bytes_read += work.kv_bytes;
    if (!is_like_last) counted_.weight_bytes += work.weight_bytes;
  }
  stats_.weight_bytes_read += counted_.weight_bytes;
  if (args.is_encoder) {
    counted_ = {};
    return;
  }
  counted_.n_tokens = args.tokens.size();
  counted_.n_sequences = args.sequences.size();
  counted_.logit_rows = args.logit_rows;
}

void Session::ResetStats() {
  stats_ = SessionStats();
  pacer_.ResetStats();
  kv_pager_.ResetStats();
  watch_.ResetEnergy(MonotonicNs());
}

ThreadCpus Session::ReadCpus() const {
  ThreadCpus out;
  if (in_use_->backend->read_cpus != nullptr) in_use_->backend->read_cpus(in_use_->state, &out);
  return out;
}

DeviceWatch& Session::Watch() const {
  watch_.Sample(MonotonicNs());
  return watch_;
}

uint64_t Session::WeightBytesPerToken() const {
  const Program& program = plan_.program;
  uint64_t bytes = 0;
  for (const Step& step : StepsOf(program, false)) {
    if (step.op == Op::kEmbed) continue;
    if (step.op == Op::kExperts) {
      bytes += step.n_chosen *
               (program.weights[step.weight].bytes + program.weights[step.weight + 1].bytes);
      continue;
    }
    for (WeightId id : {step.weight, step.norm, step.bias, step.q_norm, step.k_norm, step.skip}) {
      if (id != kNoWeight) bytes += program.weights[id].bytes;
    }
  }
  return bytes;
}

uint64_t Session::KvBytesReadPerToken() const {
  const Program& program = plan_.program;
  uint64_t bytes = 0;
  for (const Step& step : program.steps) {
    if (step.op != Op::kAttention) continue;
    const AttentionKind& kind = program.kinds[step.kind];
    const KvGroup& group = program.kv_groups[kind.group];
    if (kind.is_cross_attention) {
      bytes +=
          uint64_t{cache_.encoder_rows(selected_)} * group.active.layer_bytes / group.page_tokens;
      continue;
    }
    const uint32_t first = FirstSeen(length(), kind, group, cache_.tables(selected_)[kind.group]);
    const uint64_t seen = length() - first;
    const KvPages& pages = group.quantised.n_pages != 0 ? group.quantised : group.active;
    bytes += seen * pages.layer_bytes / group.page_tokens;
  }
  for (const KvGroup& group : program.kv_groups) {
    if (group.state_floats != 0) bytes += group.active.page_bytes;
  }
  return bytes;
}

}  // namespace arn
