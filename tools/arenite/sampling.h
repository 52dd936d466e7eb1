// Sampling options of the command line: one flag per field of arn_sampling, from the library's own
// table.
#pragma once

#include <arenite/arenite.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tools/arenite/json.h"
#include "tools/arenite/model.h"

namespace CLI {
class App;
class Option;
class Option_group;
}  // namespace CLI

namespace arn::tool {

struct SamplingArguments {
  struct Value {
    bool is_given = false;
    double number = 0;
    uint64_t whole = 0;
    std::vector<int32_t> ids;
    std::vector<float> floats;
  };
  std::vector<Value> values;                         // by the index of arn_sampling_get_option
  std::vector<std::string> bad_words, dry_breakers;  // texts
};
CLI::Option_group* AddSamplingOptions(CLI::App* app, SamplingArguments* arguments);

// Returns the flags of a group that greedy decoding and beam search ignore.
std::vector<CLI::Option*> DrawOptions(CLI::Option_group* group);

// Returns the arguments with the tokens of their texts: bad words, alone and behind a space, and
// DRY's breakers.
SamplingArguments WithTexts(SamplingArguments arguments, const Model& model);

// True if any of the flags is given.
bool IsGiven(const SamplingArguments& arguments);

// Takes flags that are not given from the checkpoint. Stays greedy for a greedy checkpoint unless a
// flag that shapes the draw is given. Picks a random seed for sampling without --seed. Lists are
// owned by the arguments and the model.
arn_sampling ChooseSampling(const SamplingArguments& arguments, const arn_model* model);
// Reserves in the session what the sampling needs.
void ReserveSampling(const arn_sampling& sampling, arn_session_options* options);

// Returns "temperature 0.8, top-k 40, seed 7", enough to reproduce the run; "" if greedy with
// every option off.
std::string DescribeSampling(const arn_sampling& sampling);
// Writes all options but the seed, by the names of arn_sampling, as members of the open object.
void WriteSampling(const arn_sampling& sampling, JsonWriter* json);
// As DescribeSampling, without the seed.
std::string DescribeSettings(const arn_sampling& sampling);

}  // namespace arn::tool
