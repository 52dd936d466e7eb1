// The reports of --plan.
#include <cinttypes>

#include "converter/base/error.h"
#include "converter/plan/kv_plan.h"
#include "nlohmann/json.hpp"

namespace arn::convert {
namespace {

std::string HumanBytes(uint64_t bytes) {
  const double value = static_cast<double>(bytes);
  if (bytes < 1000) return Format("%.0f B", value);
  if (bytes < 1000000) return Format("%.1f kB", value / 1e3);
  if (bytes < 1000000000) return Format("%.1f MB", value / 1e6);
  return Format("%.2f GB", value / 1e9);
}

std::string Sees(const KvGeometryGroup& group) {
  if (group.window == 0 && group.chunk == 0) return "all";
  std::string text;
  if (group.window != 0) text += Format("window %u", group.window);
  if (group.chunk != 0) text += Format("%schunk %u", text.empty() ? "" : ", ", group.chunk);
  return text;
}

std::string SequencesOf(const KvPlanOptions& options) {
  return options.sequences == 1 ? "one sequence" : Format("%u sequences", options.sequences);
}

std::string GroupTable(const KvPlan& plan) {
  std::string text = Format("%-5s %6s %8s %8s  %-12s %8s %16s %14s %7s %11s %16s\n", "group",
                            "layers", "kv heads", "head dim", "sees", "tokens", "keys and values",
                            "scales", "pages", "a page", "reserved");
  for (size_t g = 0; g < plan.groups.size(); ++g) {
    const KvPlanGroup& group = plan.groups[g];
    text += Format("%-5zu %6u %8u %8u  %-12s %8" PRIu64 " %16" PRIu64 " %14" PRIu64 " %7" PRIu64
                   " %11" PRIu64 " %16" PRIu64 "\n",
                   g, group.geometry.n_layers, group.geometry.n_kv_heads, group.geometry.head_dim,
                   Sees(group.geometry).c_str(), group.tokens, group.keys_values_bytes,
                   group.scale_bytes, group.pages, group.page_bytes, group.reserved_bytes);
    if (group.quantised_pages != 0) {
      text += Format("%-79s %7" PRIu64 " %11" PRIu64 "   of them in %s\n", "",
                     group.quantised_pages, group.quantised_page_bytes, plan.options.type->name);
    }
  }
  return text;
}

std::string StateTable(const KvPlan& plan) {
  std::string text = Format("%-5s %6s %16s %7s %11s %16s\n", "state", "layers", "a sequence",
                            "slots", "a slot", "reserved");
  for (size_t g = 0; g < plan.states.size(); ++g) {
    const StatePlanGroup& group = plan.states[g];
    text += Format("%-5zu %6u %16" PRIu64 " %7" PRIu64 " %11" PRIu64 " %16" PRIu64 "\n", g,
                   group.geometry.n_layers, group.state_bytes, group.slots, group.slot_bytes,
                   group.reserved_bytes);
  }
  return text;
}

}  // namespace

std::string PlanTable(const ConfigPlan& of) {
  const KvPlan& plan = of.plan;
  const KvPlanOptions& options = plan.options;
  std::string text = Format("%s: %s\n%s of %u tokens, keys and values in %s\n\n", of.config.c_str(),
                            of.geometry.model.c_str(), SequencesOf(options).c_str(),
                            options.context, options.type->name);
  if (!plan.groups.empty()) text += GroupTable(plan);
  if (!plan.states.empty()) text += StateTable(plan);
  const auto row = [&](const char* name, uint64_t bytes, const std::string& note) {
    text += Format("%-16s %16" PRIu64 "  %8s  %s\n", name, bytes, HumanBytes(bytes).c_str(),
                   note.c_str());
  };
  text += "\n";
  if (!plan.groups.empty()) {
    row("keys and values", plan.keys_values_bytes, "the elements alone");
    if (plan.scale_bytes != 0) {
      row("scales", plan.scale_bytes,
          options.type->quantised_bits == 0
              ? "f32, one per token and head"
              : "f32 per token and head; two f16 per range of quantised elements");
    }
  }
  if (!plan.states.empty()) row("states", plan.state_bytes, "f32, for any context");
  row("reserved", plan.reserved_bytes,
      plan.groups.empty()
          ? "in a session: each state twice, padding"
          : Format("in a session: pages of %u tokens, prefill chunks of %u, padding",
                   plan.page_tokens, plan.prefill_chunk));
  for (const std::string& note : of.geometry.notes) text += "note: " + note + "\n";
  return text;
}

std::string PlanJson(const ConfigPlan& of) {
  const KvPlan& plan = of.plan;
  nlohmann::ordered_json json;
  json["config"] = of.config;
  json["model"] = of.geometry.model;
  json["context"] = plan.options.context;
  json["sequences"] = plan.options.sequences;
  json["kv"] = plan.options.type->name;
  json["kv_page_tokens"] = plan.page_tokens;
  json["prefill_chunk"] = plan.prefill_chunk;
  json["groups"] = nlohmann::ordered_json::array();
  for (const KvPlanGroup& group : plan.groups) {
    nlohmann::ordered_json entry;
    entry["layers"] = group.geometry.n_layers;
    entry["kv_heads"] = group.geometry.n_kv_heads;
    entry["head_dim"] = group.geometry.head_dim;
    entry["window"] = group.geometry.window;
    entry["chunk"] = group.geometry.chunk;
    entry["keys_only"] = group.geometry.keys_only;
    entry["tokens"] = group.tokens;
    entry["keys_and_values"] = group.keys_values_bytes;
    entry["scales"] = group.scale_bytes;
    entry["pages"] = group.pages;
    entry["page_bytes"] = group.page_bytes;
    entry["quantised_pages"] = group.quantised_pages;
    entry["quantised_page_bytes"] = group.quantised_page_bytes;
    entry["reserved"] = group.reserved_bytes;
    json["groups"].push_back(std::move(entry));
  }
  json["states"] = nlohmann::ordered_json::array();
  for (const StatePlanGroup& group : plan.states) {
    nlohmann::ordered_json entry;
    entry["layers"] = group.geometry.n_layers;
    entry["state_bytes"] = group.state_bytes;
    entry["slots"] = group.slots;
    entry["slot_bytes"] = group.slot_bytes;
    entry["reserved"] = group.reserved_bytes;
    json["states"].push_back(std::move(entry));
  }
  json["keys_and_values"] = plan.keys_values_bytes;
  json["scales"] = plan.scale_bytes;
  json["state_bytes"] = plan.state_bytes;
  json["reserved"] = plan.reserved_bytes;
  json["notes"] = of.geometry.notes;
  // Replaces invalid UTF-8 in names by U+FFFD, so that the output is always valid JSON.
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace arn::convert
