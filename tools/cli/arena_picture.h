// Draws a session's memory block, or the KV cache alone.
#pragma once

#include <arenite/arenite.h>

#include <string>
#include <vector>

namespace arn::cli {

struct ArenaPicture {
  std::string title;  // any text
  arn_memory_plan plan = ARN_MEMORY_PLAN_INIT;
  std::vector<arn_kv_group_info> groups;
  uint32_t used_tokens = 0;  // of one sequence: draws its pages as used
};

// Returns "all", "window 512", "chunk 8192".
std::string Sees(const arn_kv_group_info& group);

struct PagesInUse {
  uint32_t active = 0, quantised = 0;
};
// Returns the most pages of the group that one sequence of `used_tokens` tokens holds.
PagesInUse UsedPages(const arn_kv_group_info& group, uint32_t used_tokens);

// Returns a self-contained SVG 1.1 document without scripts.
std::string DrawArena(const ArenaPicture& picture);

}  // namespace arn::cli
