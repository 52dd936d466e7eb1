// The runs of `arenite bench`: a case, some times over, and what came of it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tools/arenite/bench_profile.h"
#include "tools/arenite/device.h"
#include "tools/arenite/model.h"
#include "tools/arenite/source.h"

namespace arn::tool {

struct Case {
  bool is_prefill = false;
  uint32_t tokens = 0;  // how many are run and timed
  uint32_t depth = 0;   // how many are in the sequence before
};

// One run of a case.
struct TimedRun {
  double at_s = 0;  // of the clock in /proc/uptime, when it ended
  double tokens_per_s = 0;
  int32_t temperature_mc = ARN_NO_TEMPERATURE;
};

// One case, run several times.
struct Measurement {
  Case what;
  uint32_t threads = 0, context = 0;
  double median = 0, lowest = 0, highest = 0;  // tokens/s
  double bytes_per_token = 0;                  // that decoding reads: weights and KV; 0 for prefill
  std::vector<TimedRun> runs;
  // Of all runs: what they took of the time and of the energy, for their tokens.
  uint64_t total_tokens = 0, total_ns = 0, energy_uj = 0, energy_ns = 0;
  DeviceState device;  // after the last
  std::optional<Profile> profile;
  // Mean power while it was read, times the time that a token took. 0: not known.
  double joules_per_token() const;
};

class Bench {
 public:
  // Decoding goes on in `n_sequences` sequences together. `session` and `source` must outlive it.
  Bench(const Session& session, const Source& source, uint32_t vocab, uint32_t n_sequences);

  // At least `repeats` times and so many seconds. The profile, when one is wanted, is of one more
  // run, so that taking it costs the others nothing.
  Measurement Run(const Case& what, uint32_t repeats, double seconds, bool with_profile);

 private:
  // Brings the first `n` sequences to the depth of `ids` and empties the others. What a sequence
  // has of them already stays where it can: at a depth of thousands that is most of the time.
  void Begin(const std::vector<int32_t>& ids, size_t n);
  // Of the last step, for one of the sequences.
  double BytesOfStep() const;
  // Returns the bytes that a token reads. GenerateAll: of a lone sequence, as tokens are generated,
  // so that a device that chooses them itself runs ahead.
  double DecodeAll(uint32_t n_tokens);
  double GenerateAll(uint32_t n_tokens);
  void Generate(uint32_t n_tokens);
  // Tokens/s are those of all sequences together.
  void RunOnce(const Case& what, Measurement* m, std::optional<Profile>* profile = nullptr);

  const Session& session_;
  const Source& source_;
  uint32_t vocab_;
  std::vector<uint32_t> sequences_;
};

}  // namespace arn::tool
