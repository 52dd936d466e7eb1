// Intersection and complement. Unlike the other operations they can leave no string at all, so
// whether one is left is decided by a search for a nullable derivative.
#include "runtime/constrain/terms.h"

namespace arn {
namespace {

// A visited state in scratch.
struct Visit {
  Term term;
  uint32_t parent;     // the visit it came from; kNone: the first
  uint32_t next_byte;  // bytes below are done
};
constexpr uint32_t kVisitWords = sizeof(Visit) / sizeof(uint32_t);
constexpr uint32_t kNone = 0xFFFFFFFFu;

}  // namespace

Term Terms::BothNode(Term a, Term b) {
  if (a == kNothing || b == kNothing) return kNothing;
  if (a == b || b == any_bytes_) return a;
  if (a == any_bytes_) return b;
  if (a == kEmpty || b == kEmpty) return IsNullable(a) && IsNullable(b) ? kEmpty : kNothing;
  if (node(a).kind == kBytes && node(b).kind == kBytes) {
    ByteSet common = set(a);
    common &= set(b);
    return Bytes(common);
  }
  return a < b ? Intern(kBoth, a, b, 0, {}) : Intern(kBoth, b, a, 0, {});
}

Term Terms::ComplementNode(Term a) {
  if (a == kNothing) return any_bytes_;
  if (a == any_bytes_) return kNothing;
  if (node(a).kind == kComplement) return node(a).a;
  return Intern(kComplement, a, 0, 0, {});
}

Term Terms::Both(Term a, Term b) {
  if (!IsRegular(a) || !IsRegular(b)) Fail(TermFailure::kUndecided);
  const Term both = BothNode(a, b);
  return HasString(both, 0) ? both : kNothing;
}

Term Terms::Complement(Term a) {
  if (!IsRegular(a)) Fail(TermFailure::kUndecided);
  if (failed()) return kNothing;
  const Term complement = ComplementNode(a);
  return HasString(complement, 0) ? complement : kNothing;
}

bool Terms::HasString(Term t, uint32_t depth) {
  if (t == kNothing || failed()) return false;
  if (!IsDecidable(t)) return true;
  Node& n = node(t);
  if ((n.flags & kNullable) != 0) n.flags |= kHasString;
  if ((n.flags & (kHasString | kHasNoString)) != 0) return (n.flags & kHasString) != 0;
  const uint32_t base = scratch_used_;
  const bool found = FindString(t, depth);
  scratch_used_ = base;
  return found;
}

// Depth-first over derivatives, until one has a string. Then so has every state on the way to it,
// which makes later searches short; if there is none, no state visited has one.
bool Terms::FindString(Term start, uint32_t depth) {
  const uint32_t base = scratch_used_;
  if (++visit_ == 0) {
    for (uint32_t t = 0; t < n_cells_; ++t) {
      if (IsDecidable(t)) node(t).visit = 0;
    }
    visit_ = 1;
  }
  const uint16_t mine = visit_;  // decisions of operands, in between, have other numbers
  uint32_t n_visits = 0;
  const auto visit = [&](uint32_t i) {
    return reinterpret_cast<Visit*>(scratch_ + base + i * kVisitWords);
  };
  const auto add = [&](Term t, uint32_t parent) {
    if (n_visits == kMaxDecideSteps) Fail(TermFailure::kUndecided);
    if (!Push(t) || !Push(parent) || !Push(0)) return false;
    node(t).visit = mine;
    ++n_visits;
    return !failed();
  };
  if (!add(start, kNone)) return false;
  uint32_t at = 0;
  while (at != kNone) {
    const Term t = visit(at)->term;
    const uint32_t byte = FirstBytes(t, depth).Next(visit(at)->next_byte);
    if (failed()) return false;
    if (byte == 256) {
      at = visit(at)->parent;
      continue;
    }
    visit(at)->next_byte = byte + 1;
    ByteSet same = ByteSet::All();
    const Term to = DeriveUnchecked(t, static_cast<uint8_t>(byte), &same, depth);
    if (failed()) return false;
    if (to == kNothing) continue;
    const bool decidable = IsDecidable(to);
    if (!decidable || (node(to).flags & (kNullable | kHasString)) != 0) {
      for (; at != kNone; at = visit(at)->parent) node(visit(at)->term).flags |= kHasString;
      return true;
    }
    if ((node(to).flags & kHasNoString) != 0 || node(to).visit == mine) continue;
    if (!add(to, at)) return false;
    at = n_visits - 1;
  }
  for (uint32_t i = 0; i < n_visits; ++i) node(visit(i)->term).flags |= kHasNoString;
  return false;
}

}  // namespace arn
