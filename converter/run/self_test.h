// Computes the self-test of a bundle: a few tokens, run by the CPU, that a device is checked
// against at session creation.
#pragma once

#include <cstdint>
#include <filesystem>

#include "converter/write/index.h"

namespace arn::convert {

// Runs the tokens through `bundle`, with an f32 KV cache. Returns no ids for encoder-decoder models
// (tokens alone do not exercise them), for models with a shorter context than the test, and if a
// logit is not finite. Throws ConvertError if the bundle cannot run here.
SelfTestData MakeSelfTest(const std::filesystem::path& bundle, uint32_t n_threads);

}  // namespace arn::convert
