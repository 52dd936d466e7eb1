// Runs tokens of several sequences through a step.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "program_builder.h"

namespace arn::conformance {

// Tokens [first, first + n) of a sequence of the batch.
struct TokenRange {
  uint32_t sequence, first, n;
};

// Runs the tokens of all ranges together, on the pages of the batch. input(sequence, token): the
// token's row of `in`, with those of the tokens behind it. Returns the rows of `out`.
template <typename Input>
std::vector<float> RunParts(Session* session, const Batch& batch,
                            const std::vector<TokenRange>& parts, ValueId in, ValueId out,
                            const Input& input) {
  const size_t in_width = session->program().values[in].width;
  const size_t out_width = session->program().values[out].width;
  std::vector<SequenceRows> sequences;
  uint32_t n = 0;
  for (const TokenRange& part : parts) {
    if (part.n == 0) continue;
    SequenceRows rows = batch.sequences[part.sequence];
    rows.first_row = n;
    rows.n_rows = part.n;
    rows.first_position = part.first;
    sequences.push_back(rows);
    std::memcpy(session->ValueData(in) + n * in_width, input(part.sequence, part.first),
                part.n * in_width * sizeof(float));
    n += part.n;
  }
  if (n == 0) return {};
  const std::vector<int32_t> tokens(n, 0);
  RunArgs args;
  args.tokens = {tokens.data(), n};
  args.sequences = {sequences.data(), sequences.size()};
  args.logit_rows = LogitRows::kNone;
  EXPECT_EQ(Status::kOk, session->Run(args)) << session->message();
  const float* rows = session->ValueData(out);
  return {rows, rows + n * out_width};
}

}  // namespace arn::conformance
