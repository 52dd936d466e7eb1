// Scheduler: answers many requests with the sequences of one session. Requests wait for a sequence;
// each step runs a part of every prompt and the next token of every reply in one run, then chooses
// the tokens that follow and reports them as events. Requests join and leave between steps.
//
// A prompt goes on from what a sequence holds of it: what an earlier request left, or what another
// one has just computed, of which it gets a fork. Requests that begin alike wait for the first of
// them to compute the beginning.
//
// Since a row's logits do not depend on the others in its run (docs/architecture.md, "The same
// result"), the tokens are those of the requests one by one.
#pragma once

#include <cstdint>

#include "platform/base/span.h"
#include "platform/base/status.h"
#include "runtime/scheduler/event_ring.h"
#include "runtime/scheduler/request_table.h"
#include "runtime/scheduler/step_policy.h"
#include "runtime/session/reply_text.h"
#include "runtime/session/saving.h"
#include "runtime/session/sequence_leases.h"
#include "runtime/session/speculator.h"

namespace arn {

struct SchedulerOptions {
  uint32_t step_rows = 0;  // most rows of a step; 0: prefill_chunk
  SequenceLeases::OnDrop on_drop = nullptr;
  void* user = nullptr;  // of on_drop
};

// Guesses of all steps.
struct GuessCounts {
  uint64_t proposed = 0;
  uint64_t accepted = 0;
  uint64_t steps = 0;  // that had some
  uint64_t rows = 0;   // of those steps
};

struct StepCounts {
  uint32_t n_rows = 0;         // that ran
  uint32_t n_prompt_rows = 0;  // part of them: of prompts
  uint32_t n_guess_rows = 0;   // part of them: of guesses
  uint32_t n_chosen = 0;       // tokens that were chosen
  uint32_t n_put_off = 0;      // replies whose constraint has not done its work
  uint32_t n_running = 0;      // requests that have a sequence now
  uint32_t n_waiting = 0;      // for one
};

class Scheduler {
 public:
  // The parts of the session must outlive it.
  Scheduler(const SavingView& session, Speculator* speculator)
      : session_(session),
        speculator_(*speculator),
        core_(session.core),
        sequences_(session.sequences),
        leases_(&session.core, &session.sequences) {}

  // Takes the session over. kUnsupported without memory for requests, kBadState if it is open.
  Status Open(const SchedulerOptions& options);
  bool is_open() const { return is_open_; }
  // Ends all requests, without events. The sequences keep their tokens.
  void Close();

  // Queues a request. kBadState, with nothing changed, if max_requests are here; kBadArgument,
  // kBadToken, kContextFull or kUnsupported if it could never run.
  Status Submit(const Request& request, uint64_t* out_id);
  // These return kNotFound unless the request waits or runs.
  Status Cancel(uint64_t id);
  // A paused request runs nothing and keeps its sequence.
  Status Pause(uint64_t id, bool is_paused);
  // Tokens that come next in the reply, instead of chosen ones: the caller's until they have come.
  Status Force(uint64_t id, Span<const int32_t> ids);
  // The request's constraint, which waits, begins with the next token that is chosen. kBadState if
  // none waits.
  Status BeginConstraint(uint64_t id);
  // The request is under a constraint of Constrainer::CompileApart() from the next token on that is
  // chosen. It must outlive the request. kBadState if the request has one.
  Status Constrain(uint64_t id, TokenConstraint* constraint);

  // Saves a sequence that no request runs in; also while on_drop is called. kNotFound if it has no
  // tokens, kBadState if a request runs in it.
  Status SaveSequenceBytes(uint32_t sequence, uint64_t* out_bytes);
  Status SaveSequence(uint32_t sequence, const StateSink& sink);
  // Makes a free sequence the saved one; tokens of others go as for a request. kContextFull, with
  // nothing changed, if requests have all sequences, or the pages.
  Status RestoreSequence(const StateSource& source, uint32_t* out_sequence);

  // Runs one step. kBadState if events have not been taken. A failure leaves the requests as they
  // are, for another try.
  Status Step(StepCounts* out);
  // Takes the oldest event. Returns false if there is none.
  bool NextEvent(RequestEvent* out);

  // Null: there is no such request.
  const RequestRecord* Find(uint64_t id) const { return table_.Find(id); }
  // Returns the request that a sequence runs; 0: none.
  uint64_t RequestOf(uint32_t sequence) const;
  uint32_t n_waiting() const { return CountOf(RequestPhase::kWaiting); }
  uint32_t n_running() const {
    return CountOf(RequestPhase::kPrompt) + CountOf(RequestPhase::kReply);
  }
  uint64_t n_dropped() const { return leases_.n_dropped(); }
  uint32_t step_rows() const { return step_rows_; }
  const GuessCounts& guesses() const { return guesses_; }

 private:
  // Restores the selection when it ends.
  class Selecting;

  uint32_t CountOf(RequestPhase phase) const;
  Status FindLive(uint64_t id, RequestRecord** out) const;
  Status Check(const Request& request) const;
  Status CheckPrompt(const Request& request) const;
  Status CheckSavable(uint32_t sequence) const;

  // Gives sequences to requests that wait, oldest first.
  void Admit();
  // Wants the free sequences that waiting requests go on from, so that others are taken first.
  void WantPrefixes();
  // True if the request should wait for a prompt that begins as its own does.
  bool WaitsForPrefix(const RequestRecord& waiting, uint32_t held);
  // Returns false if the request failed and has ended.
  bool Begin(RequestRecord* record, uint32_t best, uint32_t common);
  // Makes the sequence hold what is there of the prompt, with the request's sampling and
  // constraint.
  Status PrepareSequence(RequestRecord* record);
  Status SetConstraint(const RequestRecord& record);
  void UseCompiled(const RequestRecord& record);

  // Runs one chunk of a prompt that runs alone, if there is one.
  Status RunOneAlone(StepCounts* out);
  // Runs rows of all others in one run.
  Status RunTogether(StepCounts* out);
  Status CollectWishes(uint32_t* out_n);
  Status FindRows(const RequestRecord& record, uint32_t* out);
  uint32_t MostRows(const RequestRecord& record) const;
  // Returns the rows of replies that run with whatever they run next.
  uint32_t PendingRows() const;
  SessionPart PartOf(const RequestRecord& record, uint32_t rows) const;
  Status RunParts(Span<const SessionPart> parts, bool needs_logits);
  // Adds guesses to parts that run all known tokens of a reply, `most` together. Returns their
  // number.
  uint32_t AddGuesses(Span<SessionPart> parts, const SharedGuessPolicy::Plain& plain,
                      uint32_t most);
  uint32_t AddGuessesAlone(SessionPart* part, uint32_t most);
  // Makes so many ids behind the part's its guesses. Returns their number.
  static uint32_t Append(SessionPart* part, uint32_t n_guesses);
  // Returns how many tokens may follow those that a reply has.
  static uint32_t WantedAfter(const RequestRecord& record);
  int32_t* PlacesBehind(const SessionPart& part) const;
  // Returns the reply that may have guesses behind this part; null: none.
  RequestRecord* GuessesAfter(const SessionPart& part) const;
  void DropGuesses(Span<SessionPart> parts);
  void StartGuesses(Span<const SessionPart> parts);
  // Counts rows of a request that have run.
  void Advance(RequestRecord* record, uint32_t rows);
  // Chooses the next token of each reply that has none, and goes on as long as it was guessed.
  Status ChooseAll(StepCounts* out);
  Status ChooseTokens(RequestRecord* record);
  void SettleAll();
  Status ChooseNext(RequestRecord* record);
  bool IsStopId(const Request& request, int32_t id) const;
  // Reports a token, which comes next.
  void PutToken(RequestRecord* record, int32_t id);
  // Reports tokens that come next without a choice, as far as a step may. Returns their number.
  size_t PutTokens(RequestRecord* record, Span<const int32_t> ids);
  // Reports those that the constraint leaves no choice of behind the chosen one.
  void PutCertain(RequestRecord* record);
  // Returns how many more tokens of the reply the step may report.
  uint32_t MostTokens(const RequestRecord& record) const;
  // Ends a reply behind its last token.
  void EndText(RequestRecord* record);

  // Ends a request. finish 0: it failed, with core_.diag.
  void End(RequestRecord* record, uint32_t finish, Status status, StringView text = {});
  ReplyText& TextOf(const RequestRecord& record) const;
  Span<char> TextBuffer(uint32_t sequence) const;
  Span<int32_t> ChosenBuffer(uint32_t sequence) const;
  // Returns a copy of an event's text that stays until the next step.
  StringView Keep(StringView text);
  void Put(const RequestRecord& record, RequestEvent event);

  SavingView session_;
  Speculator& speculator_;
  SessionCore& core_;
  Sequences& sequences_;
  SequenceLeases leases_;
  RequestTable table_;
  EventRing events_;
  Span<RowWish> wishes_;
  Span<char> shown_;    // texts of events
  size_t n_shown_ = 0;  // bytes of them
  Span<SharedGuessPolicy::Share> shares_;
  GuessCounts guesses_;
  bool is_open_ = false;
  uint32_t step_rows_ = 0;
  uint64_t step_ = 0;
};

}  // namespace arn
