// Runs of `arenite bench`: one case, repeated, and the results.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tools/arenite/bench_profile.h"
#include "tools/arenite/device.h"
#include "tools/arenite/encoder_input.h"
#include "tools/arenite/model.h"

namespace arn::tool {

// CaseKind: what is timed, an input of the encoder, a prompt or generated tokens.
enum class CaseKind { kEncode, kPrefill, kDecode };
// "encode", "prefill" or "decode".
const char* NameOf(CaseKind kind);

struct Case {
  CaseKind kind = CaseKind::kDecode;
  uint32_t tokens = 0;  // tokens, or rows of the encoder, to run and time
  uint32_t depth = 0;   // tokens in the sequence before
};

// One run of a case.
struct TimedRun {
  double at_s = 0;  // end of the run on the clock of /proc/uptime
  double tokens_per_s = 0;
  int32_t temperature_mc = ARN_NO_TEMPERATURE;
};

// One case, run several times.
struct Measurement {
  Case what;
  uint32_t threads = 0, context = 0, sequences = 1;
  double median = 0, lowest = 0, highest = 0;  // tokens/s
  double bytes_per_token = 0;                  // read by decoding: weights and KV; else 0
  std::vector<TimedRun> runs;
  // Totals over all runs: tokens, time, energy, and the time during which energy was read.
  uint64_t total_tokens = 0, total_ns = 0, energy_uj = 0, energy_ns = 0;
  DeviceState device;  // after the last run
  std::optional<Profile> profile;
  // Mean power while it was read, times the time per token. 0: unknown.
  double joules_per_token() const;
};

class Bench {
 public:
  // Decodes a batch of `n_sequences` sequences: in a loop of its own, or as requests of a
  // scheduler. `session` and `encoder_input` must outlive it.
  Bench(const Session& session, const EncoderInput& encoder_input, uint32_t vocab,
        uint32_t n_sequences, bool schedules);

  // Runs at least `repeats` times and at least `seconds` seconds. Takes the profile in an extra
  // run, so that it does not slow down the others.
  Measurement Run(const Case& what, uint32_t repeats, double seconds, bool with_profile);

 private:
  // Brings the first `n` sequences to the depth of `ids` and empties the others. Reuses the prefix
  // that a sequence already holds: at a depth of thousands, prefill dominates.
  void Begin(const std::vector<int32_t>& ids, size_t n);
  // Returns the bytes that the last step read, per sequence.
  double BytesOfStep() const;
  // Decodes as requests, whose prompt all sequences hold. Returns the bytes read per token.
  double Schedule(const std::vector<int32_t>& prompt, uint32_t n_tokens);
  // Decode n_tokens and return the bytes read per token. GenerateAll: for a single sequence, with
  // arn_session_generate(), so that a device that samples itself can run ahead.
  double DecodeAll(uint32_t n_tokens);
  double GenerateAll(uint32_t n_tokens);
  void Generate(uint32_t n_tokens);
  void EncodeOnce(Measurement* m);
  // Measures tokens/s of all sequences together.
  void RunOnce(const Case& what, Measurement* m, std::optional<Profile>* profile = nullptr);

  const Session& session_;
  const EncoderInput& encoder_input_;
  uint32_t vocab_;
  bool schedules_;
  std::vector<uint32_t> sequences_;
};

}  // namespace arn::tool
