// kGatedAct and kAct for each function.
#include "micro.h"

namespace arn::bench {
namespace {

struct Function {
  const char* name;
  Activation activation;
};
constexpr Function kFunctions[] = {{"silu", Activation::kSilu},
                                   {"gelu_tanh", Activation::kGeluTanh},
                                   {"gelu", Activation::kGelu},
                                   {"relu", Activation::kRelu},
                                   {"relu_squared", Activation::kReluSquared},
                                   {"quick_gelu", Activation::kQuickGelu},
                                   {"tanh", Activation::kTanh},
                                   {"sigmoid", Activation::kSigmoid},
                                   {"mish", Activation::kMish}};

// Without a gate the step works in place, so its output is its next input. The speed does not
// depend on the values.
void Act(benchmark::State& state, Activation activation, bool is_gated, uint32_t width,
         uint32_t n_rows) {
  conformance::ProgramBuilder builder(/*vocab=*/2, n_rows, /*max_context=*/1024);
  Step step = is_gated ? Step(GatedActParams{.activation = activation})
                       : Step(ActParams{.activation = activation});
  step.in = builder.AddValue(is_gated ? 2 * width : width);
  if (is_gated) step.out = builder.AddValue(width);
  builder.AddStep(step);
  StepBench bench(&builder, 0, n_rows);
  FillValue(&bench.session(), step.in, n_rows);
  bench.Run(state);
  SetRates(state, (is_gated ? 3.0 : 2.0) * sizeof(float) * n_rows * width, 0);
}

}  // namespace

void RegisterActivations() {
  for (const Function& function : kFunctions) {
    for (const bool is_gated : {true, false}) {
      for (const uint32_t width : {1536u, 8192u}) {
        for (const uint32_t n_rows : {1u, 128u}) {
          const std::string name = std::string(is_gated ? "gated_act/" : "act/") + function.name +
                                   "/" + std::to_string(width) + "/M:" + std::to_string(n_rows);
          const Activation activation = function.activation;
          benchmark::RegisterBenchmark(
              name,
              [=](benchmark::State& state) { Act(state, activation, is_gated, width, n_rows); })
              ->UseRealTime()
              ->Unit(benchmark::kMicrosecond);
        }
      }
    }
  }
}

}  // namespace arn::bench
