// SessionPlan: everything that a session will take, decided before a byte is allocated. Planning
// and loading share it: the slices that were measured are the slices that are used.
#pragma once

#include <cstdint>

#include "kernels/backend.h"
#include "platform/base/dtype.h"
#include "platform/base/layout.h"
#include "runtime/cache/kv_layout.h"
#include "runtime/cache/sequence_cache.h"
#include "runtime/model/model.h"
#include "runtime/sampling/sampler.h"

namespace arn {

struct SessionOptions {
  DType kv_dtype = DType::kInt8;
  uint32_t context_tokens = 0;  // 0: the model's, at most kDefaultContextTokens
  uint32_t prefill_chunk = 0;   // 0: kDefaultPrefillChunk
  uint32_t n_threads = 0;       // 0: as many as there are performance CPUs
  uint32_t kv_page_tokens = 0;  // 0: kDefaultKvPageTokens
  bool all_logits = false;
};

inline constexpr uint32_t kDefaultContextTokens = 4096;
inline constexpr uint32_t kDefaultPrefillChunk = 128;
inline constexpr uint32_t kDefaultKvPageTokens = 32;
inline constexpr uint32_t kMaxPrefillChunk = 4096;
inline constexpr uint32_t kMinKvPageTokens = 8;
inline constexpr uint32_t kMaxKvPageTokens = 1024;
inline constexpr uint32_t kMaxThreads = 256;
// Bytes of stop strings that a session can hold back.
inline constexpr uint32_t kMaxStopBytes = 256;

struct SessionPlan {
  SessionOptions options;  // as applied: no zeros left
  const Backend* backend = nullptr;
  // The model's program with this session's sizes. Its values and kv_groups point into this struct:
  // Bind() after a copy.
  Program program;
  Value values[kMaxValues];
  KvGroup kv_groups[kMaxKvGroups];
  BackendPlan backend_plan;
  SequenceCachePlan cache;
  SamplerPlan sampler;
  Slice session;  // the Session object itself
  Slice tokens;   // i32 [prefill_chunk]: ids of the run
  Slice text;     // char: text that a stop string may still claim, and the piece being written
  uint64_t region_bytes[kRegionCount] = {};  // kWeights: the mapped bytes

  void Bind();
  // Bytes of a session's block: the sum of its regions.
  uint64_t TotalBytes() const;
  uint64_t KvBytesPerToken() const;
};

// Checks the options against the model and lays everything out. `session_bytes` is sizeof the
// object that the session keeps for itself.
Status PlanSession(const Model& model, const Backend* backend, const SessionOptions& options,
                   uint64_t session_bytes, SessionPlan* out, Diag* diag);

// The regions of a block of TotalBytes(), aligned to kRegionAlign.
Memory PartitionBlock(const SessionPlan& plan, std::byte* block);

}  // namespace arn
