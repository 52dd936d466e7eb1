// The normal form of alternatives. It makes equal sets equal terms more often, which bounds the
// number of states, and shares work:
//
//   - flat, sorted, without duplicates;
//   - h s | h t is h (s | t): alternatives become a trie, and parse stacks a graph;
//   - [a] t | [b] t is [ab] t;
//   - x{a,b} t | x{c,d} t is x{min,max} t where the counts meet: repetitions of repetitions have
//     few states;
//   - beside x{0,} no alternative is kept that is seen to be made of x's;
//   - the empty string is left out where another alternative has it.
#include <algorithm>
#include <cstring>

#include "platform/base/arith.h"
#include "runtime/constrain/terms.h"

namespace arn {
namespace {

// Levels of heads without rules that are shared; a long sequence behind them would be copied
// for each of its beginnings. Derivatives come to the others. Heads with rules are a parser's
// stacks, and always shared.
constexpr uint32_t kMaxRegularLevels = 8;

}  // namespace

Term Terms::Either(Span<const Term> alternatives) {
  const uint32_t base = scratch_used_;
  for (const Term t : alternatives) PushAlternatives(t);
  return EitherOfScratch(base);
}

Term Terms::Either(Term a, Term b) {
  const Term both[] = {a, b};
  return Either(both);
}

// Returns the end of the sorted terms without duplicates.
Term* Terms::SortTerms(Term* first, Term* last) {
  std::sort(first, last);
  return std::unique(first, last);
}

void Terms::PushAlternatives(Term t) {
  if (t == kNothing) return;
  if (node(t).kind != kEither) {
    Push(t);
    return;
  }
  for (const Term alternative : args(node(t))) Push(alternative);
}

// A loop with levels of its own, because tails can share heads as deep as a text is nested: a level
// is the alternatives of one set, and the tails of a head make an inner one.
Term Terms::EitherOfScratch(uint32_t base) {
  if (failed() || scratch_used_ - base <= 1) {
    const Term only = failed() || scratch_used_ == base ? kNothing : scratch_[base];
    scratch_used_ = base;
    return only;
  }
  Level level = SplitAlternatives(base, 0);
  for (uint32_t n_outer = 0; !failed();) {
    if (EnterSharedHead(&level)) {
      ++n_outer;
      continue;
    }
    const Term made = JoinSpines(level);
    if (n_outer == 0 || failed()) return made;
    // The outer level lies below the inner one.
    --n_outer;
    std::memcpy(&level, scratch_ + level.base - kLevelWords, sizeof level);
    scratch_used_ = level.base + 2 * level.n;
    Spine* spines = reinterpret_cast<Spine*>(scratch_ + level.base);
    spines[level.n_out++] = {spines[level.at - 1].head, made};
  }
  scratch_used_ = base;
  return kNothing;
}

// Makes each term from scratch_[base] on a head and a tail, in place, and sorts them.
Terms::Level Terms::SplitAlternatives(uint32_t base, uint32_t n_regular) {
  Level level = {base, scratch_used_ - base, 0, 0, n_regular};
  for (uint32_t i = 0; i < level.n; ++i) {
    if (!Push(0)) return level;
  }
  Spine* spines = reinterpret_cast<Spine*>(scratch_ + base);
  for (uint32_t i = level.n; i-- > 0;) {
    const Term t = scratch_[base + i];
    if (t == any_bytes_) {  // has all others
      level.n = 1;
      scratch_used_ = base + 2;
      spines[0] = {t, kEmpty};
      return level;
    }
    const bool is_concat = node(t).kind == kConcat;
    spines[i] = is_concat ? Spine{node(t).a, node(t).b} : Spine{t, kEmpty};
  }
  std::sort(spines, spines + level.n, [](const Spine& a, const Spine& b) {
    return a.head != b.head ? a.head < b.head : a.tail < b.tail;
  });
  return level;
}

// Goes on to the next head with several tails. Saves the level, and makes those tails the new one.
bool Terms::EnterSharedHead(Level* level) {
  Spine* spines = reinterpret_cast<Spine*>(scratch_ + level->base);
  while (level->at < level->n) {
    const uint32_t first = level->at;
    const Spine spine = spines[first];
    bool differ = false;
    for (++level->at; level->at < level->n && spines[level->at].head == spine.head; ++level->at) {
      differ |= spines[level->at].tail != spine.tail;
    }
    const bool waits = level->n_regular == kMaxRegularLevels && IsRegular(spine.head);
    if (!differ || waits) {
      for (uint32_t i = first; i < level->at; ++i) {
        const bool repeats = i > first && spines[i].tail == spines[i - 1].tail;
        if (!repeats) spines[level->n_out++] = spines[i];
      }
      continue;
    }
    const uint32_t end = level->at;
    const uint32_t n_regular = level->n_regular + (IsRegular(spine.head) ? 1 : 0);
    for (uint32_t i = 0; i < kLevelWords; ++i) Push(0);
    if (failed()) return false;
    std::memcpy(scratch_ + scratch_used_ - kLevelWords, level, sizeof *level);
    const uint32_t inner = scratch_used_;
    for (uint32_t i = first; i < end; ++i) PushAlternatives(spines[i].tail);
    if (!failed()) *level = SplitAlternatives(inner, n_regular);
    return !failed();
  }
  return false;
}

// The alternatives of a level whose heads differ. Releases it.
Term Terms::JoinSpines(const Level& level) {
  Spine* spines = reinterpret_cast<Spine*>(scratch_ + level.base);
  uint32_t n = MergeBytes(spines, level.n_out);
  n = MergeRepeats(spines, n);
  n = DropWithin(spines, n);
  Term* first = scratch_ + level.base;
  bool is_nullable = false;
  for (uint32_t i = 0; i < n; ++i) {
    first[i] = ConcatNode(spines[i].head, spines[i].tail);  // never behind spines[i]
    is_nullable |= first[i] != kEmpty && IsNullable(first[i]);
  }
  Term* last = first + n;
  if (is_nullable) last = std::remove(first, last, kEmpty);
  n = static_cast<uint32_t>(SortTerms(first, last) - first);
  scratch_used_ = level.base;
  if (failed()) return kNothing;
  return n == 1 ? *first : Intern(kEither, 0, n, 0, {first, n});
}

// Both return the new number of spines.
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

// Drops what an alternative x{0,} has. With it, an expression that was looked for and found is
// forgotten.
uint32_t Terms::DropWithin(Spine* spines, uint32_t n) {
  for (uint32_t i = 0; i < n; ++i) {
    const Spine all = spines[i];
    const Node& head = node(all.head);
    if (head.kind != kRepeat || head.b != 0 || head.c != kUnbounded || all.tail != kEmpty) continue;
    uint32_t n_out = 0;
    for (uint32_t k = 0; k < n; ++k) {
      uint32_t looks_left = kMaxLooks;
      const bool drops = k != i && IsWithin(spines[k].head, head.a, &looks_left) &&
                         IsWithin(spines[k].tail, head.a, &looks_left);
      if (!drops) spines[n_out++] = spines[k];
    }
    return n_out;
  }
  return n;
}

// Returns true if every string of the term is seen to be a sequence of strings of `repeated`.
bool Terms::IsWithin(Term t, Term repeated, uint32_t* looks_left) const {
  for (;; t = node(t).b) {
    if (t == kEmpty || t == repeated) return true;
    if (*looks_left == 0) return false;
    --*looks_left;
    const Node& n = node(t);
    switch (n.kind) {
      case kBytes: {
        const Node& r = node(repeated);
        if (r.kind == kBytes) return set(t).IsWithin(set(repeated));
        for (uint32_t i = 0; r.kind == kEither && i < r.b; ++i) {
          const Term one = words_[r.a + i];
          if (node(one).kind == kBytes && set(t).IsWithin(set(one))) return true;
        }
        return false;
      }
      case kRepeat: return IsWithin(n.a, repeated, looks_left);
      case kEither:
        for (uint32_t i = 0; i < n.b; ++i) {
          if (!IsWithin(words_[n.a + i], repeated, looks_left)) return false;
        }
        return true;
      case kConcat:
        if (!IsWithin(n.a, repeated, looks_left)) return false;
        break;
      case kFree:
      case kEdgeList:
      case kNothingKind:
      case kEmptyKind:
      case kBoth:
      case kComplement:
      case kRule:
      case kCustom: return false;
    }
  }
}

}  // namespace arn
