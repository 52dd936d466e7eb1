// --prefix-file: runs a common prompt prefix through the bundle.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "converter/hf/json_file.h"

namespace arn::convert {

struct PrefixOptions {
  NamedText text;           // tokenised by the bundle like a prompt
  std::string kv = "int8";  // one of PrefixKvNames(): the session's KV cache type
  uint32_t n_threads = 0;   // 0: the library's default
};

// Returns "f32", "f16", ..., indexed by ARN_KV_...
const std::vector<std::string>& PrefixKvNames();

// Prefills the text in a session of `bundle` and saves the session to the file `state`. Returns its
// tokens. Throws ConvertError with the library's own sentence on failure, and for a text of no
// tokens or of at least the model's context.
std::vector<int32_t> MakePrefix(const PrefixOptions& options, const std::filesystem::path& bundle,
                                const std::filesystem::path& state,
                                const std::function<void(uint64_t done, uint64_t total)>& progress);

}  // namespace arn::convert
