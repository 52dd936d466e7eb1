// Kernel micro-benchmarks with Google Benchmark, in GB/s and GOP/s. Build and run:
//
//   cmake --build --preset release --target micro_bench
//   build/release/bin/bench/micro_bench --benchmark_filter=matmul/int8 [--threads 2]
//       [--simd AVX2]                   (as on a CPU without newer instruction sets)
//       [--bundle F.arn --text F.txt]   (for the tokenizer)
//
// --simd does not limit the matmuls, whose kernels XNNPACK chooses.
// Except for quantisation, sampling, tokenizers and constraints, each benchmark times a step of a
// Program on the CPU backend as a model runs it, including the dispatch to the thread pool.
#include "micro.h"

#include <hwy/highway.h>
#include <hwy/targets.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "kernels/contract/step_work.h"
#include "kernels/cpu/backend_cpu.h"
#include "platform/base/arith.h"

namespace arn::bench {
namespace {

Settings settings;

// Limits the kernels to one of Highway's targets, named as hwy::TargetName() does, and older ones.
void LimitTo(const std::string& name) {
  const int64_t supported = hwy::SupportedTargets();
  for (int64_t rest = supported; rest != 0; rest &= rest - 1) {
    const int64_t target = rest & -rest;
    // The bits of newer targets are lower.
    if (name == hwy::TargetName(target)) return hwy::SetSupportedTargetsForTest(rest);
  }
  std::fprintf(stderr, "error: --simd %s: this CPU has", name.c_str());
  for (int64_t rest = supported; rest != 0; rest &= rest - 1) {
    std::fprintf(stderr, " %s", hwy::TargetName(rest & -rest));
  }
  std::fprintf(stderr, "\n");
  std::exit(1);
}

// Removes the options of this program from the command line.
void ReadSettings(int* argc, char** argv) {
  int kept = 1;
  for (int i = 1; i < *argc; ++i) {
    const std::string name = argv[i];
    const bool is_ours =
        name == "--threads" || name == "--simd" || name == "--bundle" || name == "--text";
    if (!is_ours || i + 1 == *argc) {
      argv[kept++] = argv[i];
      continue;
    }
    const char* value = argv[++i];
    if (name == "--threads") settings.n_threads = static_cast<uint32_t>(std::atoi(value));
    if (name == "--simd") LimitTo(value);
    if (name == "--bundle") settings.bundle = value;
    if (name == "--text") settings.text = value;
  }
  *argc = kept;
}

}  // namespace

const Settings& TheSettings() { return settings; }

StepBench::StepBench(conformance::ProgramBuilder* builder, uint32_t n_before, uint32_t n_rows)
    : rng_(3),
      session_(CpuBackend(), builder, settings.n_threads),
      batch_(session_.program(), {{n_before, n_rows}}, &rng_) {}

void StepBench::Run(benchmark::State& state) {
  const RunArgs args = batch_.Args();
  StepWork work;
  for (const Step& step : session_.program().steps) work += WorkOf(session_.program(), step, args);
  for (auto _ : state) {
    if (session_.Run(args) != Status::kOk) {
      state.SkipWithError(session_.message());
      return;
    }
  }
  SetRates(state, static_cast<double>(work.weight_bytes + work.kv_bytes),
           static_cast<double>(work.integer_ops + work.float_ops));
}

void StepBench::NameQuantised(uint32_t n) {
  for (uint32_t i = 0; i < n; ++i) batch_.pages[0][i] |= kQuantisedPage;
}

void FillValue(conformance::Session* session, ValueId id, uint32_t rows) {
  std::mt19937 rng(9);
  const auto x =
      conformance::RandomFloats(size_t{rows} * session->program().values[id].width, 1.0f, &rng);
  std::memcpy(session->ValueData(id), x.data(), x.size() * sizeof(float));
}

void SetRates(benchmark::State& state, double bytes, double ops) {
  using benchmark::Counter;
  const auto runs = static_cast<double>(state.iterations());
  if (bytes > 0) state.counters["GB"] = Counter(bytes * runs / 1e9, Counter::kIsRate);
  if (ops > 0) state.counters["GOP"] = Counter(ops * runs / 1e9, Counter::kIsRate);
}

}  // namespace arn::bench

int main(int argc, char** argv) {
  using namespace arn::bench;  // NOLINT(google-build-using-namespace)
  ReadSettings(&argc, argv);
  RegisterMatmul();
  RegisterAttention();
  RegisterNorm();
  RegisterActivations();
  RegisterQuantize();
  RegisterSampling();
  RegisterTokenizer();
  RegisterConstrain();
  RegisterLinearAttention();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
