// Makes room: keeps the terms that can be reached from the roots, and forgets derivatives.
#include <cstring>

#include "runtime/constrain/terms.h"

namespace arn {

void Terms::Collect(Span<const Term> roots) {
  failure_ = TermFailure::kNone;
  looping_rule_ = kNothing;
  scratch_used_ = 0;
  for (PutOff& one : put_off_) one = PutOff();
  // The terms to visit are a list through `chain`: the buckets are filled again by Sweep().
  Term to_visit = kNothing;
  Mark(any_bytes_, &to_visit);
  Mark(no_bytes_, &to_visit);
  for (const Term root : roots) Mark(root, &to_visit);
  while (to_visit != kNothing) {
    const Term t = to_visit;
    to_visit = node(t).chain;
    MarkParts(t, &to_visit);
  }
  SlideWords();
  Sweep();
  ++n_collections_;
}

void Terms::Mark(Term t, Term* to_visit) {
  Node& n = node(t);
  if (t <= kEmpty || (n.flags & kMarked) != 0) return;
  n.flags |= kMarked;
  n.chain = *to_visit;
  *to_visit = t;
}

void Terms::MarkParts(Term t, Term* to_visit) {
  const Node& n = node(t);
  switch (n.kind) {
    case kFree:
    case kEdgeList:
    case kNothingKind:
    case kEmptyKind:
    case kBytes: break;
    case kConcat:
      Mark(n.a, to_visit);
      Mark(n.b, to_visit);
      break;
    case kEither:
    case kBoth:
      for (const Term part : args(n)) Mark(part, to_visit);
      break;
    case kRepeat:
    case kComplement:
    case kRule: Mark(n.a, to_visit); break;
    case kCustom:
      for (const Term part : custom_args(n).terms) Mark(part, to_visit);
      break;
  }
}

void Terms::SlideWords() {
  uint32_t out = 0;
  for (uint32_t i = 0; i < n_words_;) {
    const Term owner = words_[i];
    Node& n = node(owner);
    const uint32_t count = PayloadWords(n) + 1;
    if ((n.flags & kMarked) != 0) {
      std::memmove(words_ + out, words_ + i, count * sizeof(uint32_t));
      (n.kind == kRule ? n.b : n.a) = out + 1;
      out += count;
    }
    i += count;
  }
  n_words_ = out;
}

void Terms::Sweep() {
  ClearTables();
  const auto is_marked = [this](uint32_t cell) {
    return node(cell).kind > kEdgeList && (node(cell).flags & kMarked) != 0;
  };
  while (n_cells_ > 2 && !is_marked(n_cells_ - 1)) --n_cells_;
  free_cell_ = n_free_ = 0;
  n_nodes_ = 2;
  for (uint32_t cell = n_cells_; cell-- > 2;) {
    Node& n = node(cell);
    if (!is_marked(cell)) {
      n.kind = kFree;
      n.chain = free_cell_;
      free_cell_ = cell;
      ++n_free_;
      continue;
    }
    n.flags &= static_cast<uint8_t>(~kMarked);
    n.visit = 0;
    n.edges = 0;
    n.first = 0;
    ++n_nodes_;
    if (n.kind != kRule) AddToBucket(cell);
  }
}

}  // namespace arn
