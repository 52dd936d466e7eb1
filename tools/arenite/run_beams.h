// arenite run --beams: prints sequences with scores instead of one text.
#pragma once

#include <string>
#include <vector>

#include "tools/arenite/adapters.h"
#include "tools/arenite/constraint.h"
#include "tools/arenite/encoder_input.h"
#include "tools/arenite/options.h"

namespace arn::tool {

struct BeamArguments {
  uint32_t beams = 0;  // 0: no beam search
  uint32_t groups = 1;
  float diversity_penalty = 0.0f;
  float length_penalty = 1.0f;
  std::string early_stopping = "false";
  uint32_t returns = 1;
};
// Adds the options; returns --beams, for options that exclude it.
CLI::Option* AddBeamOptions(CLI::App* app, BeamArguments* arguments);

struct BeamRun {
  BeamArguments beams;
  arn_session_options session;  // options of a run without beams
  std::vector<int32_t> prompt;
  uint32_t max_tokens = 0;
  bool ignore_eos = false, json = false, quiet = false;
  const EncoderInput* encoder_input = nullptr;
  const ConstraintText* constraint = nullptr;  // null: none
  arn_sampling sampling = ARN_SAMPLING_INIT;   // nothing is drawn
  const Adapters* adapters = nullptr;
};
// Searches and prints. Returns the exit code; throws Error.
int RunBeams(const Model& model, const BeamRun& run, double load_ms);

}  // namespace arn::tool
