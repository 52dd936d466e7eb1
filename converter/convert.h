// From a checkpoint folder to a bundle.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "converter/tensor_plan.h"

namespace arn::convert {

struct ConvertOptions {
  std::filesystem::path folder;  // config.json, *.safetensors, tokenizer.json ...
  std::filesystem::path output;
  std::filesystem::path config;  // instead of config.json of the folder; empty: that
  std::string source_name;       // recorded in the bundle; empty: the folder's name
  Formats formats;
  bool tokenizer_only = false;
  uint32_t n_threads = 2;
};

struct ConvertResult {
  uint64_t file_bytes = 0;
  uint64_t n_parameters = 0;
  bool has_tokenizer = false;
};

// What a conversion tells while it runs. Both may be empty; on_progress may throw ConvertError to
// end it.
struct ConvertEvents {
  std::function<void(const std::string& sentence)> on_warning;
  // `tensor`: the one at work; elements of `total` that are done.
  std::function<void(const std::string& tensor, uint64_t done, uint64_t total)> on_progress;
};

// Writes options.output, or throws ConvertError and leaves nothing behind.
ConvertResult Convert(const ConvertOptions& options, const ConvertEvents& events);

}  // namespace arn::convert
