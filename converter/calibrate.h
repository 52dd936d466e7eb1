// --calibrate: a text run through the unquantised model, to see what its matrices multiply.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "converter/quantize/input_moments.h"

namespace arn::convert {

using RunProgress = std::function<void(uint64_t done, uint64_t total)>;

// The text as it is run: tokenised as a whole, cut into windows that do not overlap.
struct CalibrationText {
  std::vector<int32_t> ids;
  uint32_t window = 0;  // tokens of each, but perhaps the last
};

// The first `max_tokens` tokens of the file, in windows of at most 512, by the tokenizer of
// `bundle`. Throws ConvertError that names the file: when it cannot be read, has fewer than 2
// tokens, or the bundle has no tokenizer or runs on a source, which a text does not give.
CalibrationText ReadCalibrationText(const std::filesystem::path& file,
                                    const std::filesystem::path& bundle, uint32_t max_tokens);

// The moments of the inputs of all matrices of `bundle` but the embedding. Of an output head all
// tokens count. The same for any n_threads (0: the library's default) on one CPU.
Calibration Calibrate(const std::filesystem::path& bundle, const CalibrationText& text,
                      uint32_t n_threads, const RunProgress& on_progress);

// visit(logits of n tokens [n, vocab], n) for all tokens of the text, chunk by chunk, each window
// from an empty session with KV in f32.
using VisitLogits = std::function<void(const float* logits, uint32_t n)>;
void RunText(const std::filesystem::path& bundle, const CalibrationText& text, uint32_t n_threads,
             const VisitLogits& visit);

}  // namespace arn::convert
