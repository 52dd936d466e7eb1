#include "tools/arenite/sampling.h"

#include <string>

#include "CLI/CLI.hpp"
#include "tools/arenite/io.h"

namespace arn::tool {
namespace {

bool AsksForSampling(const SamplingArguments& arguments) {
  return arguments.temperature || arguments.top_k || arguments.top_p || arguments.min_p;
}

}  // namespace

CLI::Option_group* AddSamplingOptions(CLI::App* app, SamplingArguments* arguments) {
  const std::string note =
      "Flags that are not given take the checkpoint's values; a checkpoint that does not sample is "
      "greedy unless one of the first four is given.";
  CLI::Option_group* group = app->add_option_group("sampling", note);
  group->add_option("--temperature", arguments->temperature,
                    "Temperature of the softmax; 0: greedy");
  group->add_option("--top-k", arguments->top_k, "Keeps the k most likely tokens; 0: off");
  group->add_option("--top-p", arguments->top_p,
                    "Keeps the most likely tokens up to this total probability; 1: off");
  group->add_option("--min-p", arguments->min_p,
                    "Keeps tokens with at least this fraction of the highest probability; 0: off");
  group->add_option("--seed", arguments->seed,
                    "Seed of the random numbers [a random one, which is printed]");
  return group;
}

bool IsGiven(const SamplingArguments& arguments) {
  return AsksForSampling(arguments) || arguments.seed;
}

arn_sampling ChooseSampling(const SamplingArguments& arguments, const arn_model_info& info) {
  arn_sampling sampling = ARN_SAMPLING_INIT;
  sampling.seed = arguments.seed.value_or(0);
  if (info.do_sample == 0 && !AsksForSampling(arguments)) return sampling;
  sampling.temperature = arguments.temperature.value_or(info.temperature);
  sampling.top_k = arguments.top_k.value_or(info.top_k);
  sampling.top_p = arguments.top_p.value_or(info.top_p);
  sampling.min_p = arguments.min_p.value_or(info.min_p);
  if (sampling.temperature != 0.0f && !arguments.seed) sampling.seed = arn_random_seed();
  return sampling;
}

std::string DescribeSampling(const arn_sampling& sampling) {
  if (sampling.temperature == 0.0f) return "";
  std::string text = Format("temperature %g", static_cast<double>(sampling.temperature));
  if (sampling.top_k != 0) text += Format(", top-k %u", sampling.top_k);
  if (sampling.top_p != 1.0f) text += Format(", top-p %g", static_cast<double>(sampling.top_p));
  if (sampling.min_p != 0.0f) text += Format(", min-p %g", static_cast<double>(sampling.min_p));
  return text + Format(", seed %llu", static_cast<unsigned long long>(sampling.seed));
}

}  // namespace arn::tool
