// Produces the calibrated matrices for --calibrate and --bits.
#pragma once

#include <optional>
#include <string>

#include "converter/calibrate/mixed_precision.h"
#include "converter/calibrate/notes.h"
#include "converter/convert/convert.h"
#include "converter/hf/json_file.h"

namespace arn::convert {

struct CalibratedOptions {
  // Without a text, measures matrices on a text that the model generates and quantises row by row.
  std::optional<NamedText> text;
  uint32_t max_tokens = 0;
  double bits = 0;  // bits per weight; 0: keeps the requested types
};

// `label`: name of the current stage.
using LabelledProgress =
    std::function<void(const std::string& label, uint64_t done, uint64_t total)>;

// Writes the checkpoint in f32 and quantised beside the output, runs the text through both. `notes`
// owns the files, and says what of them an interrupted run has left. With `bits`, also measures the
// matrices and adds those that get more bits to convert->formats.exceptions. Ignores
// convert->quantized.
CalibratedMatrices CalibrateFor(const CalibratedOptions& options, ConvertOptions* convert,
                                CalibrationNotes* notes, const LabelledProgress& on_progress);

}  // namespace arn::convert
