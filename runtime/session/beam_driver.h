// BeamDriver: searches with beams. Each running beam is a sequence, each step one run.
#pragma once

#include <cstdint>

#include "platform/base/span.h"
#include "platform/base/status.h"
#include "runtime/sampling/beam_search.h"
#include "runtime/session/chooser.h"
#include "runtime/session/constrainer.h"
#include "runtime/session/core.h"
#include "runtime/session/decoder.h"
#include "runtime/session/sequences.h"

namespace arn {

struct BeamRequest {
  BeamOptions options;  // max_tokens 0: as many as fit the context. Its `stop_ids` are ignored.
  bool ignore_eos = false;
  Span<const int32_t> extra_eos_ids;
};

struct BeamResult {
  uint32_t n_sequences = 0;
  uint32_t n_steps = 0;
  uint64_t kv_peak_bytes = 0;
};

class BeamDriver {
 public:
  // All arguments must outlive the part.
  BeamDriver(SessionCore* core, Sequences* sequences, Constrainer* constrainer, Chooser* chooser,
             Decoder* decoder)
      : core_(*core),
        sequences_(*sequences),
        constrainer_(*constrainer),
        chooser_(*chooser),
        decoder_(*decoder) {}

  void Init(const LogitsOps* ops);
  // Searches from the selected sequence, in sequences 0 to num_beams - 1, and empties those.
  // kBadState unless they are empty, but for the selected one; kContextFull if the beams do not
  // fit. With a constraint, a beam's probabilities are those of the tokens allowed; the beams' own
  // sequences have none afterwards, except the selected one.
  Status Search(const BeamRequest& request, BeamResult* out);
  // Returns a sequence found by the last search, best first. kBadArgument if there is no such one,
  // kBufferTooSmall if `out_ids` is shorter than *out_count.
  Status Read(uint32_t index, Span<int32_t> out_ids, size_t* out_count, float* out_score) const;

 private:
  Status CollectStopIds(const BeamRequest& request, BeamOptions* options);
  // Input of the processors that stays the same during a search.
  struct Processing {
    bool is_on = false;
    const SamplingOptions* options = nullptr;
    ProcessorInput input;  // n_generated: at the start
    uint32_t max_tokens = 0;
  };
  // Returns the log-probabilities of a beam after the processors, as transformers' _beam_search;
  // valid until the next call.
  const float* Process(const Processing& processing, uint32_t sequence);
  Status Steps(uint32_t num_beams, const Processing& processing, BeamResult* out);
  KvCache& cache() { return sequences_.cache(); }

  SessionCore& core_;
  Sequences& sequences_;
  Constrainer& constrainer_;
  Chooser& chooser_;
  Decoder& decoder_;
  BeamSearch beams_;
};

}  // namespace arn
