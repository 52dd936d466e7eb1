#include "converter/plan/kv_plan.h"

#include <algorithm>
#include <cinttypes>
#include <initializer_list>
#include <iterator>

#include "converter/base/error.h"
#include "converter/hf/json_file.h"
#include "kernels/contract/kv_type.h"
#include "nlohmann/json.hpp"
#include "platform/base/arith.h"
#include "platform/base/layout.h"

namespace arn::convert {
namespace {

// A session's defaults; the test of this file compares the whole plan with a session's.
constexpr uint32_t kPageTokens = 32;
constexpr uint32_t kPrefillChunk = 128;
constexpr uint32_t kDefaultContext = 4096;

uint64_t Product(std::initializer_list<uint64_t> factors) {
  uint64_t product = 1;
  for (const uint64_t factor : factors) {
    if (!CheckedMul(product, factor, &product)) Fail("keys and values of more than 2^64 bytes");
  }
  return product;
}

// Returns the tokens before a run's first row that this row sees; `all` if unlimited.
uint64_t TokensBehind(const KvGeometryGroup& group, uint64_t all) {
  uint64_t behind = all;
  if (group.window != 0) behind = std::min<uint64_t>(behind, group.window - 1);
  if (group.chunk != 0) behind = std::min<uint64_t>(behind, group.chunk - 1);
  return behind;
}

// Layout of kernels/contract/kv_view.h.
uint64_t PageBytes(const KvGeometryGroup& group, DType dtype) {
  const uint64_t rows = Product({group.n_kv_heads, kPageTokens});
  const uint64_t block = AlignUp(Product({rows, group.head_dim, ElementBytes(dtype)}), kSliceAlign);
  const uint64_t scales =
      HasRowScales(dtype) ? AlignUp(Product({rows, sizeof(float)}), kSliceAlign) : 0;
  return Product({group.n_layers, 2 * (block + scales)});
}

KvPlanGroup PlanGroup(const KvGeometryGroup& geometry, const KvPlan& plan) {
  KvPlanGroup group;
  group.geometry = geometry;
  const uint64_t behind = TokensBehind(geometry, plan.context - 1);
  group.tokens = behind + 1;
  const uint64_t heads = Product({2, geometry.n_layers, group.tokens, geometry.n_kv_heads});
  group.keys_values_bytes = Product({heads, geometry.head_dim, ElementBytes(plan.dtype)});
  if (HasRowScales(plan.dtype)) group.scale_bytes = Product({heads, sizeof(float)});
  const uint64_t all_pages = CeilDiv(plan.context, uint64_t{plan.page_tokens});
  // An interval of n tokens at any offset spans at most ceil((n - 1) / page) + 1 pages.
  const uint64_t interval = behind + plan.prefill_chunk;
  group.pages = std::min(all_pages, CeilDiv(interval - 1, uint64_t{plan.page_tokens}) + 1);
  group.page_bytes = PageBytes(geometry, plan.dtype);
  group.reserved_bytes = Product({group.pages, group.page_bytes});
  return group;
}

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

std::string Table(const std::string& config, const KvGeometry& geometry, const KvPlan& plan) {
  std::string text =
      Format("%s: %s\none sequence of %u tokens, keys and values in %s\n\n", config.c_str(),
             geometry.model.c_str(), plan.context, DTypeName(plan.dtype));
  text += Format("%-5s %6s %8s %8s  %-12s %8s %16s %14s %7s %11s %16s\n", "group", "layers",
                 "kv heads", "head dim", "sees", "tokens", "keys and values", "scales", "pages",
                 "a page", "reserved");
  for (size_t g = 0; g < plan.groups.size(); ++g) {
    const KvPlanGroup& group = plan.groups[g];
    text += Format("%-5zu %6u %8u %8u  %-12s %8" PRIu64 " %16" PRIu64 " %14" PRIu64 " %7" PRIu64
                   " %11" PRIu64 " %16" PRIu64 "\n",
                   g, group.geometry.n_layers, group.geometry.n_kv_heads, group.geometry.head_dim,
                   Sees(group.geometry).c_str(), group.tokens, group.keys_values_bytes,
                   group.scale_bytes, group.pages, group.page_bytes, group.reserved_bytes);
  }
  const auto row = [&](const char* name, uint64_t bytes, const std::string& note) {
    text += Format("%-16s %16" PRIu64 "  %8s  %s\n", name, bytes, HumanBytes(bytes).c_str(),
                   note.c_str());
  };
  text += "\n";
  row("keys and values", plan.keys_values_bytes, "the elements alone");
  if (HasRowScales(plan.dtype)) row("scales", plan.scale_bytes, "f32, one per token and head");
  row("reserved", plan.reserved_bytes,
      Format("in a session: pages of %u tokens, prefill chunks of %u, padding", plan.page_tokens,
             plan.prefill_chunk));
  for (const std::string& note : geometry.notes) text += "note: " + note + "\n";
  return text;
}

std::string Json(const std::string& config, const KvGeometry& geometry, const KvPlan& plan) {
  nlohmann::ordered_json json;
  json["config"] = config;
  json["model"] = geometry.model;
  json["context"] = plan.context;
  json["kv"] = DTypeName(plan.dtype);
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
    entry["tokens"] = group.tokens;
    entry["keys_and_values"] = group.keys_values_bytes;
    entry["scales"] = group.scale_bytes;
    entry["pages"] = group.pages;
    entry["page_bytes"] = group.page_bytes;
    entry["reserved"] = group.reserved_bytes;
    json["groups"].push_back(std::move(entry));
  }
  json["keys_and_values"] = plan.keys_values_bytes;
  json["scales"] = plan.scale_bytes;
  json["reserved"] = plan.reserved_bytes;
  json["notes"] = geometry.notes;
  // Replaces invalid UTF-8 in names by U+FFFD, so that the output is always valid JSON.
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

KvPlan PlanKv(const KvGeometry& geometry, uint32_t context, DType dtype) {
  KvPlan plan;
  plan.context = context;
  plan.dtype = dtype;
  plan.page_tokens = kPageTokens;
  plan.prefill_chunk = std::min(kPrefillChunk, context);
  Layout layout;
  for (const KvGeometryGroup& group : geometry.groups) {
    plan.groups.push_back(PlanGroup(group, plan));
    const KvPlanGroup& planned = plan.groups.back();
    plan.keys_values_bytes += planned.keys_values_bytes;
    plan.scale_bytes += planned.scale_bytes;
    if (!layout.AddArray(Region::kKv, planned.pages, planned.page_bytes).ok()) {
      Fail("%" PRIu64 " KV pages of %" PRIu64 " bytes do not fit the address space", planned.pages,
           planned.page_bytes);
    }
  }
  plan.reserved_bytes = layout.RegionBytes(Region::kKv);
  return plan;
}

std::string PlanReport(const std::string& config, uint32_t context, DType dtype, bool as_json) {
  KvGeometry geometry = ReadKvGeometry(LoadJson(config), config);
  if (context == 0) {
    context = geometry.max_context == 0 ? kDefaultContext
                                        : std::min(geometry.max_context, kDefaultContext);
  } else if (geometry.max_context != 0 && context > geometry.max_context) {
    geometry.notes.push_back(
        Format("the model was made for %u tokens: no session takes a context of %u",
               geometry.max_context, context));
  }
  const KvPlan plan = PlanKv(geometry, context, dtype);
  return as_json ? Json(config, geometry, plan) : Table(config, geometry, plan);
}

const std::vector<std::string>& PlannedKvTypes() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const KvTypeTraits& traits : kKvTypes) {
      if (traits.quantised_bits == 0) all.emplace_back(traits.name);
    }
    return all;
  }();
  return names;
}

DType PageTypeOf(const std::string& kv_type) {
  return std::find_if(std::begin(kKvTypes), std::end(kKvTypes),
                      [&](const KvTypeTraits& traits) { return kv_type == traits.name; })
      ->active;
}

}  // namespace arn::convert
