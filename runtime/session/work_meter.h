// WorkMeter: counts the weight and KV bytes that runs read.
#pragma once

#include <cstdint>

#include "kernels/contract/backend.h"
#include "kernels/contract/program.h"
#include "runtime/cache/kv_cache.h"

namespace arn {

class WorkMeter {
 public:
  // Adds the bytes that a successful run has read to *weight_bytes and *kv_bytes.
  void Count(const Program& program, const RunArgs& args, uint64_t* weight_bytes,
             uint64_t* kv_bytes);

 private:
  // Shape and weight bytes of the last counted run.
  struct Counted {
    size_t n_tokens = 0, n_sequences = 0;
    LogitRows logit_rows = LogitRows::kNone;
    uint64_t weight_bytes = 0;
  };
  Counted counted_;
};

// Returns the bytes read by one decode step: every weight of the program, but one row of the
// embedding.
uint64_t WeightBytesPerToken(const Program& program);
// Returns the KV bytes that a decode step of a sequence reads at its current length.
uint64_t KvBytesReadPerToken(const Program& program, const KvCache& cache, uint32_t sequence);

}  // namespace arn
