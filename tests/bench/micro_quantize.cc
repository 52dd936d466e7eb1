// Quantises one row of activations to int8, the first step of each matmul with integer weights.
#include "kernels/cpu/simd/kernels.h"
#include "micro.h"

namespace arn::bench {
namespace {

void Quantize(benchmark::State& state, uint32_t n) {
  std::mt19937 rng(1);
  const std::vector<float> x = conformance::RandomFloats(n, 1.0f, &rng);
  std::vector<int8_t> values(n);
  const cpu::QuantizeRowFn quantize = cpu::ChooseQuantizeRow();
  for (auto _ : state) benchmark::DoNotOptimize(quantize(x.data(), n, n, values.data()));
  SetRates(state, (sizeof(float) + 1.0) * n, 0);
}

}  // namespace

void RegisterQuantize() {
  for (const uint32_t n : {576u, 1536u, 2048u, 8192u}) {
    benchmark::RegisterBenchmark("quantize/" + std::to_string(n), [=](benchmark::State& state) {
      Quantize(state, n);
    })->Unit(benchmark::kMicrosecond);
  }
}

}  // namespace arn::bench
