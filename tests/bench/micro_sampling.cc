// From logits to a token: LogitsOps of the CPU backend, and whole samplers.
#include "kernels/cpu/backend_cpu.h"
#include "micro.h"
#include "runtime/sampling/sampler.h"

namespace arn::bench {
namespace {

// A few tokens hold most of the probability, as in a trained model.
std::vector<float> Logits(uint32_t vocab) {
  std::mt19937 rng(1);
  std::normal_distribution<float> normal(0.0f, 3.0f);
  std::vector<float> logits(vocab);
  for (float& x : logits) x = normal(rng);
  return logits;
}

void Argmax(benchmark::State& state, uint32_t vocab) {
  const std::vector<float> logits = Logits(vocab);
  for (auto _ : state) benchmark::DoNotOptimize(CpuLogitsOps()->argmax(logits.data(), vocab));
  SetRates(state, sizeof(float) * static_cast<double>(vocab), 0);
}

void ExpSum(benchmark::State& state, uint32_t vocab) {
  const std::vector<float> logits = Logits(vocab);
  std::vector<float> x(vocab);
  for (auto _ : state) {
    x = logits;
    benchmark::DoNotOptimize(CpuLogitsOps()->exp_sum(x.data(), vocab, 4.0f, 1.0f));
  }
  SetRates(state, sizeof(float) * static_cast<double>(vocab), 0);
}

void Sample(benchmark::State& state, uint32_t vocab, const SamplingOptions& options) {
  Layout layout;
  SamplerPlan plan;
  if (PlanSampler(vocab, &layout, &plan) != Status::kOk) {
    state.SkipWithError("the sampler cannot be planned");
    return;
  }
  conformance::AlignedBytes regions[kRegionCount];
  Memory memory;
  for (uint32_t r = 0; r < kRegionCount; ++r) {
    regions[r] = conformance::AlignedBytes(layout.RegionBytes(static_cast<Region>(r)));
    memory.region[r] = {regions[r].data(), regions[r].size()};
  }
  Sampler sampler;
  sampler.Init(CpuLogitsOps(), plan, memory, vocab);
  sampler.Configure(options);
  const std::vector<float> logits = Logits(vocab);
  for (auto _ : state) benchmark::DoNotOptimize(sampler.Sample(logits.data()));
  SetRates(state, sizeof(float) * static_cast<double>(vocab), 0);
}

}  // namespace

void RegisterSampling() {
  SamplingOptions greedy, top_k, top_p, min_p, all, usual;
  all.temperature = top_k.temperature = top_p.temperature = min_p.temperature = 0.8f;
  top_k.top_k = 40;
  top_p.top_p = 0.95f;
  min_p.min_p = 0.05f;
  usual = {0.8f, 40, 0.95f, 0.05f, 1};
  for (const uint32_t vocab : {49152u, 128256u}) {
    const auto add = [&](const char* name, auto run) {
      const std::string full = std::string("sampling/") + name + "/" + std::to_string(vocab);
      benchmark::RegisterBenchmark(full, run)->Unit(benchmark::kMicrosecond);
    };
    add("argmax", [=](benchmark::State& state) { Argmax(state, vocab); });
    add("exp_sum", [=](benchmark::State& state) { ExpSum(state, vocab); });
    add("greedy", [=](benchmark::State& state) { Sample(state, vocab, greedy); });
    add("temperature", [=](benchmark::State& state) { Sample(state, vocab, all); });
    add("top_k:40", [=](benchmark::State& state) { Sample(state, vocab, top_k); });
    add("top_p:0.95", [=](benchmark::State& state) { Sample(state, vocab, top_p); });
    add("min_p:0.05", [=](benchmark::State& state) { Sample(state, vocab, min_p); });
    add("top_k:40/top_p:0.95/min_p:0.05",
        [=](benchmark::State& state) { Sample(state, vocab, usual); });
  }
}

}  // namespace arn::bench
