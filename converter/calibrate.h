// --calibrate: matrices quantised by what they multiply while the model reads a text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "converter/convert.h"
#include "converter/lockstep.h"

namespace arn::convert {

using RunProgress = std::function<void(uint64_t done, uint64_t total)>;

// The first `max_tokens` tokens of the file, in windows of at most 512, by the tokenizer of
// `bundle`. Throws ConvertError that names the file: when it cannot be read, has fewer than 2
// tokens, or the bundle has no tokenizer or runs on a source, which a text does not give.
CalibrationText ReadCalibrationText(const std::filesystem::path& file,
                                    const std::filesystem::path& bundle, uint32_t max_tokens);

// Quantised matrices, in a layout of this machine's.
class CalibratedMatrices {
 public:
  const QuantizedMatrices& matrices() const { return matrices_; }

 private:
  friend class Calibrator;
  std::shared_ptr<const std::byte> bundle_;
  QuantizedMatrices matrices_;
};

struct CalibrateOptions {
  ConvertOptions convert;           // the bundle that is wanted; `output` and `quantized` are not
                                    // read
  std::filesystem::path reference;  // the same checkpoint in f32, packed for this machine
  std::filesystem::path temporary;  // a name for a bundle that is made and removed
  CalibrationText text;
  // False: each by its inputs in the float model, as if no other were quantised.
  bool in_order = true;
};

// The int8 and int4 matrices of the layers and of an output head of its own, in the order in which
// the model runs them: each by its inputs in the model whose matrices before it are quantised,
// and so that its products come near to those of the float model (CorrectRow). Experts that no
// token was routed to are not among the result. The text is run once through both, all windows at
// once, and their activations are in memory together; for a head both read it once more. Never in
// order where matrices are not used as they lie in the bundle: on CPUs for which there is no
// target. The same for any number of threads on one CPU.
CalibratedMatrices Calibrate(const CalibrateOptions& options, const RunProgress& on_progress);

// visit(logits of n tokens [n, vocab], n) for all tokens of the text, chunk by chunk, each window
// from an empty session with KV in f32. n_threads 0: the library's default.
using VisitLogits = std::function<void(const float* logits, uint32_t n)>;
void RunText(const std::filesystem::path& bundle, const CalibrationText& text, uint32_t n_threads,
             const VisitLogits& visit);

}  // namespace arn::convert
