#include "converter/plan/kv_plan.h"

#include <algorithm>
#include <cinttypes>
#include <initializer_list>

#include "converter/base/error.h"
#include "converter/hf/json_file.h"
#include "kernels/contract/kv_page.h"
#include "nlohmann/json.hpp"
#include "platform/base/arith.h"
#include "platform/base/layout.h"

namespace arn::convert {
namespace {

// A session's defaults; the test of this file compares the whole plan with a session's.
constexpr uint32_t kPrefillChunk = 128;
constexpr uint32_t kDefaultContext = 4096;
constexpr uint32_t kResidual = 128;

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

// An interval of n tokens at any offset spans at most this many pages.
uint64_t PagesOf(uint64_t n, uint64_t page_tokens) { return CeilDiv(n - 1, page_tokens) + 1; }

// Layout of kernels/contract/kv_view.h. bits 0: an active page.
uint64_t PageBytes(const KvGeometryGroup& geometry, const KvTypeTraits& type, uint32_t bits) {
  const DType dtype = type.active;
  KvGroup group;
  group.head_dim = geometry.head_dim;
  group.page_tokens = group.group_size = type.page_tokens;
  uint64_t bytes = 0;
  for (const bool keys : {true, false}) {
    if (geometry.keys_only && !keys) continue;
    const uint64_t values = Product({geometry.n_kv_heads, KvValueBytes(group, dtype, bits)});
    const uint64_t scales = Product({geometry.n_kv_heads, KvScaleBytes(group, keys, dtype, bits)});
    bytes += AlignUp(values, kSliceAlign) + AlignUp(scales, kSliceAlign);
  }
  return Product({geometry.n_layers, bytes});
}

// Pages of one sequence whose tokens are all older than the residual.
uint64_t QuantisedPages(const KvGeometryGroup& geometry, uint32_t context, uint32_t page_tokens,
                        uint64_t all) {
  if (context <= kResidual) return 0;
  if (geometry.window != 0 && geometry.window - 1 <= kResidual) return 0;
  return std::min<uint64_t>(all, (context - kResidual) / page_tokens);
}

KvPlanGroup PlanGroup(const KvGeometryGroup& geometry, const KvPlan& plan) {
  const KvPlanOptions& options = plan.options;
  const KvTypeTraits& type = *options.type;
  const uint32_t page_tokens = type.page_tokens;
  const uint64_t rows = std::max(plan.prefill_chunk, options.sequences);
  KvPlanGroup group;
  group.geometry = geometry;
  const uint64_t behind = TokensBehind(geometry, options.context - 1);
  group.tokens = behind + 1;
  const uint64_t most =
      std::min(CeilDiv(options.context, page_tokens), PagesOf(behind + rows, page_tokens));
  group.sequence_pages = most;
  const bool is_quantised = type.quantised_bits != 0 && !geometry.keys_only;
  const uint64_t quantised =
      is_quantised ? QuantisedPages(geometry, options.context, page_tokens, most) : 0;
  const uint64_t active =
      quantised == 0 ? most : std::min(most, PagesOf(kResidual + rows, page_tokens));
  group.pages = Product({active, options.sequences});
  // A page that is old in one sequence may be recent in another that shares it.
  if (quantised != 0) group.pages += options.sequences - 1;
  group.page_bytes = PageBytes(geometry, type, 0);
  group.quantised_pages = Product({quantised, options.sequences});
  if (quantised != 0) {
    group.quantised_page_bytes = PageBytes(geometry, type, type.quantised_bits);
  }
  group.reserved_bytes = Product({group.pages, group.page_bytes}) +
                         Product({group.quantised_pages, group.quantised_page_bytes});

  const uint64_t old_tokens = std::min(group.tokens, quantised * page_tokens);
  const uint64_t new_tokens = group.tokens - old_tokens;
  const uint64_t sides = geometry.keys_only ? 1 : 2;
  const uint64_t heads =
      Product({sides, geometry.n_layers, geometry.n_kv_heads, options.sequences});
  group.keys_values_bytes =
      Product({heads, new_tokens, geometry.head_dim, ElementBytes(type.active)}) +
      Product({heads, old_tokens, KvRowBytes(geometry.head_dim, type.quantised_bits)});
  if (HasRowScales(type.active)) {
    group.scale_bytes = Product({heads, new_tokens, sizeof(float)});
  }
  // Least and scale of each range, in f16.
  const uint64_t ranges = CeilDiv(uint64_t{geometry.head_dim}, uint64_t{page_tokens});
  if (old_tokens != 0) {
    group.scale_bytes += Product({heads / 2, old_tokens, ranges, 4}) +
                         Product({heads / 2, old_tokens / page_tokens, geometry.head_dim, 4});
  }
  return group;
}

StatePlanGroup PlanState(const StateGeometryGroup& geometry, uint32_t sequences) {
  StatePlanGroup group;
  group.geometry = geometry;
  const uint64_t layer = Product({geometry.state_floats, sizeof(float)});
  group.state_bytes = Product({geometry.n_layers, layer});
  group.slots = uint64_t{2} * sequences;
  group.slot_bytes = Product({geometry.n_layers, AlignUp(layer, kSliceAlign)});
  group.reserved_bytes = Product({group.slots, group.slot_bytes});
  return group;
}

void Reserve(uint64_t n, uint64_t bytes, Layout* layout) {
  if (n == 0 || layout->Add(Region::kKv, Product({n, bytes}), kRegionAlign).ok()) return;
  Fail("%" PRIu64 " KV pages of %" PRIu64 " bytes do not fit the address space", n, bytes);
}

}  // namespace

const KvTypeTraits* FindKvType(const std::string& name) {
  for (const KvTypeTraits& type : kKvTypes) {
    if (name == type.name) return &type;
  }
  return nullptr;
}

KvPlan PlanKv(const KvGeometry& geometry, const KvPlanOptions& options) {
  KvPlan plan;
  plan.options = options;
  plan.page_tokens = options.type->page_tokens;
  plan.prefill_chunk = std::min(kPrefillChunk, options.context);
  plan.residual = options.type->quantised_bits == 0 ? 0 : kResidual;
  Layout layout;
  for (const KvGeometryGroup& group : geometry.groups) {
    plan.groups.push_back(PlanGroup(group, plan));
    const KvPlanGroup& planned = plan.groups.back();
    plan.keys_values_bytes += planned.keys_values_bytes;
    plan.scale_bytes += planned.scale_bytes;
    Reserve(planned.pages, planned.page_bytes, &layout);
    Reserve(planned.quantised_pages, planned.quantised_page_bytes, &layout);
  }
  for (const StateGeometryGroup& group : geometry.states) {
    plan.states.push_back(PlanState(group, options.sequences));
    const StatePlanGroup& planned = plan.states.back();
    plan.state_bytes += Product({planned.state_bytes, options.sequences});
    Reserve(planned.slots, planned.slot_bytes, &layout);
  }
  plan.reserved_bytes = layout.RegionBytes(Region::kKv);
  return plan;
}

ConfigPlan PlanConfig(const std::string& config, KvPlanOptions options) {
  ConfigPlan plan;
  plan.config = config;
  plan.geometry = ReadKvGeometry(LoadJson(config), config);
  KvGeometry& geometry = plan.geometry;
  if (options.context == 0) {
    options.context = geometry.max_context == 0 ? kDefaultContext
                                                : std::min(geometry.max_context, kDefaultContext);
  } else if (geometry.max_context != 0 && options.context > geometry.max_context) {
    geometry.notes.push_back(
        Format("the model was made for %u tokens: no session takes a context of %u",
               geometry.max_context, options.context));
  }
  plan.plan = PlanKv(geometry, options);
  return plan;
}

}  // namespace arn::convert
