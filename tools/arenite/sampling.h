// How tokens are chosen, by flags.
#pragma once

#include <arenite/arenite.h>

#include <cstdint>
#include <optional>

#include "CLI/CLI.hpp"

namespace arn::tool {

struct SamplingArguments {
  std::optional<float> temperature, top_p, min_p;
  std::optional<uint32_t> top_k;
  std::optional<uint64_t> seed;
};
CLI::Option_group* AddSamplingOptions(CLI::App* app, SamplingArguments* arguments);

// Whether any of the flags was given.
bool IsGiven(const SamplingArguments& arguments);

// A flag that is not given takes the checkpoint's own value. Without any of them but --seed a
// checkpoint that does not sample is greedy.
arn_sampling ChooseSampling(const SamplingArguments& arguments, const arn_model_info& info);

}  // namespace arn::tool
