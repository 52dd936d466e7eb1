// Micro-benchmarks of the kernels, by Google Benchmark, with GB and GOP a second. Build and run:
//
//   cmake --build --preset release --target micro_bench
//   build/release/bin/bench/micro_bench --benchmark_filter=matmul/int8 [--threads 2]
//       [--bundle F.arn --text F.txt]   (the tokenizer's)
//
// Everything but quantisation, sampling and tokenizers is a step of a Program on the CPU backend:
// what is timed is what a model runs, the dispatch to threads included.
#include "micro.h"

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "kernels/cpu/backend_cpu.h"
#include "kernels/step_work.h"
#include "platform/base/arith.h"

namespace arn::bench {
namespace {

Settings settings;

// Takes our own options out of the command line.
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

conformance::Matrix FastMatrix(DType dtype, uint32_t rows, uint32_t cols, std::mt19937* rng) {
  conformance::Matrix m;
  m.dtype = dtype;
  m.rows = rows;
  m.cols = cols;
  const bool is_int4 = dtype == DType::kInt4;
  const uint64_t n = uint64_t{rows} * (is_int4 ? AlignUp(cols, kInt4BlockSize) : cols);
  const float scale = 1.0f / std::sqrt(static_cast<float>(cols));
  if (dtype == DType::kInt8 || is_int4) {
    m.values.resize(n);
    for (uint8_t& v : m.values) v = static_cast<uint8_t>((*rng)() >> (is_int4 ? 28 : 24));
    if (is_int4) {
      const std::vector<uint16_t> scales(n / kInt4BlockSize, Bf16FromF32(scale / 4.6f));
      m.scales.resize(scales.size() * sizeof(uint16_t));
      std::memcpy(m.scales.data(), scales.data(), m.scales.size());
    } else {
      const std::vector<float> scales(rows, scale / 73.0f);
      m.scales.resize(scales.size() * sizeof(float));
      std::memcpy(m.scales.data(), scales.data(), m.scales.size());
    }
    return m;
  }
  m.values.resize(n * ElementBytes(dtype));
  for (uint64_t i = 0; i < n; ++i) {
    const float x = (static_cast<float>((*rng)() >> 8) / 8388608.0f - 1.0f) * 1.7f * scale;
    if (dtype == DType::kF32) {
      std::memcpy(m.values.data() + i * sizeof x, &x, sizeof x);
    } else {
      const uint16_t half = dtype == DType::kF16 ? F16FromF32(x) : Bf16FromF32(x);
      std::memcpy(m.values.data() + i * sizeof half, &half, sizeof half);
    }
  }
  return m;
}

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
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
