#include "converter/plan_picture.h"

#include "converter/write/out_file.h"
#include "tools/cli/arena_picture.h"

namespace arn::convert {
namespace {

arn_kv_group_info GroupInfo(const KvPlanGroup& group, const KvPlan& plan) {
  arn_kv_group_info info = ARN_KV_GROUP_INFO_INIT;
  info.n_layers = group.geometry.n_layers;
  info.n_kv_heads = group.geometry.n_kv_heads;
  info.head_dim = group.geometry.head_dim;
  info.window = group.geometry.window;
  info.chunk = group.geometry.chunk;
  info.page_tokens = plan.page_tokens;
  info.n_pages = static_cast<uint32_t>(group.pages);
  info.sequence_pages = static_cast<uint32_t>(group.sequence_pages);
  info.page_bytes = group.page_bytes;
  info.n_quantised_pages = static_cast<uint32_t>(group.quantised_pages);
  info.quantised_page_bytes = group.quantised_page_bytes;
  info.residual = plan.residual;
  return info;
}

arn_kv_group_info StateInfo(const StatePlanGroup& group) {
  arn_kv_group_info info = ARN_KV_GROUP_INFO_INIT;
  info.n_layers = group.geometry.n_layers;
  info.state_bytes = group.geometry.state_floats * sizeof(float);
  info.n_pages = static_cast<uint32_t>(group.slots);
  info.sequence_pages = 2;
  info.page_bytes = group.slot_bytes;
  return info;
}

}  // namespace

void DrawPlan(const ConfigPlan& of, const std::filesystem::path& path) {
  const KvPlan& plan = of.plan;
  cli::ArenaPicture picture;
  picture.title = of.geometry.model + ": the KV cache of a session, keys and values in " +
                  plan.options.type->name;
  picture.plan.kv_bytes = picture.plan.total_bytes = plan.reserved_bytes;
  picture.plan.context_tokens = plan.options.context;
  picture.plan.max_sequences = plan.options.sequences;
  picture.plan.prefill_chunk = plan.prefill_chunk;
  picture.used_tokens = plan.options.context / 2;
  for (const KvPlanGroup& group : plan.groups) picture.groups.push_back(GroupInfo(group, plan));
  for (const StatePlanGroup& group : plan.states) picture.groups.push_back(StateInfo(group));
  const std::string svg = cli::DrawArena(picture);
  OutFile file(path);
  file.Append(svg.data(), svg.size());
  file.Commit();
}

}  // namespace arn::convert
