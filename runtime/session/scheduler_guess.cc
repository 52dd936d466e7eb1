// Scheduler: guesses in the rows of a step that are left over.
#include "platform/base/arith.h"
#include "runtime/session/scheduler.h"

namespace arn {

RequestRecord* Scheduler::GuessesAfter(const SessionPart& part) const {
  RequestRecord* const record = table_.Find(RequestOf(part.sequence));
  const Request& request = record->request;
  // Leaves out those that the caller steers behind each token, or has said what comes of.
  const bool is_steered = request.one_by_one || request.constraint_waits || request.no_guesses;
  if (record->phase != RequestPhase::kReply || is_steered || !record->forced.empty()) {
    return nullptr;
  }
  return part.ids.size() == record->chosen.size() ? record : nullptr;
}

uint32_t Scheduler::AddGuesses(Span<SessionPart> parts, const SharedGuessPolicy::Plain& plain,
                               uint32_t most) {
  const Span<SharedGuessPolicy::Share> shares = shares_.subspan(0, parts.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    shares[i] = SharedGuessPolicy::Share();
    const RequestRecord* const record = GuessesAfter(parts[i]);
    if (record == nullptr) continue;
    // The last token of a reply does not run.
    const uint32_t max_tokens = record->request.max_tokens;
    const uint32_t wanted = max_tokens == 0 ? UINT32_MAX : max_tokens - record->n_tokens - 1;
    shares[i] = speculator_.Look(parts[i].sequence, parts[i].ids, wanted);
  }
  speculator_.ShareOut(plain, Min(most, core_.plan.options.max_guesses), step_ % parts.size(),
                       shares);
  uint32_t n_guesses = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (shares[i].n == 0) continue;
    SessionPart& part = parts[i];
    // Behind the known tokens, which its ids are.
    int32_t* const out =
        ChosenBuffer(part.sequence).data() + (part.ids.end() - ChosenBuffer(part.sequence).data());
    part.n_guesses = speculator_.Propose(part.sequence, part.ids, {out, shares[i].n});
    part.ids = {part.ids.data(), part.ids.size() + part.n_guesses};
    n_guesses += part.n_guesses;
  }
  return n_guesses;
}

void Scheduler::DropGuesses(Span<SessionPart> parts) {
  for (SessionPart& part : parts) {
    if (part.n_guesses == 0) continue;
    speculator_.Unpropose(part.sequence);
    part.ids = part.ids.subspan(0, part.ids.size() - part.n_guesses);
    part.n_guesses = 0;
  }
}

void Scheduler::StartGuesses(Span<const SessionPart> parts) {
  uint32_t row = 0;
  for (const SessionPart& part : parts) {
    if (part.n_guesses != 0) {
      speculator_.StartAhead(part.sequence, part.n_guesses, row);
      table_.Find(RequestOf(part.sequence))->n_proposed += part.n_guesses;
    }
    row += 1 + part.n_guesses;
  }
}

}  // namespace arn
