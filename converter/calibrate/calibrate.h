// --calibrate: quantises matrices by their inputs while the model reads a text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "converter/calibrate/lockstep.h"
#include "converter/calibrate/notes.h"
#include "converter/convert/convert.h"
#include "converter/hf/json_file.h"
#include "converter/run/written_bundle.h"

namespace arn::convert {

using RunProgress = std::function<void(uint64_t done, uint64_t total)>;

// Returns the first `max_tokens` tokens of the text in windows of at most 512, tokenised by the
// tokenizer of `bundle`. Throws ConvertError that names the text file if the text has fewer than 2
// tokens, the bundle has no tokenizer or the model is an encoder-decoder.
CalibrationText ReadCalibrationText(const NamedText& text, const std::filesystem::path& bundle,
                                    uint32_t max_tokens);

// Generates a text with the model, in windows of at most 128 tokens. Each window starts with BOS
// (without one: with an arbitrary token) and is sampled at temperature 1. Deterministic on one CPU.
// Throws ConvertError, also for encoder-decoder models.
CalibrationText WriteOwnText(const std::filesystem::path& bundle, uint32_t n_tokens,
                             uint32_t n_threads);

// Holds the quantised matrices, packed for this machine, in a mapped file.
class CalibratedMatrices {
 public:
  const QuantizedMatrices& matrices() const { return matrices_; }
  // Drops what was read of them from memory. They are read again on use.
  void Forget() const {
    if (bundle_ != nullptr) bundle_->Forget();
  }

 private:
  friend class Calibrator;
  std::shared_ptr<WrittenBundle> bundle_;
  QuantizedMatrices matrices_;
};

// Sessions of windows that stay in memory; those of more windows are in a file (LockstepMemory).
inline constexpr uint64_t kSessionBytes = uint64_t{64} << 20;

struct CalibrateOptions {
  ConvertOptions convert;           // the bundle to calibrate for; ignores `output` and `quantized`
  std::filesystem::path reference;  // the same checkpoint in f32, packed for this machine
  std::filesystem::path temporary;  // name for the quantised copy
  CalibrationText text;
  // False: quantises each matrix by its inputs in the float model, as if no other were quantised.
  bool in_order = true;
  uint64_t session_bytes = kSessionBytes;
  // Not null: keeps the quantised copy, and notes each matrix in it, as `stage`; takes those that
  // are noted. The result is the same.
  CalibrationNotes* notes = nullptr;
  std::string stage;
  std::filesystem::path frame;  // with notes: name for a temporary bundle without matrices
  ConvertEvents events;         // of the conversion to the quantised copy
};

// Quantises the int8 and int4 matrices of the layers and an untied output head, in the order in
// which the model runs them. Each matrix is quantised by its inputs in a model whose earlier
// matrices are quantised already, and corrected towards the float model's outputs (CorrectRow). The
// result leaves out experts that received no token.
// Runs the text once through both models, all windows at once; the head takes a second pass through
// both. Both models are mapped from their files and dropped matrix by matrix. Ignores in_order on
// CPUs that repack the matrices at load (no pack target). Deterministic for any number of threads
// on one CPU.
CalibratedMatrices Calibrate(const CalibrateOptions& options, const RunProgress& on_progress);

// Calls visit(logits of n tokens [n, vocab], n) for all tokens of the text, chunk by chunk. Each
// window starts with an empty session with an f32 KV cache. n_threads 0: the library's default.
using VisitLogits = std::function<void(const float* logits, uint32_t n)>;
void RunText(const std::filesystem::path& bundle, const CalibrationText& text, uint32_t n_threads,
             const VisitLogits& visit);

}  // namespace arn::convert
