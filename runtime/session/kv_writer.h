// KvWriter: appends tokens whose keys and values come from outside, instead of running them.
#pragma once

#include <cstdint>

#include "platform/base/span.h"
#include "platform/base/status.h"
#include "runtime/session/core.h"
#include "runtime/session/executor.h"
#include "runtime/session/kv_reader.h"
#include "runtime/session/runner.h"
#include "runtime/session/sequences.h"

namespace arn {

class KvWriter {
 public:
  // All arguments must outlive the part.
  KvWriter(SessionCore* core, Executor* executor, Sequences* sequences, Runner* runner,
           const KvReader* reader)
      : core_(*core),
        executor_(*executor),
        sequences_(*sequences),
        runner_(*runner),
        reader_(*reader) {}

  // Appends `ids` to the selected sequence. keys[i], values[i]: of layer i, f32 [n_kv_heads,
  // ids.size(), head_dim], keys after RoPE; null for layers that use an earlier layer's. Leaves no
  // logits. kUnsupported without a cache, with an encoder or a recurrent state; kBadArgument,
  // kBadToken and kContextFull change nothing, except that kContextFull for want of shared pages
  // keeps the chunks that are written, as a prefill does.
  Status Append(Span<const int32_t> ids, const float* const* keys, const float* const* values);

 private:
  Status Check(Span<const int32_t> ids, const float* const* keys, const float* const* values) const;
  Status AppendChunk(Span<const int32_t> ids, uint32_t begin, uint32_t n, const float* const* keys,
                     const float* const* values);
  // Writes tokens [begin, begin + n) of `rows`, [n_kv_heads, n_rows, head_dim], to positions from
  // the sequence's length on.
  Status WriteRows(const KvLayer& layer, bool is_keys, const float* rows, uint32_t n_rows,
                   uint32_t begin, uint32_t n);

  SessionCore& core_;
  Executor& executor_;
  Sequences& sequences_;
  Runner& runner_;
  const KvReader& reader_;
};

}  // namespace arn
