// KvReader: returns the keys and values of a layer as f32 for every KV type and backend.
#pragma once

#include <cstdint>

#include "platform/base/status.h"
#include "runtime/session/core.h"
#include "runtime/session/executor.h"
#include "runtime/session/recompute.h"
#include "runtime/session/runner.h"
#include "runtime/session/sequences.h"

namespace arn {

// Location of a layer's keys and values in the selected sequence.
struct KvLayer {
  uint32_t group = 0;
  uint32_t group_layer = 0;
  uint32_t kv_layer = 0;        // layer that owns the keys and values: this one or an earlier one
  uint32_t first_position = 0;  // earlier positions have been dropped
};

class KvReader {
 public:
  // All arguments must outlive the part.
  KvReader(SessionCore* core, Executor* executor, Sequences* sequences, Recompute* recompute,
           Runner* runner)
      : core_(*core),
        executor_(*executor),
        sequences_(*sequences),
        recompute_(*recompute),
        runner_(*runner) {}

  // kUnsupported if the layer has no keys and values, kBadArgument if there is no such layer.
  Status FindLayer(uint32_t layer, KvLayer* out) const;
  // Reads positions [first, first + n) of the selected sequence. keys, values: f32 [n_kv_heads, n,
  // head_dim]; either may be null. kBadArgument beyond the sequence, kBadState before the layer's
  // first position.
  Status Read(uint32_t layer, uint32_t first, uint32_t n, float* keys, float* values);

 private:
  Status Copy(const KvLayer& layer, uint32_t first, uint32_t n, float* keys, float* values);
  const KvCache& cache() const { return sequences_.cache(); }

  SessionCore& core_;
  Executor& executor_;
  Sequences& sequences_;
  Recompute& recompute_;
  Runner& runner_;
};

}  // namespace arn
