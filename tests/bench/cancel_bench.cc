// Measures how long a call goes on after arn_session_cancel from another thread: prefill, greedy
// and sampled decoding of a decoder with random weights, made in memory. "cpu" is the time that the
// call's own thread runs: what the work between two looks takes, whatever else the machine does.
// usage: cancel_bench [135m|1b] [CANCELS] [THREADS] [LAYERS]
#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <thread>
#include <vector>

#include "tests/support/tiny_bundle.h"

#include <arenite/arenite.h>

namespace {

using Clock = std::chrono::steady_clock;
using arn::test::TinyBundle;

TinyBundle Geometry(bool is_large) {
  TinyBundle bundle;
  bundle.weights = arn::DType::kInt8;
  bundle.layers = is_large ? 16 : 30;
  bundle.hidden = is_large ? 2048 : 576;
  bundle.ffn = is_large ? 8192 : 1536;
  bundle.heads = is_large ? 32 : 9;
  bundle.kv_heads = is_large ? 8 : 3;
  bundle.head_dim = 64;
  bundle.vocab = is_large ? 128256 : 49152;
  bundle.max_context = 4096;
  return bundle;
}

[[noreturn]] void Die(const char* what, const char* why) {
  std::fprintf(stderr, "cancel_bench: %s: %s\n", what, why);
  std::exit(1);
}

double CpuMilliseconds(clockid_t clock) {
  timespec time = {};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

// Cancels calls at random times of their course.
class Canceller {
 public:
  explicit Canceller(arn_session* session) : session_(session) {}

  // Runs `call` n times. `usual_ms`: the time that it takes. `prepare`: called before each.
  void Measure(const char* name, int n, double usual_ms, const std::function<void()>& prepare,
               const std::function<arn_status()>& call) {
    std::vector<double> late, late_cpu;
    clockid_t clock;
    if (pthread_getcpuclockid(pthread_self(), &clock) != 0) Die("clock", "there is none");
    std::mt19937 rng(7);
    std::uniform_real_distribution<double> wait(0.02 * usual_ms, 0.9 * usual_ms);
    while (static_cast<int>(late.size()) < n) {
      prepare();
      arn_session_clear_cancel(session_);
      Clock::time_point cancelled;
      double cancelled_cpu = 0;
      const auto time = std::chrono::duration<double, std::milli>(wait(rng));
      std::thread other([&] {
        std::this_thread::sleep_for(time);
        cancelled = Clock::now();
        cancelled_cpu = CpuMilliseconds(clock);
        arn_session_cancel(session_);
      });
      const arn_status status = call();
      const Clock::time_point end = Clock::now();
      const double end_cpu = CpuMilliseconds(clock);
      other.join();
      if (status != ARN_CANCELLED && status != ARN_OK) Die(name, arn_session_last_error(session_));
      if (end < cancelled) continue;
      // A cancel that came too late to end the call has waited for its end, too.
      late.push_back(std::chrono::duration<double, std::milli>(end - cancelled).count());
      late_cpu.push_back(end_cpu - cancelled_cpu);
    }
    arn_session_clear_cancel(session_);
    std::printf("%-16s %6d", name, n);
    for (std::vector<double>* times : {&late, &late_cpu}) {
      std::sort(times->begin(), times->end());
      const size_t p99 = std::min(times->size() - 1, times->size() * 99 / 100);
      std::printf(" %8.2f %8.2f %8.2f", (*times)[times->size() / 2], (*times)[p99], times->back());
    }
    std::printf(" %10.1f\n", usual_ms);
    std::fflush(stdout);
  }

 private:
  arn_session* const session_;
};

double MillisecondsOf(const std::function<void()>& call) {
  const Clock::time_point begin = Clock::now();
  call();
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

}  // namespace

int main(int argc, char** argv) {
  const bool is_large = argc > 1 && std::strcmp(argv[1], "1b") == 0;
  const int n = argc > 2 ? std::atoi(argv[2]) : 200;
  TinyBundle geometry = Geometry(is_large);
  if (argc > 4) geometry.layers = static_cast<uint32_t>(std::atoi(argv[4]));
  const arn::test::BundleBytes bytes = arn::test::MakeTinyBundle(geometry);
  char error[512] = "";
  arn_model* model = nullptr;
  if (arn_model_open_memory(bytes.data(), bytes.size(), nullptr, error, sizeof error, &model) !=
      ARN_OK) {
    Die("open", error);
  }
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.context_tokens = 2048;
  options.n_threads = argc > 3 ? static_cast<uint32_t>(std::atoi(argv[3])) : 2;
  arn_session* session = nullptr;
  if (arn_session_create(model, &options, nullptr, 0, error, sizeof error, &session) != ARN_OK) {
    Die("session", error);
  }
  std::vector<int32_t> ids(512);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>((i * 7919 + 3) % 40000);
  const auto prefill = [&] { return arn_session_prefill(session, ids.data(), ids.size()); };
  const auto reset = [&] { arn_session_reset(session); };
  const double prefill_ms = MillisecondsOf([&] {
    if (prefill() != ARN_OK) Die("prefill", arn_session_last_error(session));
  });
  int32_t id = 0;
  const auto decode = [&] { return arn_session_decode(session, &id); };
  const auto decode_ms = [&] {
    return MillisecondsOf([&] {
             for (int i = 0; i < 8; ++i) decode();
           }) /
           8;
  };
  std::printf("%-16s %6s %8s %8s %8s %8s %8s %8s %10s\n", "ms", "n", "p50", "p99", "max", "cpu p50",
              "cpu p99", "cpu max", "uncancelled");
  Canceller canceller(session);
  canceller.Measure(
      "decode, greedy", n, decode_ms(), [] {}, decode);
  arn_sampling sampling = ARN_SAMPLING_INIT;
  sampling.temperature = 0.8f;
  arn_session_set_sampling(session, &sampling);
  canceller.Measure(
      "decode, sampled", n, decode_ms(), [] {}, decode);
  canceller.Measure("prefill", std::max(n / 4, 20), prefill_ms, reset, prefill);
  arn_session_destroy(session);
  arn_model_close(model);
  return 0;
}
