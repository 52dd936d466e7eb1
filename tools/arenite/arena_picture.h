// arenite plan --svg: a picture of a session's block.
#pragma once

#include <arenite/arenite.h>

#include <string>
#include <vector>

namespace arn::tool {

struct ArenaPicture {
  std::string title;  // any text
  arn_memory_plan plan = ARN_MEMORY_PLAN_INIT;
  std::vector<arn_kv_group_info> groups;
  uint32_t used_tokens = 0;  // of one sequence: its pages are drawn as used
};

struct PagesInUse {
  uint32_t open = 0, sealed = 0;
};
// Pages of the group that one sequence of so many tokens holds at most.
PagesInUse UsedPages(const arn_kv_group_info& group, uint32_t used_tokens);

// An SVG 1.1 document, complete in itself, without scripts.
std::string DrawArena(const ArenaPicture& picture);

}  // namespace arn::tool
