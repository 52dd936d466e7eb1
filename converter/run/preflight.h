// Checks to run before the conversion, which can take an hour.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "converter/convert/convert.h"
#include "converter/hf/json_file.h"

namespace arn::convert {

// Text to run through the model during the conversion.
struct TextToRun {
  const NamedText* text = nullptr;
  uint32_t least_tokens = 1;
  bool fits_context = false;  // requires fewer tokens than the model's context
};

// Checks that options.output is writable and that the checkpoint's tokenizer gives enough tokens
// for each text. Writes a tokenizer-only bundle beside the output and removes it. Throws
// ConvertError that names the file.
void CheckBefore(const ConvertOptions& options, const std::vector<TextToRun>& texts);

}  // namespace arn::convert
