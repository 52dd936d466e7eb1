// Derivatives. With D(r) for the derivative of r by the byte at hand:
//
//   D([set])  = empty if the byte is in the set      D(r | s)  = D(r) | D(s)
//   D(r s)    = D(r) s, | D(s) if r is nullable      D(r & s)  = D(r) & D(s)
//   D(r{m,n}) = D(r) r{m-1,n-1}                      D(not r)  = not D(r)
//   D(A)      = D(body of A)
//
// (For r{m,n} that holds of nullable r too: then r{m-1} includes r{m-2}.) Each also yields the set
// of bytes by which the derivative is the same, an intersection of the parts' sets.
#include "runtime/constrain/terms.h"

namespace arn {

const ByteSet& Terms::FirstBytes(Term t) { return FirstBytes(t, depth_); }

const ByteSet& Terms::FirstBytes(Term t, uint32_t depth) {
  if (node(t).first != 0) return set(node(t).first);
  if (node(t).kind == kBytes) return set(t);
  if (t <= kEmpty || failed()) return set(no_bytes_);
  if (depth == kMaxDepth) {
    Fail(TermFailure::kTooDeep);
    return set(no_bytes_);
  }
  const ByteSet first = FindFirstBytes(t, depth);
  const Term bytes = Intern(kBytes, 0, 0, 0, {first.words, ByteSet::kWords});
  if (failed()) return set(no_bytes_);
  node(t).first = bytes;
  return set(bytes);
}

ByteSet Terms::FindFirstBytes(Term t, uint32_t depth) {
  Node& n = node(t);
  ByteSet first;
  switch (n.kind) {
    case kFree:
    case kEdgeList:
    case kNothingKind:
    case kEmptyKind:
    case kBytes: break;
    case kConcat: {
      Term rest = t;
      for (; node(rest).kind == kConcat && node(rest).first == 0; rest = node(rest).b) {
        first |= FirstBytes(node(rest).a, depth + 1);
        if (!IsNullable(node(rest).a)) return first;
      }
      first |= FirstBytes(rest, depth + 1);
      break;
    }
    case kEither:
      for (uint32_t i = 0; i < n.b; ++i) first |= FirstBytes(words_[n.a + i], depth + 1);
      break;
    case kRepeat: first = FirstBytes(n.a, depth + 1); break;
    case kBoth:
      first = ByteSet::All();
      for (uint32_t i = 0; i < n.b; ++i) first &= FirstBytes(words_[n.a + i], depth + 1);
      break;
    case kComplement: first = ByteSet::All(); break;
    case kRule:
      if ((n.flags & kFindingFirst) != 0) {
        looping_rule_ = t;
        Fail(TermFailure::kTooDeep);
        break;
      }
      n.flags |= kFindingFirst;
      first = FirstBytes(n.a, depth + 1);
      n.flags &= static_cast<uint8_t>(~kFindingFirst);
      break;
    case kCustom: {
      const CustomOps& ops = *ops_[n.c];
      if (ops.expand != nullptr) return FirstBytes(Expanded(t), depth + 1);
      const uint32_t outer = depth_;
      depth_ = depth + 1;
      first = ops.first_bytes(this, custom_args(n));
      depth_ = outer;
      break;
    }
  }
  return first;
}

Term Terms::DeriveUncached(Term t, uint8_t byte) {
  if (t <= kEmpty || failed()) return kNothing;
  const uint32_t base = scratch_used_;
  ByteSet same = ByteSet::All();
  const Term to = DeriveInto(t, byte, &same, depth_);
  scratch_used_ = base;
  if (failed()) return kNothing;
  const uint32_t key = t << 8 | byte;
  cache_[CacheSlot(key)] = {key, to};
  return to;
}

void Terms::Begin(Term term, Cursor* cursor) {
  *cursor = {term, kNothing, &set(no_bytes_), &FirstBytes(term)};
}

// Terms that begin with one set of bytes have no edges: all of them lead to the same term.
Term Terms::DeriveAt(Cursor* cursor, uint8_t byte) {
  const Term to = Derive(cursor->term, byte);
  if (failed()) return kNothing;
  const Node& n = node(cursor->term);
  const bool is_plain = n.kind == kBytes || (n.kind == kConcat && node(n.a).kind == kBytes);
  const ByteSet* bytes = is_plain ? cursor->first : EdgeBytes(cursor->term, byte);
  if (bytes != nullptr) {
    cursor->bytes = bytes;
    cursor->to = to;
  }
  return to;
}

const ByteSet* Terms::EdgeBytes(Term t, uint8_t byte) {
  for (uint32_t cell = node(t).edges; cell != 0; cell = edge_list(cell).next) {
    const EdgeList& list = edge_list(cell);
    for (uint32_t i = 0; i < list.count; ++i) {
      const Edge& edge = list.edges[i];
      if (edge.bytes != 0 && set(edge.bytes).Has(byte)) return &set(edge.bytes);
    }
  }
  return nullptr;
}

Term Terms::DerivePart(Term part, uint8_t byte, ByteSet* same) {
  return DeriveInto(part, byte, same, depth_);
}

// Returns the derivative, and removes from *same the bytes by which it is another term.
Term Terms::DeriveInto(Term t, uint8_t byte, ByteSet* same, uint32_t depth) {
  const Term to = DeriveUnchecked(t, byte, same, depth);
  return IsDecidable(t) && !HasString(to, depth + 1) ? kNothing : to;
}

// As DeriveInto(), but derivatives of kBoth and kComplement may be terms without a string.
Term Terms::DeriveUnchecked(Term t, uint8_t byte, ByteSet* same, uint32_t depth) {
  if (t <= kEmpty || failed()) return kNothing;
  const ByteSet& first = FirstBytes(t, depth);
  if (!first.Has(byte)) {
    *same &= ~first;
    return kNothing;
  }
  const Node& n = node(t);
  if (n.kind == kBytes) {
    *same &= first;
    return kEmpty;
  }
  if (n.kind == kConcat && node(n.a).kind == kBytes) {
    *same &= first;
    return n.b;
  }
  Term to;
  if (FindEdge(t, byte, same, &to)) return to;
  if (depth >= kMaxDepth) {
    Fail(TermFailure::kTooDeep);
    return kNothing;
  }
  ByteSet mine = first;
  to = ComputeDerivative(t, byte, &mine, depth);
  if (failed()) return kNothing;
  AddEdge(t, Bytes(mine), to);
  *same &= mine;
  return to;
}

// Pushes the alternatives of `first`, each followed by `rest`.
void Terms::PushFollowedBy(Term first, Term rest) {
  if (node(first).kind != kEither) {
    PushAlternatives(PushFrames(first, rest));
    return;
  }
  for (uint32_t i = 0; i < node(first).b; ++i) {
    PushAlternatives(PushFrames(words_[node(first).a + i], rest));
  }
}

Term Terms::ComputeDerivative(Term t, uint8_t byte, ByteSet* same, uint32_t depth) {
  const Node& n = node(t);
  const uint32_t base = scratch_used_;
  switch (n.kind) {
    case kFree:
    case kEdgeList:
    case kNothingKind:
    case kEmptyKind:
    case kBytes: break;
    case kConcat: {
      Term rest = t;
      for (; node(rest).kind == kConcat; rest = node(rest).b) {
        const Node& sequence = node(rest);
        PushFollowedBy(DeriveInto(sequence.a, byte, same, depth + 1), sequence.b);
        if (!IsNullable(sequence.a)) return EitherOfScratch(base);
      }
      PushAlternatives(DeriveInto(rest, byte, same, depth + 1));
      return EitherOfScratch(base);
    }
    case kEither:
      for (uint32_t i = 0; i < n.b; ++i) {
        PushAlternatives(DeriveInto(words_[n.a + i], byte, same, depth + 1));
      }
      return EitherOfScratch(base);
    case kRepeat: {
      const Term rest = Repeat(n.a, n.b == 0 ? 0 : n.b - 1, n.c == kUnbounded ? n.c : n.c - 1);
      PushFollowedBy(DeriveInto(n.a, byte, same, depth + 1), rest);
      return EitherOfScratch(base);
    }
    case kBoth:
      Spend(n.b / 4);
      for (uint32_t i = 0; i < n.b; ++i) {
        const Term operand = DeriveInto(words_[n.a + i], byte, same, depth + 1);
        if (operand == kNothing) {
          scratch_used_ = base;
          return kNothing;
        }
        PushOperands(operand);
      }
      return BothOfScratch(base);
    case kComplement: return ComplementNode(DeriveInto(n.a, byte, same, depth + 1));
    case kRule: return DeriveInto(n.a, byte, same, depth + 1);
    case kCustom: {
      const CustomOps& ops = *ops_[n.c];
      if (ops.expand != nullptr) return DeriveInto(Expanded(t), byte, same, depth + 1);
      const uint32_t outer = depth_;
      depth_ = depth + 1;
      const Term to = ops.derive(this, custom_args(n), byte, same);
      depth_ = outer;
      return to;
    }
  }
  return kNothing;
}

// Kept as the edge without bytes.
Term Terms::Expanded(Term custom) {
  for (uint32_t cell = node(custom).edges; cell != 0; cell = edge_list(cell).next) {
    const EdgeList& list = edge_list(cell);
    for (uint32_t i = 0; i < list.count; ++i) {
      if (list.edges[i].bytes == 0) return list.edges[i].to;
    }
  }
  const Term expanded = ops_[node(custom).c]->expand(this, custom_args(node(custom)));
  if (!failed()) AddEdge(custom, 0, expanded);
  return expanded;
}

bool Terms::FindEdge(Term t, uint8_t byte, ByteSet* same, Term* to) {
  for (uint32_t cell = node(t).edges; cell != 0; cell = edge_list(cell).next) {
    const EdgeList& list = edge_list(cell);
    for (uint32_t i = 0; i < list.count; ++i) {
      const Edge& edge = list.edges[i];
      if (edge.bytes == 0 || !set(edge.bytes).Has(byte)) continue;
      *same &= set(edge.bytes);
      *to = edge.to;
      return true;
    }
  }
  return false;
}

void Terms::AddEdge(Term t, Term bytes, Term to) {
  if (failed()) return;
  const uint32_t first = node(t).edges;
  if (first != 0 && edge_list(first).count < 3) {
    EdgeList& list = edge_list(first);
    list.edges[list.count++] = {bytes, to};
    return;
  }
  const uint32_t cell = NewCell();
  if (cell == 0) return;
  EdgeList& list = edge_list(cell);
  list = EdgeList();
  list.next = first;
  list.kind = kEdgeList;
  list.count = 1;
  list.edges[0] = {bytes, to};
  node(t).edges = cell;
}

}  // namespace arn
