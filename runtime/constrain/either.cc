// The normal form of alternatives. It makes equal sets equal terms more often, which bounds the
// number of states, and shares work:
//
//   - flat, sorted, without duplicates;
//   - h s | h t is h (s | t): alternatives become a trie, and parse stacks a graph;
//   - [a] t | [b] t is [ab] t;
//   - x{a,b} t | x{c,d} t is x{min,max} t where the counts meet: repetitions of repetitions have
//     few states;
//   - the empty string is left out where another alternative has it.
#include <algorithm>

#include "platform/base/arith.h"
#include "runtime/constrain/terms.h"

namespace arn {
namespace {

// Common prefixes longer than this stay unfactored until derivatives have shortened them.
constexpr uint32_t kMaxFactorDepth = 64;

}  // namespace

Term Terms::Either(Span<const Term> alternatives) {
  const uint32_t base = scratch_used_;
  for (const Term t : alternatives) PushAlternatives(t);
  return EitherOfScratch(base, 0);
}

Term Terms::Either(Term a, Term b) {
  const Term both[] = {a, b};
  return Either(both);
}

void Terms::PushAlternatives(Term t) {
  if (t == kNothing) return;
  if (node(t).kind != kEither) {
    Push(t);
    return;
  }
  for (const Term alternative : args(node(t))) Push(alternative);
}

Term Terms::EitherOfScratch(uint32_t base, uint32_t depth) {
  uint32_t n = scratch_used_ - base;
  if (failed() || n <= 1) {
    const Term only = failed() || n == 0 ? kNothing : scratch_[base];
    scratch_used_ = base;
    return only;
  }
  for (uint32_t i = 0; i < n; ++i) Push(0);
  if (failed()) {
    scratch_used_ = base;
    return kNothing;
  }
  // In place, from the last: each term becomes a head and a tail.
  Spine* spines = reinterpret_cast<Spine*>(scratch_ + base);
  for (uint32_t i = n; i-- > 0;) {
    const Term t = scratch_[base + i];
    if (t == any_bytes_) {
      scratch_used_ = base;
      return any_bytes_;
    }
    const bool is_concat = node(t).kind == kConcat;
    spines[i] = is_concat ? Spine{node(t).a, node(t).b} : Spine{t, kEmpty};
  }
  n = FactorHeads(spines, n, depth);
  n = MergeBytes(spines, n);
  n = MergeRepeats(spines, n);

  bool is_nullable = false;
  for (uint32_t i = 0; i < n; ++i) {
    const Term t = ConcatNode(spines[i].head, spines[i].tail);
    scratch_[base + i] = t;  // never behind spines[i]
    is_nullable |= t != kEmpty && IsNullable(t);
  }
  Term* first = scratch_ + base;
  Term* last = first + n;
  if (is_nullable) last = std::remove(first, last, kEmpty);
  std::sort(first, last);
  last = std::unique(first, last);
  n = static_cast<uint32_t>(last - first);
  scratch_used_ = base;
  if (failed()) return kNothing;
  return n == 1 ? *first : Intern(kEither, 0, n, 0, {first, n});
}

// Each returns the new number of spines.
uint32_t Terms::FactorHeads(Spine* spines, uint32_t n, uint32_t depth) {
  std::sort(spines, spines + n, [](const Spine& a, const Spine& b) {
    return a.head != b.head ? a.head < b.head : a.tail < b.tail;
  });
  uint32_t n_out = 0;
  for (uint32_t i = 0, end = 0; i < n; i = end) {
    const Spine spine = spines[i];
    const uint32_t tails = scratch_used_;
    bool differ = false;
    for (end = i + 1; end < n && spines[end].head == spine.head; ++end) {
      differ |= spines[end].tail != spine.tail;
    }
    if (!differ) {
      spines[n_out++] = spine;
    } else if (depth < kMaxFactorDepth) {
      for (uint32_t k = i; k < end; ++k) PushAlternatives(spines[k].tail);
      spines[n_out++] = {spine.head, EitherOfScratch(tails, depth + 1)};
    } else {
      for (uint32_t k = i; k < end; ++k) {
        if (k == i || spines[k].tail != spines[k - 1].tail) spines[n_out++] = spines[k];
      }
    }
  }
  return n_out;
}

uint32_t Terms::MergeBytes(Spine* spines, uint32_t n) {
  Spine* end_bytes = std::partition(spines, spines + n,
                                    [this](const Spine& s) { return node(s.head).kind == kBytes; });
  const auto n_bytes = static_cast<uint32_t>(end_bytes - spines);
  std::sort(spines, end_bytes, [](const Spine& a, const Spine& b) { return a.tail < b.tail; });
  uint32_t n_out = 0;
  for (uint32_t i = 0, end = 0; i < n_bytes; i = end) {
    const Spine spine = spines[i];
    ByteSet all = set(spine.head);
    for (end = i + 1; end < n_bytes && spines[end].tail == spine.tail; ++end) {
      all |= set(spines[end].head);
    }
    spines[n_out++] = {end == i + 1 ? spine.head : Bytes(all), spine.tail};
  }
  for (uint32_t i = n_bytes; i < n; ++i) spines[n_out++] = spines[i];
  return n_out;
}

uint32_t Terms::MergeRepeats(Spine* spines, uint32_t n) {
  Spine* end_repeats = std::partition(
      spines, spines + n, [this](const Spine& s) { return node(s.head).kind == kRepeat; });
  const auto n_repeats = static_cast<uint32_t>(end_repeats - spines);
  std::sort(spines, end_repeats, [this](const Spine& x, const Spine& y) {
    const Node& a = node(x.head);
    const Node& b = node(y.head);
    if (x.tail != y.tail) return x.tail < y.tail;
    if (a.a != b.a) return a.a < b.a;
    return a.b < b.b;
  });
  uint32_t n_out = 0;
  for (uint32_t i = 0, end = 0; i < n_repeats; i = end) {
    const Spine spine = spines[i];
    const Node head = node(spine.head);
    uint32_t max = head.c;
    for (end = i + 1; end < n_repeats && spines[end].tail == spine.tail; ++end) {
      const Node& next = node(spines[end].head);
      if (next.a != head.a || (max != kUnbounded && next.b > max + 1)) break;
      max = Max(max, next.c);
    }
    spines[n_out++] = {max == head.c ? spine.head : Repeat(head.a, head.b, max), spine.tail};
  }
  for (uint32_t i = n_repeats; i < n; ++i) spines[n_out++] = spines[i];
  return n_out;
}

}  // namespace arn
