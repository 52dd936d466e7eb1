// What a conversion with --calibrate is made of.
#pragma once

#include <filesystem>
#include <string>

#include "converter/convert.h"
#include "converter/mixed_precision.h"

namespace arn::convert {

struct CalibratedOptions {
  std::filesystem::path text;
  uint32_t max_tokens = 0;
  double bits = 0;  // a weight; 0: no matrix gets another type than it was asked for
};

// `label`: what is being done.
using LabelledProgress =
    std::function<void(const std::string& label, uint64_t done, uint64_t total)>;

// Writes the checkpoint in f32 and quantised beside the output, runs the text through both and
// removes them again. With `bits`, also measures the matrices and adds those that stay int8 to
// convert->formats.exceptions. convert->quantized is not read.
CalibratedMatrices CalibrateFor(const CalibratedOptions& options, ConvertOptions* convert,
                                const LabelledProgress& on_progress);

}  // namespace arn::convert
