// --prefix-file: the beginning that prompts have in common, run through the bundle it is for.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace arn::convert {

struct PrefixOptions {
  std::filesystem::path text;  // its bytes as they are, tokenised by the bundle as a prompt is
  std::string kv = "int8";     // one of PrefixKvNames(): how the session keeps keys and values
  uint32_t n_threads = 0;      // 0: the library's default
};

// "f32", "f16", "int8", "int4", "int2".
const std::vector<std::string>& PrefixKvNames();

// Prefills the text in a session of `bundle` and saves that to the file `state`. Returns its
// tokens. Throws ConvertError with the library's own sentence when it cannot be done, and for a
// text of no tokens or of as many as the model's context.
std::vector<int32_t> MakePrefix(const PrefixOptions& options, const std::filesystem::path& bundle,
                                const std::filesystem::path& state,
                                const std::function<void(uint64_t done, uint64_t total)>& progress);

}  // namespace arn::convert
