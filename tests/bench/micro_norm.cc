// kNorm of both types at model widths.
#include "micro.h"

namespace arn::bench {
namespace {

void Norm(benchmark::State& state, NormKind kind, uint32_t width, uint32_t n_rows) {
  std::mt19937 rng(1);
  conformance::ProgramBuilder builder(/*vocab=*/2, n_rows, /*max_context=*/1024);
  Step step{NormParams()};
  auto& params = step.Get<NormParams>();
  params.kind = kind;
  params.epsilon = 1e-5f;
  step.in = builder.AddValue(width);
  step.out = builder.AddValue(width);
  params.weight = builder.AddVector(conformance::RandomFloats(width, 1.0f, &rng));
  if (kind == NormKind::kLayer) {
    params.bias = builder.AddVector(conformance::RandomFloats(width, 1.0f, &rng));
  }
  builder.AddStep(step);
  StepBench bench(&builder, 0, n_rows);
  FillValue(&bench.session(), step.in, n_rows);
  bench.Run(state);
  // Counts activations in and out; the weight is small.
  SetRates(state, 2.0 * sizeof(float) * n_rows * width, 0);
}

}  // namespace

void RegisterNorm() {
  for (const NormKind kind : {NormKind::kRms, NormKind::kLayer}) {
    for (const uint32_t width : {576u, 2048u, 4096u}) {
      for (const uint32_t n_rows : {1u, 128u}) {
        const std::string name = std::string("norm/") +
                                 (kind == NormKind::kRms ? "rms/" : "layer/") +
                                 std::to_string(width) + "/M:" + std::to_string(n_rows);
        benchmark::RegisterBenchmark(
            name, [=](benchmark::State& state) { Norm(state, kind, width, n_rows); })
            ->UseRealTime()
            ->Unit(benchmark::kMicrosecond);
      }
    }
  }
}

}  // namespace arn::bench
