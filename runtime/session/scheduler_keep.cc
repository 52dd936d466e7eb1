// Scheduler: sequences that leave the session and come back.
#include "runtime/session/scheduler.h"
#include "runtime/session/scheduler_selecting.h"

namespace arn {

Status Scheduler::CheckSavable(uint32_t sequence) const {
  if (sequence >= sequences_.size()) {
    return core_.diag.Fail(Status::kBadArgument, "sequence %u does not exist, the session has %u",
                           sequence, sequences_.size());
  }
  if (leases_.is_busy(sequence)) {
    return core_.diag.Fail(Status::kBadState, "a request runs in sequence %u", sequence);
  }
  if (sequences_.Length(sequence) != 0) return Status::kOk;
  return core_.diag.Fail(Status::kNotFound, "sequence %u has no tokens", sequence);
}

Status Scheduler::SaveSequenceBytes(uint32_t sequence, uint64_t* out_bytes) {
  *out_bytes = 0;
  ARN_TRY(CheckSavable(sequence));
  return SaveOneBytes(session_, sequence, out_bytes);
}

Status Scheduler::SaveSequence(uint32_t sequence, const StateSink& sink) {
  ARN_TRY(CheckSavable(sequence));
  return SaveOne(session_, sequence, sink);
}

Status Scheduler::RestoreSequence(const StateSource& source, uint32_t* out_sequence) {
  StateView state;
  ARN_TRY(CheckOne(session_, source, &state));
  const Selecting selecting(&sequences_);
  const uint32_t n_tokens = state.Sequence(0).n_tokens;
  if (!leases_.HasRoomToRestore(n_tokens)) {
    return core_.diag.Fail(Status::kContextFull,
                           "requests run in all sequences, or have the pages of the %u tokens",
                           n_tokens);
  }
  const uint32_t taken = leases_.TakeToRestore(n_tokens);
  Status status = RestoreOne(session_, state);
  while (status == Status::kContextFull && leases_.DropOldest()) {
    status = RestoreOne(session_, state);
  }
  leases_.Release(taken);
  if (status == Status::kOk) *out_sequence = taken;
  return status;
}

}  // namespace arn
