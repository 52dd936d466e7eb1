// Kernel micro-benchmarks with Google Benchmark, in GB/s and GOP/s. Build and run:
//
//   cmake --build --preset release --target micro_bench
//   build/release/bin/bench/micro_bench --benchmark_filter=matmul/int8 [--threads 2]
//       [--bundle F.arn --text F.txt]   (for the tokenizer)
//
// Except for quantisation, sampling, tokenizers and constraints, each benchmark times a step of a
// Program on the CPU backend as a model runs it, including the dispatch to the thread pool.
#include "micro.h"

#include <cstdlib>
#include <cstring>

#include "kernels/contract/step_work.h"
#include "kernels/cpu/backend_cpu.h"
#include "platform/base/arith.h"

namespace arn::bench {
namespace {

Settings settings;

// Removes the options of this program from the command line.
void ReadSettings(int* argc, char** argv) {
  int kept = 1;
  for (int i = 1; i < *argc; ++i) {
    const std::string name = argv[i];
    const bool is_ours = name == "--threads" || name == "--bundle" || name == "--text";
    if (!is_ours || i + 1 == *argc) {
      argv[kept++] = argv[i];
      continue;
    }
    const char* value = argv[++i];
    if (name == "--threads") settings.n_threads = static_cast<uint32_t>(std::atoi(value));
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
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
