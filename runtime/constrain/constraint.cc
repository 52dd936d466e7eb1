#include "runtime/constrain/constraint.h"

#include <cstring>
#include <new>

#include "platform/base/arena.h"
#include "platform/base/arith.h"
#include "platform/base/result.h"
#include "runtime/constrain/choices.h"
#include "runtime/constrain/gbnf.h"
#include "runtime/constrain/json_schema/compile.h"
#include "runtime/constrain/regex_parse.h"

namespace arn {
namespace {

constexpr uint64_t kAlign = 64;

// Bytes of the object and of the live terms: the beginning, the states, a path through a tree.
uint64_t OwnBytes(uint32_t n_states) {
  const uint64_t n_live = uint64_t{n_states} + 1 + kMaxByteDepth + 1;
  return AlignUp(sizeof(Constraint), kAlign) + AlignUp(n_live * sizeof(Term), kAlign) +
         AlignUp(kMaxByteDepth * sizeof(Terms::Cursor), kAlign);
}

// Part of the block for the tables of a JSON schema, which its terms refer to.
uint64_t TableBytes(const ConstraintOptions& options, uint64_t block_bytes) {
  constexpr uint64_t kShare = 3;
  const bool has_tables =
      options.kind == ConstraintKind::kJsonSchema || options.kind == ConstraintKind::kToolCalls;
  return has_tables ? block_bytes / kShare / kAlign * kAlign : 0;
}

Status CompileTerm(const ConstraintOptions& options, Terms* terms, Arena* tables, Term* out,
                   Diag* diag) {
  switch (options.kind) {
    case ConstraintKind::kJsonSchema:
      return CompileJsonSchema(options.text,
                               {options.any_order, options.any_whitespace, options.any_spelling},
                               terms, tables, diag, out);
    case ConstraintKind::kRegex: return ParseRegex(terms, options.text, RegexOptions(), out, diag);
    case ConstraintKind::kGrammar: return ParseGbnf(terms, options.text, out, diag);
    case ConstraintKind::kChoices: return ParseChoices(terms, options.text, out, diag);
    case ConstraintKind::kToolCalls:
      return CompileToolCalls(options.text, options.calls, options.any_order, terms, tables, diag,
                              out);
  }
  return diag->Fail(Status::kBadArgument, "unknown kind of constraint");
}

}  // namespace

uint64_t Constraint::MinBytes(uint32_t n_states) { return OwnBytes(n_states) + Terms::kMinBytes; }

Status Constraint::Compile(const ConstraintOptions& options, uint32_t n_states,
                           Span<std::byte> block, Constraint** out, Diag* diag) {
  *out = nullptr;
  if (block.size() < MinBytes(n_states)) {
    return diag->Fail(Status::kOutOfMemory,
                      "a constraint of %u states needs %llu bytes or more, and has %zu", n_states,
                      static_cast<unsigned long long>(MinBytes(n_states)), block.size());
  }
  Constraint* made = new (block.data()) Constraint;
  made->n_states_ = n_states;
  made->block_bytes_ = block.size();
  made->live_ = reinterpret_cast<Term*>(block.data() + AlignUp(sizeof(Constraint), kAlign));
  made->own_bytes_ = OwnBytes(n_states);
  const auto own = static_cast<size_t>(made->own_bytes_);
  made->cursors_ = reinterpret_cast<Terms::Cursor*>(
      block.data() + own - AlignUp(kMaxByteDepth * sizeof(Terms::Cursor), kAlign));
  const auto n_tables = static_cast<size_t>(TableBytes(options, block.size() - own));
  Arena tables(block.subspan(own, n_tables));
  made->terms_ = Terms::Create(block.subspan(own + n_tables, block.size() - own - n_tables));
  if (made->terms_ == nullptr) {
    return diag->Fail(Status::kOutOfMemory, "a JSON schema needs more than %zu bytes",
                      block.size());
  }
  Term start = kNothing;
  made->terms_->SetCancel(options.cancel);
  Status status = CompileTerm(options, made->terms_, &tables, &start, diag);
  if (status == Status::kOk) status = made->terms_->Resolve(start, diag);
  made->terms_->SetCancel(nullptr);
  if (made->terms_->failure() == TermFailure::kCancelled) {
    return diag->Fail(Status::kCancelled, "cancelled while the constraint was compiled");
  }
  if (status == Status::kOutOfMemory && made->terms_->failure() == TermFailure::kBlockFull) {
    char before[Diag::kCapacity];
    std::memcpy(before, diag->text(), sizeof before);
    return diag->Fail(status, "%s (%zu bytes)", before, block.size());
  }
  ARN_TRY(status);
  if (start == kNothing) return diag->Fail(Status::kBadArgument, "no text fits the constraint");
  made->own_bytes_ += tables.used_bytes();
  made->compiled_bytes_ = made->used_bytes();
  made->live_[0] = start;
  for (uint32_t state = 0; state < n_states; ++state) made->Reset(state);
  *out = made;
  return Status::kOk;
}

void Constraint::Reset(uint32_t state) { live_[kFirstState + state] = live_[0]; }

void Constraint::CopyState(uint32_t from, uint32_t to) {
  live_[kFirstState + to] = live_[kFirstState + from];
}

// Returns false, and notes why, if it is no use to repeat the call: it would fail again, or so
// little room was made that every few bytes would need a flush.
bool Constraint::MakeRoom(uint32_t n_live) {
  constexpr uint64_t kLeastRoom = 32;  // a part of the block
  const TermFailure failure = terms_->failure();
  if (failure == TermFailure::kPutOff) {
    terms_->GoOn();
    failure_ = failure;
    return false;
  }
  terms_->Collect({live_, n_live});
  ++n_flushes_;
  const bool has_room = terms_->free_bytes() >= terms_->block_bytes() / kLeastRoom;
  if (failure == TermFailure::kBlockFull && has_room) return true;
  failure_ = failure;
  return false;
}

Term Constraint::Step(Term from, uint8_t byte, uint32_t n_live) {
  Term to = terms_->Derive(from, byte);
  if (!terms_->failed()) return to;
  if (!MakeRoom(n_live)) return kNothing;
  to = terms_->Derive(from, byte);
  if (!terms_->failed()) return to;
  failure_ = terms_->failure();
  MakeRoom(n_live);
  return kNothing;
}

ByteSet Constraint::FirstBytes(Term of, uint32_t n_live) {
  ByteSet first = terms_->FirstBytes(of);
  if (!terms_->failed()) return first;
  if (!MakeRoom(n_live)) return ByteSet();
  first = terms_->FirstBytes(of);
  if (!terms_->failed()) return first;
  failure_ = terms_->failure();
  MakeRoom(n_live);
  return ByteSet();
}

Term Constraint::Walk(uint32_t state, Span<const uint8_t> bytes, size_t* n_ok) {
  const uint32_t n_live = kFirstState + n_states_ + 1;
  Term* at = &live_[n_live - 1];
  *at = live_[kFirstState + state];
  size_t n = 0;
  while (n < bytes.size() && (*at = Step(*at, bytes[n], n_live)) != kNothing) ++n;
  if (n_ok != nullptr) *n_ok = n;
  return *at;
}

bool Constraint::Accepts(uint32_t state, Span<const uint8_t> bytes, size_t* n_ok) {
  return Walk(state, bytes, n_ok) != kNothing;
}

bool Constraint::Advance(uint32_t state, Span<const uint8_t> bytes) {
  const Term end = Walk(state, bytes, nullptr);
  if (end == kNothing) return false;
  live_[kFirstState + state] = terms_->WithoutFrames(end);
  if (terms_->failed()) {
    live_[kFirstState + state] = end;
    MakeRoom(kFirstState + n_states_);
    ClearFailure();
  }
  return true;
}

bool Constraint::CanEnd(uint32_t state) const {
  return terms_->IsNullable(live_[kFirstState + state]);
}

bool Constraint::MustEnd(uint32_t state) {
  if (!CanEnd(state)) return false;
  const uint32_t n_live = kFirstState + n_states_;
  const Term at = live_[kFirstState + state];
  const ByteSet first = FirstBytes(at, n_live);
  for (uint32_t b = first.Next(0); b < 256; b = first.Next(b + 1)) {
    if (Step(at, static_cast<uint8_t>(b), n_live) != kNothing) return false;
  }
  return true;
}

size_t Constraint::Forced(uint32_t state, Span<uint8_t> out) {
  const uint32_t n_live = kFirstState + n_states_ + 1;
  Term* at = &live_[n_live - 1];
  *at = live_[kFirstState + state];
  size_t n = 0;
  while (n < out.size() && !terms_->IsNullable(*at)) {
    const ByteSet first = FirstBytes(*at, n_live);
    Term only = kNothing;
    uint32_t n_found = 0;
    for (uint32_t b = first.Next(0); b < 256 && n_found < 2; b = first.Next(b + 1)) {
      const Term to = Step(*at, static_cast<uint8_t>(b), n_live);
      if (to == kNothing) continue;
      ++n_found;
      only = to;
      out[n] = static_cast<uint8_t>(b);
    }
    if (n_found != 1 || failed()) break;
    *at = only;
    ++n;
  }
  return n;
}

}  // namespace arn
