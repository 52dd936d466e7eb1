// `arenite bench --rows` and `--speculate`: what a row more costs in a run, and what guessing is
// worth on a text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/arenite/model.h"

namespace arn::tool {

struct RowsRequest {
  std::vector<uint32_t> rows;
  std::vector<uint32_t> depths;
  std::vector<uint32_t> threads;
  uint32_t repeats = 5;
  bool json = false;
};
// Prints the time of a run of each number of rows of one sequence, with the logits of all of them,
// relative to a run of one row. The numbers take turns, so that all meet the same load.
int BenchRows(const Model& model, arn_session_options options, const RowsRequest& request);

struct SpeculateRequest {
  std::string drafter;    // the name of --speculate
  std::string file;       // the prompt
  uint32_t tokens = 128;  // generated after it
  float temperature = 0;
  bool schedules = false;  // as requests of a scheduler, as many as sequences
  uint32_t sequences = 1;
  std::vector<uint32_t> threads;
  uint32_t repeats = 5;
  bool json = false;
};
// Generates after a text, token by token and with guesses in turn, and prints both speeds, the
// guesses, and the ratio of the times of each pair. Throws Error if the tokens differ.
int BenchSpeculate(const Model& model, arn_session_options options,
                   const SpeculateRequest& request);

}  // namespace arn::tool
