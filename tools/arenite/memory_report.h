// A memory plan as people and programs read it.
#pragma once

#include <arenite/arenite.h>

#include <string>
#include <vector>

#include "tools/arenite/json.h"

namespace arn::tool {

// A table, one line a region.
std::string PlanTable(const arn_memory_plan& plan);
// A table, one line a group of layers.
std::string GroupTable(const std::vector<arn_kv_group_info>& groups);
// "all", "window 512", "chunk 8192": the positions that a query of the group sees.
std::string Sees(const arn_kv_group_info& group);
uint64_t PoolBytes(const arn_kv_group_info& group);
uint64_t SealedPoolBytes(const arn_kv_group_info& group);
// One line.
std::string MemoryLine(const arn_memory_plan& plan, uint64_t kv_used_bytes);
// weights, constants, kv, activations, io, total: bytes, as keys of the object that is open.
void WriteRegions(const arn_memory_plan& plan, JsonWriter* json);

// The key "groups": a list of objects, sizes in bytes.
void WriteGroups(const std::vector<arn_kv_group_info>& groups, JsonWriter* json);

}  // namespace arn::tool
