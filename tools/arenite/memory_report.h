// Prints a memory plan for people and for programs.
#pragma once

#include <arenite/arenite.h>

#include <string>
#include <vector>

#include "tools/arenite/json.h"

namespace arn::tool {

// Returns a table, one line per region.
std::string PlanTable(const arn_memory_plan& plan);
// Returns a table, one line per group of layers.
std::string GroupTable(const std::vector<arn_kv_group_info>& groups);
uint64_t PoolBytes(const arn_kv_group_info& group);
uint64_t QuantisedPoolBytes(const arn_kv_group_info& group);
// Returns one line.
std::string MemoryLine(const arn_memory_plan& plan, uint64_t kv_used_bytes);
// Returns "92.7 MB mapped, 92.1 MB in memory, 90.0 MB of it in huge pages".
std::string ResidencyLine(const arn_residency& residency);
// Writes weights, constants, kv, activations, io, total, in bytes, as keys of the open object.
void WriteRegions(const arn_memory_plan& plan, JsonWriter* json);

// Writes the key "groups": a list of objects, sizes in bytes.
void WriteGroups(const std::vector<arn_kv_group_info>& groups, JsonWriter* json);

}  // namespace arn::tool
