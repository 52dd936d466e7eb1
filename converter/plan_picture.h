// The picture of --plan --svg.
#pragma once

#include <filesystem>

#include "converter/plan/kv_plan.h"

namespace arn::convert {

// Draws the cache with one sequence that fills half of its context. Throws ConvertError if the file
// cannot be written.
void DrawPlan(const ConfigPlan& plan, const std::filesystem::path& path);

}  // namespace arn::convert
