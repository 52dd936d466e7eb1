// A memory plan as people and programs read it.
#pragma once

#include <arenite/arenite.h>

#include <string>

#include "tools/arenite/json.h"

namespace arn::tool {

// A table, one line a region.
std::string PlanTable(const arn_memory_plan& plan);
// One line.
std::string MemoryLine(const arn_memory_plan& plan, uint64_t kv_used_bytes);
// weights, constants, kv, activations, io, total: bytes, as keys of the object that is open.
void WriteRegions(const arn_memory_plan& plan, JsonWriter* json);

}  // namespace arn::tool
