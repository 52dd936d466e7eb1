// Computes the KV cache bytes of one sequence from a config alone: the data itself, and what a
// session reserves for it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "converter/plan/kv_geometry.h"
#include "platform/base/dtype.h"

namespace arn::convert {

struct KvPlanGroup {
  KvGeometryGroup geometry;
  uint64_t tokens = 0;             // most tokens that a query sees: context, window or chunk
  uint64_t keys_values_bytes = 0;  // elements of these tokens
  uint64_t scale_bytes = 0;        // of these tokens, int8 only
  uint64_t pages = 0;              // held by a session per sequence
  uint64_t page_bytes = 0;
  uint64_t reserved_bytes = 0;  // pages * page_bytes
};

struct KvPlan {
  uint32_t context = 0;  // tokens
  DType dtype = DType::kF32;
  uint32_t page_tokens = 0;
  uint32_t prefill_chunk = 0;  // tokens
  std::vector<KvPlanGroup> groups;
  uint64_t keys_values_bytes = 0;
  uint64_t scale_bytes = 0;
  uint64_t reserved_bytes = 0;  // the KV region: the groups' pools, with the padding of regions
};

// `context`: tokens of the sequence, > 0. dtype: kF32, kF16 or kInt8. Page size and prefill chunk
// are a session's defaults. Throws ConvertError if a size overflows.
KvPlan PlanKv(const KvGeometry& geometry, uint32_t context, DType dtype);

// --plan: reads `config`, plans, and returns the report: a table or (with `as_json`) one JSON
// object, both ending in a line feed. `context` 0: the model's, at most 4096, as in a session.
// Throws ConvertError.
std::string PlanReport(const std::string& config, uint32_t context, DType dtype, bool as_json);

// Returns the KV types that are planned without a session: those whose pages are never quantised.
const std::vector<std::string>& PlannedKvTypes();
// Returns the type of the pages. REQUIRES: one of PlannedKvTypes().
DType PageTypeOf(const std::string& kv_type);

}  // namespace arn::convert
