// Shared by the micro-benchmarks: runs one step of a Program repeatedly on the CPU backend.
#pragma once

#include <benchmark/benchmark.h>

#include <memory>
#include <string>
#include <vector>

#include "fast_matrix.h"
#include "program_builder.h"

namespace arn::bench {

// The values of --threads, --bundle and --text.
struct Settings {
  uint32_t n_threads = 1;
  std::string bundle, text;
};
const Settings& TheSettings();

using conformance::FastMatrix;

// A loaded Program and its input rows. `n_before` is the number of earlier tokens in the sequence.
class StepBench {
 public:
  StepBench(conformance::ProgramBuilder* builder, uint32_t n_before, uint32_t n_rows);
  // Times whole runs. GB/s and GOP/s come from WorkOf() over all steps.
  void Run(benchmark::State& state);
  conformance::Session& session() { return session_; }
  // Makes the first n pages of the sequence quantised pages.
  void NameQuantised(uint32_t n);

 private:
  std::mt19937 rng_;
  conformance::Session session_;
  conformance::Batch batch_;
};

// Fills a value's rows with numbers around 1.
void FillValue(conformance::Session* session, ValueId id, uint32_t rows);

// Sets the rate counters of a benchmark with these bytes and operations per run.
void SetRates(benchmark::State& state, double bytes, double ops);

// Each file registers its benchmarks.
void RegisterMatmul();
void RegisterAttention();
void RegisterNorm();
void RegisterActivations();
void RegisterQuantize();
void RegisterSampling();
void RegisterTokenizer();
void RegisterConstrain();
void RegisterLinearAttention();

}  // namespace arn::bench
