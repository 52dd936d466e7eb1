#include "runtime/session/mtp_drafter.h"

#include <cstring>
#include <new>

#include "platform/base/arith.h"
#include "platform/os/clock.h"

namespace arn {
namespace {

// Compares as a rule a long text with itself, at every run.
size_t CommonLength(Span<const int32_t> a, Span<const int32_t> b) {
  const size_t most = Min(a.size(), b.size());
  if (std::memcmp(a.data(), b.data(), most * sizeof(int32_t)) == 0) return most;
  size_t n = 0;
  while (a[n] == b[n]) ++n;
  return n;
}

}  // namespace

MtpDrafter::MtpDrafter(SessionCore* target, const SessionPlan& plan, std::byte* block)
    : target_(*target),
      model_(*target->model.mtp, target, plan, block),
      width_(target->model.spec.hidden),
      capacity_(target->plan.mtp.n_rows),
      usual_rows_(1 + target->plan.options.max_guesses),
      rows_(target->memory.As<float>(target->plan.mtp.rows)),
      text_(target->memory.As<int32_t>(target->plan.mtp.text)) {}

Status MtpDrafter::Create(SessionCore* target, const SessionPlan& plan, MtpDrafter** out,
                          Diag* diag) {
  *out = nullptr;
  std::byte* block = target->memory.At(target->plan.mtp.block);
  auto* drafter =
      new (PartitionBlock(plan, block).At(plan.session)) MtpDrafter(target, plan, block);
  const Status status = drafter->model_.Load(plan, diag);
  if (status != Status::kOk) {
    drafter->~MtpDrafter();
    return status;
  }
  *out = drafter;
  return Status::kOk;
}

bool MtpDrafter::IsToken(int32_t id) const {
  return id >= 0 && static_cast<uint32_t>(id) < target_.plan.program.vocab;
}

void MtpDrafter::StartAt(size_t n) {
  length_ = start_ = first_row_ = n;
  n_read_ = n_rows_ = 0;
}

// Drops what was read at the last position too: it follows from the token behind it.
void MtpDrafter::CutTo(size_t n) {
  length_ = Min(length_, n);
  if (n < start_) return StartAt(n);
  n_read_ = Min(n_read_, n - start_ - (n > start_ ? 1 : 0));
  if (n < first_row_) {
    first_row_ = n;
    n_rows_ = 0;
  }
  n_rows_ = Min(n_rows_, n - first_row_);
}

Status MtpDrafter::ReadTo(size_t end, LogitRows of_last) {
  ARN_TRY(model_.Rewind(n_read_));
  while (next_to_read() < end) {
    const size_t at = next_to_read();
    const size_t n = Min<size_t>(end - at, model_.plan().options.prefill_chunk);
    ARN_TRY(model_.Run({text_ + at + 1, n}, {Row(at), n * width_},
                       at + n == end ? of_last : LogitRows::kNone));
    n_read_ += n;
  }
  return Status::kOk;
}

// Keeps rows that were read but may have to be read again, with another token behind them.
Status MtpDrafter::MakeRoom(size_t n) {
  if (n_rows_ + n <= capacity_) return Status::kOk;
  const uint64_t start = MonotonicNs();
  const size_t missing = end_row() - next_to_read();
  const Status status = ReadTo(end_row(), LogitRows::kNone);
  if (status == Status::kOk && missing != 0) token_time_.Add(MonotonicNs() - start, missing);
  model_.EndCall();
  ARN_TRY(status);
  const size_t kept = Min(n_rows_, capacity_ - n);
  std::memmove(rows_, rows_ + (n_rows_ - kept) * width_, kept * width_ * sizeof(float));
  first_row_ += n_rows_ - kept;
  n_rows_ = kept;
  return Status::kOk;
}

void MtpDrafter::OnRun(Span<const int32_t> before, Span<const int32_t> ids) {
  const size_t first = before.size(), end = first + ids.size();
  size_t common = CommonLength({text_, length_}, before);
  if (common == first) {
    common += CommonLength({text_ + first, length_ - first}, ids);
  }
  CutTo(common);
  for (const int32_t id : ids) {
    if (IsToken(id)) continue;
    std::memcpy(text_, before.data(), first * sizeof(int32_t));
    std::memcpy(text_ + first, ids.data(), ids.size() * sizeof(int32_t));
    return StartAt(end);
  }
  // Rows between what is known and this run, or that were read and are not kept, are not at hand.
  if (end_row() < first || first_row_ > next_to_read()) {
    std::memcpy(text_, before.data(), first * sizeof(int32_t));
    StartAt(first);
  }
  std::memcpy(text_ + first, ids.data(), ids.size() * sizeof(int32_t));
  const size_t from = Max(end_row(), first);
  if (MakeRoom(end - from) != Status::kOk) {
    StartAt(first);
    return OnRun(before, ids);
  }
  const Program& program = target_.plan.program;
  const float* rows = target_.memory.As<float>(program.values[program.final_rows].slice);
  std::memcpy(Row(from), rows + (from - first) * width_, (end - from) * width_ * sizeof(float));
  n_rows_ += end - from;
  length_ = end;
}

Offer MtpDrafter::Look(Span<const int32_t> ids, uint32_t most) {
  if (ids.size() < 2) return {};
  const size_t last = ids.size() - 2;  // position whose row guesses what follows ids
  if (CommonLength({text_, length_}, ids) <= last || !IsToken(ids[last + 1])) return {};
  CutTo(last + 1);
  // Its logits are gone if it has been read.
  const size_t next = Min(next_to_read(), last);
  if (last < start_ || end_row() <= last || next < first_row_) return {};
  const size_t in_cache = last + 1 - start_, room = model_.plan().options.context_tokens;
  Offer offer;
  // The last guess does not run.
  offer.n = static_cast<uint32_t>(Min<size_t>(most, room - in_cache + 1));
  offer.kind = kModelKind;
  offer.guess_ns = guess_time_.Of(1);
  const size_t missing = last + 1 - next;
  if (missing > usual_rows_) offer.reading_ns = token_time_.Of(missing);
  return offer;
}

Proposal MtpDrafter::Propose(Span<const int32_t> ids, Span<int32_t> out) {
  const size_t last = ids.size() - 2;
  n_read_ = Min(n_read_, last - start_);
  text_[last + 1] = ids[last + 1];
  length_ = last + 2;
  const size_t missing = last + 1 - next_to_read();
  const bool is_reading = missing > usual_rows_;
  Proposal proposal;
  uint64_t start = MonotonicNs();
  Status status = ReadTo(last + 1, LogitRows::kLastOfEach);
  if (is_reading) {
    const uint64_t end = MonotonicNs();
    proposal.reading_ns = end - start;
    if (status == Status::kOk) token_time_.Add(proposal.reading_ns, missing);
    start = end;
  }
  // Rows of the last run: those of a chunk may be fewer than were missing.
  size_t n_run = (missing - 1) % model_.plan().options.prefill_chunk + 1;
  float* guessed = rows_ + capacity_ * width_;
  while (status == Status::kOk && proposal.n < out.size()) {
    const int32_t id = model_.Best();
    out[proposal.n++] = id;
    if (proposal.n == out.size()) break;
    std::memcpy(guessed, model_.FinalRow(n_run - 1), width_ * sizeof(float));
    status = model_.Run({&id, 1}, {guessed, width_}, LogitRows::kLastOfEach);
    n_run = 1;
  }
  proposal.guesses_ns = MonotonicNs() - start;
  // The first one follows from reading.
  const size_t n_runs = proposal.n - (is_reading && proposal.n != 0 ? 1 : 0);
  if (n_runs != 0) guess_time_.Add(proposal.guesses_ns, n_runs);
  model_.EndCall();
  return proposal;
}

}  // namespace arn
