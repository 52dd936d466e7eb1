// Intersection and complement. Unlike the other operations they can leave no string at all, so
// whether one is left is decided by a search for a nullable derivative.
#include "platform/base/arith.h"
#include "runtime/constrain/terms.h"

namespace arn {
namespace {

// A visited state in scratch.
struct Visit {
  Term term;
  uint32_t parent;     // the visit it came from; kNone: the first
  uint32_t next_byte;  // bytes below are done; kNone: the likely one is next
};
constexpr uint32_t kVisitWords = sizeof(Visit) / sizeof(uint32_t);
constexpr uint32_t kNone = 0xFFFFFFFFu;

// Limits the terms that OpenOver() and ShortestBytes() look at.
constexpr uint32_t kMostLooks = 1024;
constexpr uint64_t kUnknownLength = UINT64_MAX;

// Units of Terms::SetWork() for a state that is visited: its bytes are tried.
constexpr uint64_t kVisitUnits = 4;

}  // namespace

void Terms::PushOperands(Term t) {
  if (node(t).kind != kBoth) {
    Push(t);
    return;
  }
  for (const Term operand : args(node(t))) Push(operand);
}

// The normal form: flat, sorted, without duplicates, every string, or more than one set of bytes.
Term Terms::BothOfScratch(uint32_t base) {
  Term* const first = scratch_ + base;
  Term* const end = scratch_ + scratch_used_;
  scratch_used_ = base;
  if (failed()) return kNothing;
  Term* last = first;
  bool is_nullable = true, has_empty = false, has_bytes = false;
  ByteSet common = ByteSet::All();
  for (const Term* t = first; t < end; ++t) {
    if (*t == kNothing) return kNothing;
    is_nullable &= IsNullable(*t);
    has_empty |= *t == kEmpty;
    if (node(*t).kind == kBytes) {
      has_bytes = true;
      common &= set(*t);
    } else if (*t != any_bytes_) {
      *last++ = *t;
    }
  }
  if (has_empty) return is_nullable ? kEmpty : kNothing;
  if (has_bytes && (*last++ = Bytes(common)) == kNothing) return kNothing;
  last = SortTerms(first, last);
  if (first == last) return any_bytes_;
  const auto n = static_cast<uint32_t>(last - first);
  return n == 1 ? *first : Intern(kBoth, 0, n, 0, {first, n});
}

Term Terms::ComplementNode(Term a) {
  if (a == kNothing) return any_bytes_;
  if (a == any_bytes_) return kNothing;
  if (node(a).kind == kComplement) return node(a).a;
  return Intern(kComplement, a, 0, 0, {});
}

Term Terms::Both(Term a, Term b) {
  if (!IsRegular(a) || !IsRegular(b)) Fail(TermFailure::kUndecided);
  const uint32_t base = scratch_used_;
  PushOperands(a);
  PushOperands(b);
  const Term both = BothOfScratch(base);
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
  if ((n.flags & (kHasString | kHasNoString)) != 0) return (n.flags & kHasString) != 0;
  if ((n.flags & kNullable) != 0 || HasRoom(t)) {
    n.flags |= kHasString;
    return true;
  }
  const uint32_t base = scratch_used_;
  const bool found = FindString(t, depth);
  scratch_used_ = base;
  return found;
}

// Returns where a decision was put off, or a new one with its number.
Terms::PutOff Terms::TakePutOff(Term start) {
  for (PutOff& one : put_off_) {
    if (one.start != start) continue;
    const PutOff taken = one;
    one = PutOff();
    return taken;
  }
  if (++visit_ == 0) {
    for (uint32_t t = 0; t < n_cells_; ++t) {
      if (IsDecidable(t)) node(t).visit = 0;
    }
    for (PutOff& one : put_off_) one = PutOff();
    visit_ = 1;
  }
  return {start, visit_, 0};
}

// Depth-first over derivatives, until one has a string. Then so has every state on the way to it,
// which makes later searches short; if there is none, no state visited has one.
bool Terms::FindString(Term start, uint32_t depth) {
  const uint32_t base = scratch_used_;
  // Decisions of operands, in between, have other numbers.
  const PutOff before = TakePutOff(start);
  const uint16_t mine = before.visit;
  uint32_t n_visits = 0;
  const auto visit = [&](uint32_t i) {
    return reinterpret_cast<Visit*>(scratch_ + base + i * kVisitWords);
  };
  const auto add = [&](Term t, uint32_t parent) {
    if (n_visits == kMaxDecideSteps) Fail(TermFailure::kUndecided);
    const bool is_new = n_visits > before.n_way;
    if (is_new && work_left_ == 0) Fail(TermFailure::kPutOff);
    if (failed()) return false;
    if (is_new) Spend(kVisitUnits);
    if (!Push(t) || !Push(parent) || !Push(kNone)) return false;
    node(t).visit = mine;
    ++n_visits;
    return !failed();
  };
  if (!add(start, kNone)) return false;
  uint32_t at = 0;
  while (at != kNone && !failed()) {
    const Term t = visit(at)->term;
    const bool is_first = visit(at)->next_byte == kNone;
    const uint32_t byte =
        is_first ? LikelyByte(t, depth) : FirstBytes(t, depth).Next(visit(at)->next_byte);
    if (failed()) break;
    visit(at)->next_byte = is_first ? 0 : byte + 1;
    if (byte == 256) {
      if (!is_first) at = visit(at)->parent;
      continue;
    }
    ByteSet same = ByteSet::All();
    const Term to = DeriveUnchecked(t, static_cast<uint8_t>(byte), &same, depth);
    if (failed()) break;
    // Passes over what follows the byte and has the same derivative.
    if (!is_first) visit(at)->next_byte = (~same).Next(byte + 1);
    if (to == kNothing) continue;
    const bool decidable = IsDecidable(to);
    if (!decidable || (node(to).flags & (kNullable | kHasString)) != 0 || HasRoom(to)) {
      for (; at != kNone; at = visit(at)->parent) node(visit(at)->term).flags |= kHasString;
      return true;
    }
    if ((node(to).flags & kHasNoString) != 0 || node(to).visit == mine) continue;
    if (add(to, at)) at = n_visits - 1;
  }
  if (failed()) {
    if (failure() != TermFailure::kPutOff) return false;
    // Next time, those on the way are not done.
    uint32_t n_way = 0;
    for (; at != kNone; at = visit(at)->parent, ++n_way) node(visit(at)->term).visit = 0;
    put_off_[next_put_off_++ % kPutOffs] = {start, mine, n_way};
    return false;
  }
  for (uint32_t i = 0; i < n_visits; ++i) node(visit(i)->term).flags |= kHasNoString;
  return false;
}

Term Terms::OpenOver(Term t) {
  Node& n = node(t);
  if (n.kind == kRepeat) return n.c == kUnbounded ? n.a : kEmpty;
  if (n.kind != kConcat && n.kind != kEither && n.kind != kBoth) return kEmpty;
  if (n.c != 0) return n.c;
  Term over = kEmpty;
  if (n.kind == kBoth) {
    over = OpenOver(words_[n.a]);
    for (uint32_t i = 1; i < n.b && over != kEmpty; ++i) {
      if (OpenOver(words_[n.a + i]) != over) over = kEmpty;
    }
  } else if (n.kind == kEither) {
    for (uint32_t i = 0; i < n.b && over == kEmpty; ++i) over = OpenOver(words_[n.a + i]);
  } else if (const Node& head = node(n.a); head.kind == kRepeat && head.c == kUnbounded) {
    uint32_t looks_left = kMostLooks;
    if (EndsWithAny(n.b, head.a) && IsWithin(n.b, head.a, &looks_left)) over = head.a;
  }
  n.c = over;
  return over;
}

// Returns true if the term is seen to end with repeated{0,}.
bool Terms::EndsWithAny(Term t, Term repeated) const {
  while (node(t).kind == kConcat) t = node(t).b;
  const Node& n = node(t);
  if (n.kind == kRepeat) return n.a == repeated && n.b == 0 && n.c == kUnbounded;
  if (n.kind != kEither) return false;
  for (const Term alternative : args(n)) {
    if (!EndsWithAny(alternative, repeated)) return false;
  }
  return true;
}

// Returns true if an intersection is seen to have a string without a search: its operands are open
// over the same x, or counts of it, which leave room for strings of all others, one after the
// other.
bool Terms::HasRoom(Term both) {
  const Node& n = node(both);
  if (n.kind != kBoth) return false;
  if (OpenOver(both) != kEmpty) return true;
  Term over = kNothing;
  uint32_t least = 0, most = kUnbounded;
  for (uint32_t i = 0; i < n.b; ++i) {
    const Term t = words_[n.a + i];
    const Node& operand = node(t);
    const Term x = operand.kind == kRepeat ? operand.a : OpenOver(t);
    if (x == kEmpty || (i != 0 && x != over)) return false;
    over = x;
    if (operand.kind != kRepeat) continue;
    least = Max(least, operand.b);
    most = Min(most, operand.c);
  }
  // An x has a byte or more.
  uint64_t sum = 0;
  uint32_t looks_left = kMostLooks;
  for (uint32_t i = 0; i < n.b; ++i) {
    const Term t = words_[n.a + i];
    if (node(t).kind == kRepeat) continue;
    const uint64_t bytes = ShortestBytes(t, &looks_left);
    if (bytes > most) return false;
    sum += bytes;
  }
  return sum <= most && least <= most;
}

// Returns a length that the shortest string does not exceed; kUnknownLength: none is seen.
uint64_t Terms::ShortestBytes(Term t, uint32_t* looks_left) const {
  uint64_t sum = 0;
  for (;; t = node(t).b) {
    if (*looks_left == 0) return kUnknownLength;
    --*looks_left;
    const Node& n = node(t);
    uint64_t bytes = kUnknownLength;
    switch (n.kind) {
      case kEmptyKind: return sum;
      case kBytes: return sum + 1;
      case kRepeat: bytes = n.b == 0 ? 0 : ShortestBytes(n.a, looks_left); break;
      case kEither:
        for (uint32_t i = 0; i < n.b; ++i) {
          bytes = Min(bytes, ShortestBytes(words_[n.a + i], looks_left));
        }
        break;
      case kConcat: bytes = ShortestBytes(n.a, looks_left); break;
      case kFree:
      case kEdgeList:
      case kNothingKind:
      case kBoth:
      case kComplement:
      case kRule:
      case kCustom: break;
    }
    if (bytes == kUnknownLength) return kUnknownLength;
    sum += n.kind == kRepeat ? bytes * n.b : bytes;
    if (sum > kUnbounded) return kUnknownLength;
    if (n.kind != kConcat) return sum;
  }
}

// Returns a byte that brings the operand of an intersection with the shortest string nearer to its
// end; 256: none is seen.
uint32_t Terms::LikelyByte(Term t, uint32_t depth) {
  if (node(t).kind != kBoth) return 256;
  Term operand = kNothing;
  uint64_t shortest = kUnknownLength;
  for (uint32_t i = 0; i < node(t).b; ++i) {
    const Term one = words_[node(t).a + i];
    if (IsNullable(one)) continue;
    uint32_t looks_left = kMostLooks;
    const uint64_t bytes = ShortestBytes(one, &looks_left);
    if (bytes >= shortest) continue;
    shortest = bytes;
    operand = one;
  }
  if (operand == kNothing) return 256;
  ByteSet left = FirstBytes(t, depth);
  for (uint32_t b = left.Next(0); b < 256 && !failed(); b = left.Next(b)) {
    ByteSet same = ByteSet::All();
    const Term to = DeriveInto(operand, static_cast<uint8_t>(b), &same, depth);
    uint32_t looks_left = kMostLooks;
    if (to != kNothing && ShortestBytes(to, &looks_left) < shortest) return b;
    left &= ~same;
    left.Remove(static_cast<uint8_t>(b));
  }
  return 256;
}

}  // namespace arn
