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

// The last token of a reply does not run.
uint32_t Scheduler::WantedAfter(const RequestRecord& record) {
  const uint32_t max_tokens = record.request.max_tokens;
  return max_tokens == 0 ? UINT32_MAX : max_tokens - record.n_tokens - 1;
}

// Returns the places behind the part's ids, which are known tokens.
int32_t* Scheduler::PlacesBehind(const SessionPart& part) const {
  const Span<int32_t> buffer = ChosenBuffer(part.sequence);
  return buffer.data() + (part.ids.end() - buffer.data());
}

uint32_t Scheduler::AddGuesses(Span<SessionPart> parts, const SharedGuessPolicy::Plain& plain,
                               uint32_t most) {
  most = Min(most, core_.plan.options.max_guesses);
  if (parts.size() == 1) return AddGuessesAlone(&parts[0], most);
  const Span<SharedGuessPolicy::Share> shares = shares_.subspan(0, parts.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    shares[i] = SharedGuessPolicy::Share();
    const RequestRecord* const record = GuessesAfter(parts[i]);
    if (record == nullptr) continue;
    shares[i] = speculator_.Look(parts[i].sequence, parts[i].ids, WantedAfter(*record));
  }
  speculator_.ShareOut(plain, most, step_ % parts.size(), shares);
  uint32_t n_guesses = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (shares[i].n == 0) continue;
    SessionPart& part = parts[i];
    n_guesses += Append(
        &part, speculator_.Propose(part.sequence, part.ids, {PlacesBehind(part), shares[i].n}));
  }
  return n_guesses;
}

uint32_t Scheduler::AddGuessesAlone(SessionPart* part, uint32_t most) {
  const RequestRecord* const record = GuessesAfter(*part);
  if (record == nullptr) return 0;
  return Append(part, speculator_.ProposeAlone(part->sequence, part->ids, WantedAfter(*record),
                                               {PlacesBehind(*part), most}));
}

uint32_t Scheduler::Append(SessionPart* part, uint32_t n_guesses) {
  part->n_guesses = n_guesses;
  part->ids = {part->ids.data(), part->ids.size() + n_guesses};
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
