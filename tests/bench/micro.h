// What the micro-benchmarks share: one step of a Program, run on the CPU backend again and again.
#pragma once

#include <benchmark/benchmark.h>

#include <memory>
#include <string>
#include <vector>

#include "fast_matrix.h"
#include "program_builder.h"

namespace arn::bench {

// --threads, --bundle and --text of the command line.
struct Settings {
  uint32_t n_threads = 1;
  std::string bundle, text;
};
const Settings& TheSettings();

using conformance::FastMatrix;

// A loaded Program and the rows that it runs on. `n_before`: tokens that the sequence has already.
class StepBench {
 public:
  StepBench(conformance::ProgramBuilder* builder, uint32_t n_before, uint32_t n_rows);
  // Times whole runs; GB/s and GOP/s are those of WorkOf() over all steps.
  void Run(benchmark::State& state);
  conformance::Session& session() { return session_; }

 private:
  std::mt19937 rng_;
  conformance::Session session_;
  conformance::Batch batch_;
};

// Fills a value's rows with numbers around 1.
void FillValue(conformance::Session* session, ValueId id, uint32_t rows);

// The counters of a benchmark whose runs read so many bytes and do so many operations.
void SetRates(benchmark::State& state, double bytes, double ops);

// Each family's own file registers its benchmarks.
void RegisterMatmul();
void RegisterAttention();
void RegisterNorm();
void RegisterActivations();
void RegisterQuantize();
void RegisterSampling();
void RegisterTokenizer();

}  // namespace arn::bench
