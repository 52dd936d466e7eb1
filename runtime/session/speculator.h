// Speculator: runs chosen tokens together with guesses of those that follow. The logits of every
// row stay, and each token is chosen from its row as without guesses; a guess that was chosen has
// run already. Where the choice differs, the rows after it are dropped. Drafters propose the
// guesses: n-grams of the text, and behind them a draft model.
//
// Since a row's logits do not depend on the others in its run (docs/architecture.md, "The same
// result"), tokens and random numbers are those of plain decoding.
#pragma once

#include <cstdint>

#include "platform/base/span.h"
#include "platform/base/status.h"
#include "runtime/session/chooser.h"
#include "runtime/session/constrainer.h"
#include "runtime/session/core.h"
#include "runtime/session/decoder.h"
#include "runtime/session/draft_model.h"
#include "runtime/session/executor.h"
#include "runtime/session/runner.h"
#include "runtime/session/sequences.h"
#include "runtime/session/throttle.h"
#include "runtime/speculate/guess_policy.h"
#include "runtime/speculate/ngram_drafter.h"

namespace arn {

class Speculator {
 public:
  // All arguments must outlive the part.
  Speculator(SessionCore* core, Executor* executor, Sequences* sequences, Constrainer* constrainer,
             Throttle* throttle, Runner* runner, Chooser* chooser, Decoder* decoder)
      : core_(*core),
        executor_(*executor),
        sequences_(*sequences),
        constrainer_(*constrainer),
        throttle_(*throttle),
        runner_(*runner),
        chooser_(*chooser),
        decoder_(*decoder) {}
  ~Speculator();
  Speculator(const Speculator&) = delete;
  Speculator& operator=(const Speculator&) = delete;

  // Makes the drafters. A failure is explained in *diag.
  Status Init(const SessionPlan& wanted, Diag* diag);

  // Starts a generation of a sequence. `guesses` false: every token runs alone.
  void Begin(uint32_t sequence, bool guesses);
  // As Decoder::RunChosen(). `wanted`: tokens that are still wanted after this one.
  Status RunChosen(uint32_t sequence, int32_t id, uint32_t wanted);
  // Takes the leading ids that have run as guesses into the sequence. Returns their number.
  uint32_t TakeRun(uint32_t sequence, Span<const int32_t> ids);
  // Drops the guesses that have not been chosen. Call it before other calls that run tokens, and
  // when the generation ends.
  void Settle();

 private:
  GuessPolicy::Situation SituationOf(uint32_t sequence, uint32_t wanted) const;

  // Collects guesses of the tokens after `id`. Returns their number. *certain: all of them follow
  // from the constraint.
  uint32_t Guess(uint32_t sequence, int32_t id, uint32_t most, int32_t* out, bool* certain);
  // Asks one drafter, if it may have guesses that pay. Returns their number.
  uint32_t Ask(Drafter* drafter, Span<const int32_t> ids, uint32_t most, int32_t* out);
  uint32_t MostGuesses(uint32_t sequence, uint32_t wanted) const;
  Status RunAhead(uint32_t sequence, Span<const int32_t> ids);
  // True if the next guess that has run is this token.
  bool IsNext(uint32_t sequence, int32_t id) const;
  // Moves the next guess into the sequence.
  void TakeNext(uint32_t sequence);
  // Makes row `row` of the last run the sequence's logits.
  void UseLogits(uint32_t sequence, uint32_t row);
  KvCache& cache() { return sequences_.cache(); }

  SessionCore& core_;
  Executor& executor_;
  Sequences& sequences_;
  Constrainer& constrainer_;
  Throttle& throttle_;
  Runner& runner_;
  Chooser& chooser_;
  Decoder& decoder_;
  NgramDrafter ngrams_;
  DraftModel* draft_ = nullptr;  // in the session's block; null: none
  GuessPolicy policy_;
  uint32_t sequence_ = 0;             // of the generation
  bool is_on_ = false;                // in this generation
  GuessPolicy::Situation situation_;  // of the last run
  bool is_ahead_ = false;             // a run with guesses has not been settled
  bool is_certain_ = false;           // all of its guesses followed from the constraint
  uint32_t n_proposed_ = 0, n_accepted_ = 0, kind_ = 0;  // of that run
  uint32_t n_ahead_ = 0;  // guesses of it that may still be chosen; they follow the history
};

}  // namespace arn
