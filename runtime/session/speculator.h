// Speculator: runs chosen tokens together with guesses of those that follow. The logits of every
// row stay, and each token is chosen from its row as without guesses; a guess that was chosen has
// run already. Where the choice differs, the rows after it are dropped. Drafters propose the
// guesses: n-grams of the text, and behind them a draft model, or the head of the model itself that
// predicts further tokens, or its assistant.
//
// Since a row's logits do not depend on the others in its run (docs/architecture.md, "The same
// result"), tokens and random numbers are those of plain decoding.
//
// A generation guesses alone, and so does a reply that has a scheduler's step for itself. Where
// several sequences share a run, they share its guesses (SharedGuessPolicy), and only the n-grams
// propose.
#pragma once

#include <cstdint>

#include "platform/base/span.h"
#include "platform/base/status.h"
#include "runtime/session/assistant_drafter.h"
#include "runtime/session/chooser.h"
#include "runtime/session/constrainer.h"
#include "runtime/session/core.h"
#include "runtime/session/decoder.h"
#include "runtime/session/draft_model.h"
#include "runtime/session/executor.h"
#include "runtime/session/mtp_drafter.h"
#include "runtime/session/runner.h"
#include "runtime/session/sequences.h"
#include "runtime/session/throttle.h"
#include "runtime/speculate/guess_odds.h"
#include "runtime/speculate/guess_policy.h"
#include "runtime/speculate/ngram_drafter.h"
#include "runtime/speculate/shared_guess_policy.h"

namespace arn {

// SequenceGuesses: of one sequence. Without a scheduler one serves all, one after the other.
struct SequenceGuesses {
  NgramDrafter ngrams;
  GuessOdds odds;  // of the reply, in the steps of a scheduler
  Offer offer;     // of the last look
  GuessPolicy::Situation situation;
  bool is_ahead = false;    // it has guesses and has not been settled
  bool is_shared = false;   // other sequences were in it
  bool is_certain = false;  // all of its guesses followed from the constraint
  uint32_t n_proposed = 0, n_accepted = 0, kind = 0;
  uint32_t n_ahead = 0;  // guesses of it that may still be chosen; they follow the history
  uint32_t row = 0;      // of its logits: those of the token before the guesses
};

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
  void Settle() { Settle(sequence_); }

  // The steps of a scheduler.

  // True if they may have guesses.
  bool CanGuess() const { return core_.plan.options.max_guesses != 0 && CanVerify(); }
  // Forgets what another text of the sequence has taught.
  void BeginText(uint32_t sequence);
  // Writes guesses of the tokens after `known`, which come next and have not run, for a run of this
  // sequence alone, and holds the states for it. `wanted`: tokens that may follow them. Returns the
  // number of guesses.
  uint32_t ProposeAlone(uint32_t sequence, Span<const int32_t> known, uint32_t wanted,
                        Span<int32_t> out);
  // Looks for guesses as for ProposeAlone(), for a run of several sequences.
  SharedGuessPolicy::Share Look(uint32_t sequence, Span<const int32_t> known, uint32_t wanted);
  // Sets n of the shares, of which those behind a Look() have some.
  void ShareOut(const SharedGuessPolicy::Plain& plain, uint32_t most, size_t first,
                Span<SharedGuessPolicy::Share> shares);
  // Writes guesses as they were looked for behind the known tokens, and holds the states for their
  // run. Returns their number, which is less where a constraint forbids some.
  uint32_t Propose(uint32_t sequence, Span<const int32_t> known, Span<int32_t> out);
  // The run of proposed guesses has failed.
  void Unpropose(uint32_t sequence) { cache().DropHeld(sequence); }
  // Their run is over: they may be chosen. row: of the run's logits, that of the token before them.
  void StartAhead(uint32_t sequence, uint32_t n, uint32_t row);
  // A run of so many sequences has taken this long; guesses: of its rows.
  void AddTime(size_t sequences, uint32_t rows, uint32_t guesses, uint64_t ns);
  // All guesses of the last shared run are settled.
  void EndShared();
  void Settle(uint32_t sequence);

 private:
  SequenceGuesses& Of(uint32_t sequence) { return guesses_[guesses_.size() == 1 ? 0 : sequence]; }
  bool CanVerify() const;
  bool HasNgrams() const { return core_.plan.ngrams.n_slots != 0; }
  GuessPolicy::Situation SituationOf(uint32_t sequence, uint32_t wanted) const;

  // Returns the tokens of a sequence with those known to follow, in its history.
  Span<const int32_t> WithKnown(uint32_t sequence, Span<const int32_t> known);
  // Collects guesses of the tokens after those known. Returns their number. *certain: all of them
  // follow from the constraint.
  uint32_t Guess(uint32_t sequence, Span<const int32_t> known, uint32_t most, int32_t* out,
                 bool* certain);
  // Asks one drafter, if it may have guesses that pay. Returns their number.
  uint32_t Ask(Drafter* drafter, uint32_t sequence, Span<const int32_t> ids, uint32_t most,
               int32_t* out);
  // True if a constraint prevents guesses behind these tokens: it looks ahead behind one.
  bool IsTooFar(uint32_t sequence, Span<const int32_t> known) {
    return known.size() != 1 && constrainer_.Has(sequence);
  }
  // known: tokens that run before them.
  uint32_t MostGuesses(uint32_t sequence, uint32_t known, uint32_t wanted) const;
  Status RunAhead(uint32_t sequence, Span<const int32_t> ids);
  // n guesses have run: makes them those that may be chosen.
  void Start(uint32_t sequence, uint32_t n, uint32_t row);
  // True if the next guess that has run is this token.
  bool IsNext(uint32_t sequence, int32_t id);
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
  Span<SequenceGuesses> guesses_;  // empty without speculation
  DraftModel* draft_ = nullptr;    // in the session's block, like the next; null: none
  MtpDrafter* mtp_ = nullptr;
  AssistantDrafter* assistant_ = nullptr;
  GuessPolicy policy_;
  SharedGuessPolicy shared_policy_;
  GuessOdds shared_odds_;                              // of all replies: the prior of each
  SharedGuessPolicy::Plain plain_;                     // the last shared run, without its guesses
  uint32_t n_shared_ = 0, n_right_ = 0, n_again_ = 0;  // guesses of it, and rows
  uint32_t sequence_ = 0;                              // of the generation
  bool is_on_ = false;                                 // in this generation
};

}  // namespace arn
