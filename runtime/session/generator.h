// Generator: decodes tokens until something ends it, and delivers each with its text.
#pragma once

#include <cstdint>

#include "platform/base/span.h"
#include "platform/base/status.h"
#include "runtime/session/chooser.h"
#include "runtime/session/constrainer.h"
#include "runtime/session/core.h"
#include "runtime/session/decoder.h"
#include "runtime/session/runner.h"
#include "runtime/session/sequences.h"
#include "runtime/session/speculator.h"

namespace arn {

enum class Finish : uint32_t {
  kNone = 0,
  kEos = 1,  // a stop token, or nothing may follow the constrained text
  kStop = 2,
  kLength = 3,
  kContext = 4,
  kCallback = 5,
  kCancelled = 6,
};

struct GenerateOptions {
  uint32_t max_tokens = 0;  // 0: until a stop token or the end of the context
  bool ignore_eos = false;
  bool no_guesses = false;  // runs token by token, although the session has speculation
  // Runs ids that are given or forced one by one, so that the callback finds the logits of each.
  bool has_logits = false;
  Span<const StringView> stops;
  Span<const int32_t> extra_eos_ids;
  // Called for every new token with the text that is ready to show. A non-zero result stops the
  // generation. May be null.
  int32_t (*callback)(void* user, int32_t id, const char* text, size_t text_bytes) = nullptr;
  // Asked after each chosen token; ids that it returns come next, without being chosen. They must
  // live until the generation ends. May be null.
  Span<const int32_t> (*interject)(void* user) = nullptr;
  void* user = nullptr;  // of both
};

struct GenerateResult {
  uint32_t n_tokens = 0;
  Finish finish = Finish::kNone;
};

class Generator {
 public:
  // All arguments must outlive the part.
  Generator(SessionCore* core, Sequences* sequences, Constrainer* constrainer, Runner* runner,
            Chooser* chooser, Decoder* decoder, Speculator* speculator)
      : core_(*core),
        sequences_(*sequences),
        constrainer_(*constrainer),
        runner_(*runner),
        chooser_(*chooser),
        decoder_(*decoder),
        speculator_(*speculator) {}

  // Appends tokens to the selected sequence. *out is valid after a failure, too. kUnsupported for
  // stop strings without a tokenizer; kBadArgument for one that is empty or longer than
  // kMaxStopBytes. Returns kCancelled, with what was generated, if it is cancelled.
  Status Generate(const GenerateOptions& options, GenerateResult* out);

 private:
  struct Generation;  // state of a running Generate()

  bool IsStopId(int32_t id, const GenerateOptions& options) const;
  // Collects the stop token ids. Returns false if they do not fit `out`.
  bool CollectStopIds(const GenerateOptions& options, Span<int32_t> out, size_t* n) const;
  // Appends the tokens that the constraint leaves no choice of, and ends the generation where
  // nothing may follow. *is_taken false: the next token must be chosen.
  Status FollowConstraint(Generation* generation, bool* is_taken);
  // Returns how many tokens may be appended in one run.
  uint32_t MostAtOnce(const Generation& generation) const;
  // Returns how many tokens may follow the one that was delivered last.
  static uint32_t WantedAfter(const Generation& generation);
  // Appends the next of the ids that came in between.
  Status Interject(Generation* generation);
  // Appends ids that were not chosen, and delivers them.
  Status RunGiven(Span<const int32_t> ids, Generation* generation);
  // Passes a chosen token to the callback. Returns false to stop.
  static bool DeliverAndContinue(int32_t id, Generation* generation);

  SessionCore& core_;
  Sequences& sequences_;
  Constrainer& constrainer_;
  Runner& runner_;
  Chooser& chooser_;
  Decoder& decoder_;
  Speculator& speculator_;
};

}  // namespace arn
