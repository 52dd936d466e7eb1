// Runs bundles of one model over all windows of a text in lockstep, matmul by matmul (a barrier
// before each). The callback sees the inputs of a matrix over the whole text in every bundle, and
// may replace the matrix before it is used.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "converter/run/runner.h"

namespace arn::convert {

// The text to run: tokenised as a whole, cut into windows without overlap.
struct CalibrationText {
  std::vector<int32_t> ids;
  uint32_t window = 0;  // tokens per window; the last may have fewer

  size_t n_windows() const { return (ids.size() + window - 1) / window; }
  size_t TokensOf(size_t w) const { return std::min<size_t>(window, ids.size() - w * window); }
};

// Input of one window's next matmul, [n_rows, width], and the accumulator that its result is added
// to, [n_rows, out_width], or null. An expert that received none of the window's tokens has no
// rows.
struct MatmulRows {
  const float* rows = nullptr;
  size_t n_rows = 0;
  const float* sums = nullptr;
};

// Name of the output head's matmul, also for a tied head: bundles of one model may differ in tying.
inline constexpr const char* kHeadMatmul = "head";
std::string MatmulName(const char* tensor);

struct Matmul {
  std::string tensor;  // MatmulName() of the matrix
  size_t width = 0;
  size_t out_width = 0;
  std::vector<std::vector<MatmulRows>> rows;  // by bundle, by window; valid during the call
  // Drops what the call has read of window w from memory; it stays valid. To be called when the
  // window is done with, since the windows together may exceed the memory.
  std::function<void(size_t w)> forget;
};
// Called on the caller's thread. May throw, which ends all runs.
using OnMatmul = std::function<void(const Matmul&)>;

// Where the sessions of the windows are: as many as fit `most_bytes` in memory, the others in a
// file without a name beside `path`, whose pages are in memory only while their window runs or is
// read.
struct LockstepMemory {
  std::filesystem::path path;  // an unused name, for the file
  uint64_t most_bytes = 0;
};

// Calls on_matmul in the model's order of steps; experts in the order of `experts`, the names of
// all their matrices in the order in which a layer runs them. Creates one session per bundle and
// window, each with an f32 KV cache and room for the window's activations, in `memory`. Runs
// `n_threads` (not 0) sessions at once; the result depends neither on it nor on `memory`. Computes
// the output head only for the last token of each window.
void RunInLockstep(const std::vector<const Runner*>& bundles, const CalibrationText& text,
                   const std::vector<std::string>& experts, const LockstepMemory& memory,
                   uint32_t n_threads, const OnMatmul& on_matmul);

// Returns the options of those sessions.
arn_session_options LockstepSession(const CalibrationText& text);

}  // namespace arn::convert
