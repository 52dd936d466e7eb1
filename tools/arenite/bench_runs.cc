#include "tools/arenite/bench_runs.h"

#include <algorithm>
#include <ctime>
#include <memory>

#include "tools/arenite/io.h"

namespace arn::tool {
namespace {

// Clock of /proc/uptime, so that other tools' samples can be aligned with a run.
double UptimeSeconds() {
  timespec now;
  clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

// Returns token ids spread over the vocabulary, the same in each run (splitmix64).
std::vector<int32_t> SomeIds(size_t n, uint32_t vocab) {
  std::vector<int32_t> ids;
  uint64_t state = 1;
  for (size_t i = 0; i < n; ++i) {
    uint64_t z = state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    ids.push_back(static_cast<int32_t>((z ^ (z >> 31)) % vocab));
  }
  return ids;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

}  // namespace

const char* NameOf(CaseKind kind) {
  switch (kind) {
    case CaseKind::kEncode: return "encode";
    case CaseKind::kPrefill: return "prefill";
    case CaseKind::kDecode: break;
  }
  return "decode";
}

double Measurement::joules_per_token() const {
  if (energy_ns == 0 || energy_uj == 0 || total_tokens == 0) return 0;
  return static_cast<double>(energy_uj) / 1e6 / static_cast<double>(energy_ns) *
         static_cast<double>(total_ns) / static_cast<double>(total_tokens);
}

Bench::Bench(const Session& session, const EncoderInput& encoder_input, uint32_t vocab,
             uint32_t n_sequences, bool schedules)
    : session_(session), encoder_input_(encoder_input), vocab_(vocab), schedules_(schedules) {
  for (uint32_t i = 0; i < n_sequences; ++i) sequences_.push_back(i);
}

Measurement Bench::Run(const Case& what, uint32_t repeats, double seconds, bool with_profile) {
  Measurement m;
  m.what = what;
  RunOnce(what, &m);  // warm-up: caches, page tables, clock frequency
  m = Measurement();
  m.what = what;
  const double end = UptimeSeconds() + seconds;
  for (uint32_t i = 0; i < repeats || UptimeSeconds() < end; ++i) RunOnce(what, &m);
  std::vector<double> speeds;
  for (const TimedRun& run : m.runs) speeds.push_back(run.tokens_per_s);
  m.median = Median(speeds);
  m.lowest = *std::min_element(speeds.begin(), speeds.end());
  m.highest = *std::max_element(speeds.begin(), speeds.end());
  m.device = ReadDevice(session_);
  // Encoding has no profile: arn_session_profile() counts the steps of runs.
  if (with_profile && what.kind != CaseKind::kEncode) {
    Measurement once = m;
    RunOnce(what, &once, &m.profile);
  }
  return m;
}

void Bench::Begin(const std::vector<int32_t>& ids, size_t n) {
  for (const uint32_t sequence : sequences_) {
    session_.Check(arn_session_select(session_.get(), sequence));
    if (sequence >= n || ids.empty()) session_.Check(arn_session_reset(session_.get()));
    if (sequence >= n) continue;
    encoder_input_.Encode(session_);
    if (ids.empty()) continue;
    session_.Check(arn_session_follow(session_.get(), ids.data(), ids.size(), nullptr));
  }
  session_.Check(arn_session_select(session_.get(), 0));
  session_.Check(arn_session_reset_stats(session_.get()));
}

void Bench::EncodeOnce(Measurement* m) {
  session_.Check(arn_session_select(session_.get(), 0));
  session_.Check(arn_session_reset(session_.get()));
  const double start = UptimeSeconds();
  encoder_input_.Encode(session_);
  const double end = UptimeSeconds();
  const auto ns = static_cast<uint64_t>((end - start) * 1e9);
  m->runs.push_back({end, PerSecond(m->what.tokens, ns), session_.Stats().temperature_mc});
  m->total_tokens += m->what.tokens;
  m->total_ns += ns;
}

void Bench::RunOnce(const Case& what, Measurement* m, std::optional<Profile>* profile) {
  if (what.kind == CaseKind::kEncode) {
    EncodeOnce(m);
    return;
  }
  const bool is_prefill = what.kind == CaseKind::kPrefill;
  // Decoding needs a token to start from.
  const uint32_t before = is_prefill ? what.depth : std::max(what.depth, 1u);
  const std::vector<int32_t> ids = SomeIds(before + what.tokens, vocab_);
  Begin({ids.begin(), ids.begin() + before}, is_prefill ? 1 : sequences_.size());
  std::optional<Profiler> profiler;
  if (profile != nullptr) profiler.emplace(session_);
  if (is_prefill) {
    session_.Check(arn_session_prefill(session_.get(), ids.data() + before, what.tokens));
  } else {
    m->bytes_per_token = schedules_ ? Schedule({ids.begin(), ids.begin() + before}, what.tokens)
                                    : DecodeAll(what.tokens);
  }
  const arn_session_stats_data stats = session_.Stats();
  const uint64_t tokens = is_prefill ? stats.prefill_tokens : stats.decode_tokens;
  const uint64_t ns = is_prefill ? stats.prefill_ns : stats.decode_ns;
  if (profiler) *profile = profiler->Take(tokens, ns);
  m->runs.push_back({UptimeSeconds(), PerSecond(tokens, ns), stats.temperature_mc});
  m->total_tokens += tokens;
  m->total_ns += ns;
  m->energy_uj += stats.energy_uj;
  m->energy_ns += stats.energy_ns;
}

double Bench::BytesOfStep() const {
  const arn_session_stats_data stats = session_.Stats();
  // A decode step reads the weights once for the whole batch.
  return static_cast<double>(stats.weight_bytes_per_token) /
             static_cast<double>(sequences_.size()) +
         static_cast<double>(stats.kv_bytes_read_per_token);
}

double Bench::DecodeAll(uint32_t n_tokens) {
  if (sequences_.size() == 1) return GenerateAll(n_tokens);
  std::vector<int32_t> out(sequences_.size());
  double bytes = 0;
  for (uint32_t i = 0; i < n_tokens; ++i) {
    session_.Check(
        arn_session_decode_batch(session_.get(), sequences_.data(), sequences_.size(), out.data()));
    bytes += BytesOfStep();
  }
  return bytes / n_tokens;
}

double Bench::Schedule(const std::vector<int32_t>& prompt, uint32_t n_tokens) {
  arn_scheduler* created = nullptr;
  session_.Check(arn_scheduler_create(session_.get(), nullptr, nullptr, 0, &created));
  const std::unique_ptr<arn_scheduler, decltype(&arn_scheduler_destroy)> scheduler(
      created, arn_scheduler_destroy);
  arn_request request = ARN_REQUEST_INIT;
  request.ids = prompt.data();
  request.n_ids = prompt.size();
  request.max_tokens = n_tokens + 1;  // the last one does not run
  request.ignore_eos = 1;
  for (size_t i = 0; i < sequences_.size(); ++i) {
    uint64_t number = 0;
    session_.Check(arn_scheduler_submit(scheduler.get(), &request, &number));
  }
  arn_step_result step = ARN_STEP_RESULT_INIT;
  double bytes = 0;
  do {
    session_.Check(arn_scheduler_step(scheduler.get(), &step));
    if (step.n_rows != 0) bytes += BytesOfStep();
    arn_scheduler_event event = ARN_SCHEDULER_EVENT_INIT;
    while (arn_scheduler_next_event(scheduler.get(), &event) == ARN_OK)
      session_.Check(event.status);
  } while (step.n_running + step.n_waiting > 0);
  return bytes / n_tokens;
}

void Bench::Generate(uint32_t n_tokens) {
  arn_generate_options options = ARN_GENERATE_OPTIONS_INIT;
  options.max_tokens = n_tokens;
  options.ignore_eos = 1;
  arn_generate_result result = ARN_GENERATE_RESULT_INIT;
  session_.Check(arn_session_generate(session_.get(), &options, &result));
  if (result.n_tokens == n_tokens) return;
  throw Error(
      Format("%u of %u tokens were generated: the context is full", result.n_tokens, n_tokens));
}

double Bench::GenerateAll(uint32_t n_tokens) {
  // Reads the bytes per step only at the end of each chunk and interpolates linearly, which is
  // exact except where a sliding window begins.
  constexpr uint32_t kPiece = 64;
  Generate(1);
  double last = BytesOfStep(), bytes = last;
  for (uint32_t done = 1; done < n_tokens;) {
    const uint32_t n = std::min(kPiece, n_tokens - done);
    Generate(n);
    const double before = last;
    last = BytesOfStep();
    bytes += (n * (before + last) + last - before) / 2;
    done += n;
  }
  return bytes / n_tokens;
}

}  // namespace arn::tool
