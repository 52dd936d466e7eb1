// The few tokens that a device is tested with when a session is created, run by the CPU.
#pragma once

#include <cstdint>
#include <filesystem>

#include "converter/write/index.h"

namespace arn::convert {

// Runs them through `bundle`, with an f32 cache. Nothing (no ids) for models that attend to a
// source, for which tokens alone say nothing, for those with a context of fewer tokens, and when
// a logit is not a finite number. Throws ConvertError when the bundle cannot be run here.
SelfTestData MakeSelfTest(const std::filesystem::path& bundle, uint32_t n_threads);

}  // namespace arn::convert
