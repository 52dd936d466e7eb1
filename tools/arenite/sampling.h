// Sampling options of the command line.
#pragma once

#include <arenite/arenite.h>

#include <cstdint>
#include <optional>
#include <string>

namespace CLI {
class App;
class Option_group;
}  // namespace CLI

namespace arn::tool {

struct SamplingArguments {
  std::optional<float> temperature, top_p, min_p;
  std::optional<uint32_t> top_k;
  std::optional<uint64_t> seed;
};
CLI::Option_group* AddSamplingOptions(CLI::App* app, SamplingArguments* arguments);

// True if any of the flags is given.
bool IsGiven(const SamplingArguments& arguments);

// Takes flags that are not given from the checkpoint. Stays greedy for a greedy checkpoint unless a
// flag other than --seed is given. Picks a random seed for sampling without --seed.
arn_sampling ChooseSampling(const SamplingArguments& arguments, const arn_model_info& info);

// Returns "temperature 0.8, top-k 40, seed 7", enough to reproduce the run; "" if greedy.
std::string DescribeSampling(const arn_sampling& sampling);

}  // namespace arn::tool
