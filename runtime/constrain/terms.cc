// Builders.
#include "runtime/constrain/terms.h"

#include <cstring>

namespace arn {

Term Terms::Bytes(const ByteSet& set) {
  if (set.IsEmpty()) return kNothing;
  return Intern(kBytes, 0, 0, 0, {set.words, ByteSet::kWords});
}

Term Terms::Literal(StringView text) {
  Term term = kEmpty;
  for (size_t i = text.size; i-- > 0;) {
    term = ConcatNode(Byte(static_cast<uint8_t>(text.data[i])), term);
  }
  return term;
}

// x{a,b} x{c,d} is x{a+c,b+d}, and x{0,} y is x{0,} if y may be empty and is seen to be made of
// x's.
Term Terms::ConcatNode(Term a, Term b) {
  if (a == kNothing || b == kNothing) return kNothing;
  if (a == kEmpty) return b;
  if (b == kEmpty) return a;
  const Node& first = node(a);
  if (first.kind == kRepeat) {
    uint32_t looks_left = kMaxLooks;
    const bool is_any = first.b == 0 && first.c == kUnbounded;
    if (is_any && IsNullable(b) && IsWithin(b, first.a, &looks_left)) return a;
    const bool has_tail = node(b).kind == kConcat;
    const Node& second = node(has_tail ? node(b).a : b);
    if (second.kind == kRepeat && second.a == first.a) {
      const uint64_t min = uint64_t{first.b} + second.b;
      const bool unbounded = first.c == kUnbounded || second.c == kUnbounded;
      const uint64_t max = unbounded ? kUnbounded : uint64_t{first.c} + second.c;
      if (min < kUnbounded && (unbounded || max < kUnbounded)) {
        const Term both = Repeat(first.a, static_cast<uint32_t>(min), static_cast<uint32_t>(max));
        return has_tail ? ConcatNode(both, node(b).b) : both;
      }
    }
  }
  return Intern(kConcat, a, b, 0, {});
}

// Appends `last` to the elements from scratch_[base] on, which it takes.
Term Terms::FoldConcat(uint32_t base, Term last) {
  while (scratch_used_ > base) last = ConcatNode(scratch_[--scratch_used_], last);
  return failed() ? kNothing : last;
}

Term Terms::Concat(Term a, Term b) {
  if (a == kNothing || b == kNothing) return kNothing;
  const uint32_t base = scratch_used_;
  for (; node(a).kind == kConcat; a = node(a).b) Push(node(a).a);
  return FoldConcat(base, ConcatNode(a, b));
}

// As Concat(), but the sequence `a` stays one element, a frame on the stack that `b` is:
// derivatives of long sequences must not copy them. A head that is a sequence marks a stack; only
// its frames are moved.
Term Terms::PushFrames(Term a, Term b) {
  const uint32_t base = scratch_used_;
  for (; node(a).kind == kConcat && node(node(a).a).kind == kConcat; a = node(a).b) {
    Push(node(a).a);
  }
  return FoldConcat(base, ConcatNode(a, b));
}

Term Terms::Repeat(Term x, uint32_t min, uint32_t max) {
  if (failed()) return kNothing;
  if (max == 0 || x == kEmpty) return kEmpty;
  if (x == kNothing) return min == 0 ? kEmpty : kNothing;
  if (min == 1 && max == 1) return x;
  // (empty | y){m,n} is y{0,n}.
  if (node(x).kind == kEither && args(node(x))[0] == kEmpty) {
    const uint32_t base = scratch_used_;
    for (const Term t : args(node(x))) {
      if (t != kEmpty) Push(t);
    }
    x = EitherOfScratch(base);
    return Repeat(x, 0, max);
  }
  if (IsNullable(x)) min = 0;
  // y{a,b}{m,n} is y{a m,b n} if a <= 1, because then no count in between is missing.
  if (node(x).kind == kRepeat && node(x).b <= 1) {
    const Node inner = node(x);
    const bool unbounded = max == kUnbounded || inner.c == kUnbounded;
    const uint64_t product = unbounded ? kUnbounded : uint64_t{inner.c} * max;
    if (unbounded || product < kUnbounded) {
      return Repeat(inner.a, inner.b * min, static_cast<uint32_t>(product));
    }
  }
  return Intern(kRepeat, x, min, max, {});
}

Term Terms::NewRule(StringView name) {
  if (failed()) return kNothing;
  const Term t = NewCell();
  if (t == 0) return kNothing;
  node(t) = Node();
  const uint32_t words = NewWords(sizeof(StringView) / sizeof(uint32_t), t);
  if (words == 0) return kNothing;
  std::memcpy(words_ + words, &name, sizeof name);
  Node& n = node(t);
  n.kind = kRule;
  n.flags = kHasRule;
  n.b = words;
  ++n_nodes_;
  return t;
}

bool Terms::IsDefined(Term rule) const { return node(rule).c != 0; }

// Rewrites A = A x | y to A = y x*, and drops an alternative A of A, which adds nothing.
void Terms::Define(Term rule, Term body) {
  if (failed() || rule == kNothing) return;
  node(rule).c = 1;
  const uint32_t others = scratch_used_;
  PushAlternatives(body);
  uint32_t n_others = 0;
  bool recurs = false;
  for (uint32_t i = others; i < scratch_used_; ++i) {
    const Node& n = node(scratch_[i]);
    const bool begins = scratch_[i] == rule || (n.kind == kConcat && n.a == rule);
    recurs |= begins;
    if (!begins) scratch_[others + n_others++] = scratch_[i];
  }
  scratch_used_ = others + n_others;
  if (!recurs) {
    scratch_used_ = others;
    node(rule).a = body;
    return;
  }
  const Term y = EitherOfScratch(others);
  const uint32_t tails = scratch_used_;
  PushAlternatives(body);
  uint32_t n_tails = 0;
  for (uint32_t i = tails; i < scratch_used_; ++i) {
    const Node& n = node(scratch_[i]);
    if (n.kind == kConcat && n.a == rule) scratch_[tails + n_tails++] = n.b;
  }
  scratch_used_ = tails + n_tails;
  const Term x = EitherOfScratch(tails);
  node(rule).a = Concat(y, Repeat(x, 0, kUnbounded));
}

Term Terms::WithoutFrames(Term term) {
  while (node(term).kind == kConcat && node(node(term).a).kind == kConcat && !failed()) {
    const Term frame = node(term).a;
    const Term rest = ConcatNode(node(frame).b, node(term).b);
    term = ConcatNode(node(frame).a, rest);
  }
  return term;
}

bool Terms::SplitRepetition(Term term, Repetition* out) const {
  const bool is_sequence = node(term).kind == kConcat;
  const Node& n = node(is_sequence ? node(term).a : term);
  if (n.kind != kRepeat) return false;
  *out = {n.a, n.b, n.c, is_sequence ? node(term).b : kEmpty};
  return true;
}

bool Terms::SplitOpen(Term term, Repetition* out) {
  const bool is_sequence = node(term).kind == kConcat;
  const Term head = is_sequence ? node(term).a : term;
  const Term over = node(head).kind == kBoth ? OpenOver(head) : kEmpty;
  if (over == kEmpty) return false;
  *out = {over, 0, kUnbounded, is_sequence ? node(term).b : kEmpty};
  return true;
}

Term Terms::Custom(const CustomOps* ops, Span<const Term> terms, Span<const uint32_t> data) {
  uint32_t index = 0;
  while (index < n_ops_ && ops_[index] != ops) ++index;
  if (index == kMaxOps || terms.size() > 0xFFFF || data.size() > 0xFFFF) {
    Fail(TermFailure::kTooMany);
    return kNothing;
  }
  if (index == n_ops_) ops_[n_ops_++] = ops;
  const uint32_t base = scratch_used_;
  for (const Term t : terms) Push(t);
  for (const uint32_t word : data) Push(word);
  scratch_used_ = base;
  if (failed()) return kNothing;
  const auto counts = static_cast<uint32_t>(terms.size() | data.size() << 16);
  return Intern(kCustom, 0, counts, index, {scratch_ + base, terms.size() + data.size()});
}

}  // namespace arn
