// Computes the KV cache bytes of sequences from a config alone: the data itself, and what a session
// reserves for it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "converter/plan/kv_geometry.h"
#include "kernels/contract/kv_type.h"

namespace arn::convert {

// Returns the KV type of that name; null if there is none.
const KvTypeTraits* FindKvType(const std::string& name);

struct KvPlanOptions {
  uint32_t context = 0;  // tokens of each sequence, > 0
  const KvTypeTraits* type = nullptr;
  uint32_t sequences = 1;
};

struct KvPlanGroup {
  KvGeometryGroup geometry;
  uint64_t tokens = 0;             // most tokens that a query sees: context, window or chunk
  uint64_t keys_values_bytes = 0;  // elements of these tokens, all sequences
  uint64_t scale_bytes = 0;        // of these tokens
  uint64_t sequence_pages = 0;     // most pages of one sequence, of both kinds
  uint64_t pages = 0;              // held by a session
  uint64_t page_bytes = 0;
  uint64_t quantised_pages = 0;  // int4 and int2 only
  uint64_t quantised_page_bytes = 0;
  uint64_t reserved_bytes = 0;
};

// Recurrent states: a sequence has two slots, one of them to go back to.
struct StatePlanGroup {
  StateGeometryGroup geometry;
  uint64_t state_bytes = 0;  // of one sequence, all layers
  uint64_t slots = 0;
  uint64_t slot_bytes = 0;
  uint64_t reserved_bytes = 0;
};

struct KvPlan {
  KvPlanOptions options;
  uint32_t page_tokens = 0;
  uint32_t prefill_chunk = 0;  // tokens
  uint32_t residual = 0;       // tokens that are never quantised
  std::vector<KvPlanGroup> groups;
  std::vector<StatePlanGroup> states;
  uint64_t keys_values_bytes = 0;
  uint64_t scale_bytes = 0;
  uint64_t state_bytes = 0;     // of all sequences
  uint64_t reserved_bytes = 0;  // the KV region: the groups' pools, with the padding of regions
};

// Page size, prefill chunk, residual and group size are a session's defaults. Throws ConvertError
// if a size overflows.
KvPlan PlanKv(const KvGeometry& geometry, const KvPlanOptions& options);

// --plan: reads `config` and plans it. options.context 0: the model's, at most 4096, as in a
// session. Throws ConvertError.
struct ConfigPlan {
  std::string config;
  KvGeometry geometry;
  KvPlan plan;
};
ConfigPlan PlanConfig(const std::string& config, KvPlanOptions options);

// Return the report, ending in a line feed.
std::string PlanTable(const ConfigPlan& plan);
std::string PlanJson(const ConfigPlan& plan);

}  // namespace arn::convert
