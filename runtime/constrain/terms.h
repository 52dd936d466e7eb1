// Terms: languages over bytes and their derivatives, inside one block of memory.
//
// A term denotes a set of strings that is never empty, except kNothing. The derivative of a term by
// a byte b is the set of what may follow b: { w : b w in the term } (Brzozowski 1964, "Derivatives
// of Regular Expressions"). A term therefore is the state of a matcher, and deriving it is the step
// of the matcher: no automaton is built in advance. What makes that fast:
//
// - Equal terms are one term (hash-consing), and alternatives have a normal form, so that the same
//   state is reached again: a regular expression has finitely many.
// - A derivative is kept with the set of all bytes that lead to it, so the automaton is built
//   lazily, an edge per class of bytes (Owens, Reppy, Turon 2009, "Regular-expression derivatives
//   re-examined").
// - A rule may refer to itself: derivatives unfold it as far as the text goes (Might, Darais,
//   Spiewak 2011, "Parsing with Derivatives"). The tails of a concatenation are the stack of a
//   parser; alternatives with the same head share it, which makes a graph of the stacks (Tomita).
// - A repetition counts, and is never expanded.
//
// Terms are numbers that stay valid until a Collect() to which they are neither roots nor reachable
// from one. Collect() makes room when the block is full; nothing else moves or releases memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "platform/base/diag.h"
#include "platform/base/span.h"
#include "platform/base/status.h"
#include "runtime/constrain/byte_set.h"

namespace arn {

using Term = uint32_t;
inline constexpr Term kNothing = 0;                  // no string at all
inline constexpr Term kEmpty = 1;                    // the empty string only
inline constexpr uint32_t kUnbounded = 0xFFFFFFFFu;  // of Repeat(): no maximum

class Terms;

// Payload of a custom term. Valid until the next Collect().
struct CustomArgs {
  Span<const Term> terms;
  Span<const uint32_t> data;
};

// A term with behaviour of its own, for what has no compact expression: the properties of an object
// in any order, say. Two custom terms with the same operations and arguments are the same term.
struct CustomOps {
  bool (*is_nullable)(const Terms& terms, const CustomArgs& args);
  // Either `expand`: an equal term, whose derivatives are this one's; it is asked for when the
  // first derivative is. Or null, and the two functions below.
  Term (*expand)(Terms* terms, const CustomArgs& args);
  // The bytes with which a string may begin; bytes with which none begins may be among them.
  ByteSet (*first_bytes)(Terms* terms, const CustomArgs& args);
  // The derivative by `byte`. Removes from *same (at least) the bytes with another derivative.
  Term (*derive)(Terms* terms, const CustomArgs& args, uint8_t byte, ByteSet* same);
  // Returns true if there is a string at all, given Terms::IsProductive() of its terms; null:
  // always.
  bool (*is_productive)(const Terms& terms, const CustomArgs& args);
};

// Why a call failed.
enum class TermFailure : uint8_t {
  kNone,
  kBlockFull,  // after a Collect() it may work
  kTooDeep,    // nested deeper than kMaxDepth
  kUndecided,  // whether Both() or Complement() has a string was not found in kMaxDecideSteps
  kTooMany,    // a count above 2^32 - 2, or more than kMaxOps kinds of custom terms
  kCancelled,
  kPutOff,  // SetWork(): after GoOn() the same call gets further
};

// "needs more memory than it was given" and the like, for the text of an error.
const char* TermFailureText(TermFailure failure);
// kOutOfMemory if the block is full, else kUnsupported.
Status TermFailureStatus(TermFailure failure);

class Terms {
 public:
  // Levels of alternatives, repetitions and rules that begin at the same byte. Bounds the recursion
  // of this class: a level takes less than 300 bytes of stack.
  static constexpr uint32_t kMaxDepth = 250;
  static constexpr uint32_t kMaxOps = 16;
  static constexpr uint64_t kMinBytes = 32 << 10;
  static constexpr uint64_t kMaxBytes = uint64_t{1} << 29;  // of a larger block the rest is unused
  // States that Both() and Complement() look at to find a string.
  static constexpr uint32_t kMaxDecideSteps = 1 << 20;

  // Creates Terms at the start of `block`, which they own from then on. Returns null if it has
  // fewer than kMinBytes. REQUIRES: 64-byte aligned.
  static Terms* Create(Span<std::byte> block);

  // Building. After a failure, and of kNothing, they return kNothing.
  Term Bytes(const ByteSet& set);
  Term Byte(uint8_t byte) { return Bytes(ByteSet::Of(byte)); }
  Term Literal(StringView text);
  Term AnyBytes() const { return any_bytes_; }  // every string
  // `a`, then `b`. Copies the sequence that `a` is: to build a long one, start at its end.
  Term Concat(Term a, Term b);
  Term Either(Span<const Term> alternatives);
  Term Either(Term a, Term b);
  // From `min` to `max` times. REQUIRES: min <= max.
  Term Repeat(Term term, uint32_t min, uint32_t max);
  Term Optional(Term term) { return Repeat(term, 0, 1); }
  // An equal term: where the head of a sequence is a sequence, its parts stand there instead.
  Term WithoutFrames(Term term);
  // Describes the repetition that a term begins with.
  struct Repetition {
    Term of = kNothing;
    uint32_t min = 0, max = 0;
    Term rest = kEmpty;  // what follows
  };
  // Returns false if the term begins with something else. REQUIRES: a term of WithoutFrames().
  bool SplitRepetition(Term term, Repetition* out) const;
  // Returns true if the term begins with an intersection that has a string after every sequence of
  // strings of one term: sets out->of, and out->rest. REQUIRES: as above.
  bool SplitOpen(Term term, Repetition* out);
  // A term is open over x if it has a string and, with each string of some of its strings, every
  // one that has this between x's: where "ab" is looked for in any characters, say. Returns x;
  // kEmpty: none is seen.
  Term OpenOver(Term t);
  // Intersection and complement; kNothing if no string is left. REQUIRES: IsRegular() operands.
  Term Both(Term a, Term b);
  Term Complement(Term term);
  Term Without(Term a, Term b) { return Both(a, Complement(b)); }

  // A rule: a term that is defined later, at most once, and may occur in its own definition. The
  // name, for messages, must live until Resolve(). A rule that begins with itself is rewritten
  // (A = A x | y to A = y x*); where that happens through other rules, Resolve() refuses.
  Term NewRule(StringView name);
  void Define(Term rule, Term body);
  bool IsDefined(Term rule) const;

  // REQUIRES: `ops` outlives this object.
  Term Custom(const CustomOps* ops, Span<const Term> terms, Span<const uint32_t> data);

  // Computes what depends on rules. To be called once, when all are defined, before a term with a
  // rule or custom term is derived or asked IsNullable(). Refuses, by the rule's name, rules
  // reachable from `root` that are not defined, match no string, begin with themselves, or are
  // nested too deep.
  Status Resolve(Term root, Diag* diag);

  // Returns false if rules or custom terms are part of the term.
  bool IsRegular(Term term) const { return (node(term).flags & kHasRule) == 0; }
  // Returns true if the empty string belongs to the term.
  bool IsNullable(Term term) const { return (node(term).flags & kNullable) != 0; }
  // Returns true if there is a string; for CustomOps::is_productive, during Resolve().
  bool IsProductive(Term term) const { return (node(term).flags & kProductive) != 0; }
  // The bytes with which strings begin. Where Both(), Complement() or custom terms are part of the
  // term, bytes with which none begins may be among them. Valid until the next Collect().
  const ByteSet& FirstBytes(Term term);
  // Returns the term of what may follow `byte`; kNothing if the byte may not come. If failed(), the
  // result means nothing.
  Term Derive(Term term, uint8_t byte) {
    const uint32_t key = term << 8 | byte;
    const CacheEntry& entry = cache_[CacheSlot(key)];
    return entry.key == key ? entry.to : DeriveUncached(term, byte);
  }
  // The same for many bytes, one after the other, by which a term has often the same derivative.
  // Begin it after every Collect().
  struct Cursor {
    Term term = kNothing;
    Term to = kNothing;  // the last derivative, by any of `bytes`
    const ByteSet* bytes = nullptr;
    const ByteSet* first = nullptr;
  };
  // If failed(), the cursor is of no use.
  void Begin(Term term, Cursor* cursor);
  Term Derive(Cursor* cursor, uint8_t byte) {
    if (cursor->bytes->Has(byte)) return cursor->to;
    return cursor->first->Has(byte) ? DeriveAt(cursor, byte) : kNothing;
  }
  // The same for CustomOps::derive, of a term among its arguments.
  Term DerivePart(Term part, uint8_t byte, ByteSet* same);

  // Words that a parser keeps for a while, on the stack that building uses: what was pushed last is
  // released first, and pointers last as long as what they point to. A push fails like a builder.
  bool Push(uint32_t word);
  uint32_t PushedMark() const { return scratch_used_; }
  uint32_t* PushedSince(uint32_t mark) { return scratch_ + mark; }
  void ReleaseTo(uint32_t mark) { scratch_used_ = mark; }

  // Fails with kCancelled soon after it becomes non-zero. Null: never.
  void SetCancel(const std::atomic<uint32_t>* cancel) { cancel_ = cancel; }

  // Limits the work of the calls that follow, in units of a new cell, a quarter of a microsecond;
  // then they fail with kPutOff. What they have made stays: repeated after GoOn(), with as much
  // work again, they come to an end, unless a Collect() is in between.
  static constexpr uint64_t kAnyWork = UINT64_MAX;
  void SetWork(uint64_t units) { work_left_ = units; }
  // Clears the failure kPutOff.
  void GoOn();

  void Fail(TermFailure failure) {
    if (failure_ == TermFailure::kNone) failure_ = failure;
  }
  TermFailure failure() const { return failure_; }
  bool failed() const { return failure_ != TermFailure::kNone; }
  const char* FailureText() const { return TermFailureText(failure_); }

  // Releases everything that cannot be reached from `roots`, and every kept derivative. Clears a
  // failure.
  void Collect(Span<const Term> roots);

  // Memory touched, without what was released. What a Collect() would release is counted as used.
  uint64_t used_bytes() const;
  // For more terms.
  uint64_t free_bytes() const;
  uint64_t block_bytes() const { return block_bytes_; }
  uint32_t n_terms() const { return n_nodes_; }
  uint32_t n_collections() const { return n_collections_; }

 private:
  enum Kind : uint8_t {
    kFree,      // not in use
    kEdgeList,  // no term: an EdgeList
    kNothingKind,
    kEmptyKind,
    kBytes,       // a: words of the set
    kConcat,      // a, then b; c: OpenOver(), or 0: not known yet
    kEither,      // a: words with b terms, ascending; c as above
    kRepeat,      // a, b to c times
    kBoth,        // a: words with b terms, ascending: what all of them have; c as above
    kComplement,  // not a
    kRule,        // a: body; b: words with the name; c: whether it is defined
    kCustom,      // a: words; b: number of terms | number of data words << 16; c: ops
  };
  enum Flag : uint8_t {
    kNullable = 1,
    kHasRule = 2,
    kProductive = 4,
    kMarked = 8,         // reached by Collect()
    kFindingFirst = 16,  // FirstBytes() of this rule is being computed
    kHasString = 32,     // of kBoth and kComplement: decided
    kHasNoString = 64,
  };
  struct Node {
    uint32_t chain;  // next in the bucket; free cells: next free; during Collect(): next to visit
    Kind kind;
    uint8_t flags;
    uint16_t visit;  // the last decision that came here
    uint32_t hash;
    uint32_t a, b, c;
    uint32_t edges;  // cell of the first EdgeList, or 0
    Term first;      // kBytes: FirstBytes(); 0: not known yet
  };
  struct Edge {
    Term bytes;  // kBytes
    Term to;
  };
  struct EdgeList {
    uint32_t next;
    Kind kind;
    uint8_t count;
    uint16_t unused;
    Edge edges[3];
  };
  // Its `kind` may be read of both.
  union Cell {
    Node node;
    EdgeList edges;
  };
  static_assert(sizeof(Cell) == 32);
  struct CacheEntry {
    uint32_t key;  // term << 8 | byte
    Term to;
  };
  // An alternative as head and tail; a term without tail has kEmpty.
  struct Spine {
    Term head, tail;
  };
  // Spines in scratch while they become a term: n from `base` on, in groups of one head. Groups
  // before `at` have become the first n_out spines. n_regular of the heads around them have no
  // rules.
  struct Level {
    uint32_t base, n, at, n_out, n_regular;
  };
  // A decision that was put off: its number is that of the states that it is done with.
  struct PutOff {
    Term start;
    uint16_t visit;
    uint32_t n_way;  // states on the way to where it was
  };
  static constexpr uint32_t kLevelWords = sizeof(Level) / sizeof(uint32_t);
  static constexpr uint32_t kFirstBuckets = 2048;
  static constexpr uint32_t kMaxCells = 1u << 24;  // a term and a byte fit a CacheEntry's key
  static constexpr uint32_t kMaxLooks = 64;        // terms that IsWithin() looks at

  Terms() = default;

  // terms_store.cc: cells, words, scratch.
  Node& node(Term t) { return cells_end_[-1 - static_cast<ptrdiff_t>(t)].node; }
  const Node& node(Term t) const { return cells_end_[-1 - static_cast<ptrdiff_t>(t)].node; }
  EdgeList& edge_list(uint32_t cell) { return cells_end_[-1 - static_cast<ptrdiff_t>(cell)].edges; }
  const ByteSet& set(Term bytes) const {
    return *reinterpret_cast<const ByteSet*>(words_ + node(bytes).a);
  }
  // args() are those of kEither and kBoth.
  Span<const Term> args(const Node& n) const { return {words_ + n.a, n.b}; }
  CustomArgs custom_args(const Node& n) const {
    return {{words_ + n.a, n.b & 0xFFFF}, {words_ + n.a + (n.b & 0xFFFF), n.b >> 16}};
  }
  static uint32_t PayloadWords(const Node& n);
  void Spend(uint64_t units) { work_left_ -= units < work_left_ ? units : work_left_; }
  uint32_t NewCell();
  void ClearTables();
  void AddToBucket(Term t);
  void GrowTables();
  uint32_t NewWords(uint32_t count, Term owner);
  Term Intern(Kind kind, uint32_t a, uint32_t b, uint32_t c, Span<const uint32_t> payload);
  uint8_t FlagsOf(const Node& n) const;

  // terms.cc
  Term ConcatNode(Term a, Term b);
  Term FoldConcat(uint32_t base, Term last);
  Term PushFrames(Term a, Term b);

  // either.cc. EitherOfScratch() takes the alternatives from scratch_[base] on.
  void PushAlternatives(Term t);
  static Term* SortTerms(Term* first, Term* last);
  Term EitherOfScratch(uint32_t base);
  Level SplitAlternatives(uint32_t base, uint32_t n_regular);
  bool EnterSharedHead(Level* level);
  Term JoinSpines(const Level& level);
  uint32_t MergeBytes(Spine* spines, uint32_t n);
  uint32_t MergeRepeats(Spine* spines, uint32_t n);
  uint32_t DropWithin(Spine* spines, uint32_t n);
  bool IsWithin(Term t, Term repeated, uint32_t* looks_left) const;

  // derive.cc
  uint32_t CacheSlot(uint32_t key) const { return (key * 0x9E3779B1u >> 8) & cache_mask_; }
  Term DeriveUncached(Term t, uint8_t byte);
  Term DeriveAt(Cursor* cursor, uint8_t byte);
  const ByteSet& FirstBytes(Term t, uint32_t depth);
  ByteSet FindFirstBytes(Term t, uint32_t depth);
  Term DeriveInto(Term t, uint8_t byte, ByteSet* same, uint32_t depth);
  Term DeriveUnchecked(Term t, uint8_t byte, ByteSet* same, uint32_t depth);
  Term ComputeDerivative(Term t, uint8_t byte, ByteSet* same, uint32_t depth);
  void PushFollowedBy(Term first, Term rest);
  Term Expanded(Term custom);
  const ByteSet* EdgeBytes(Term t, uint8_t byte);
  bool FindEdge(Term t, uint8_t byte, ByteSet* same, Term* to);
  void AddEdge(Term t, Term bytes, Term to);

  // decide.cc. BothOfScratch() takes the operands from scratch_[base] on.
  void PushOperands(Term t);
  Term BothOfScratch(uint32_t base);
  Term ComplementNode(Term a);
  bool IsDecidable(Term t) const { return node(t).kind == kBoth || node(t).kind == kComplement; }
  bool HasString(Term t, uint32_t depth);
  bool FindString(Term t, uint32_t depth);
  PutOff TakePutOff(Term start);
  bool EndsWithAny(Term t, Term repeated) const;
  bool HasRoom(Term both);
  uint64_t ShortestBytes(Term t, uint32_t* looks_left) const;
  uint32_t LikelyByte(Term t, uint32_t depth);

  // collect.cc
  void Mark(Term t, Term* to_visit);
  void MarkParts(Term t, Term* to_visit);
  void SlideWords();
  void Sweep();

  // resolve.cc
  void SpreadFlags();
  bool IsNestedTooDeep();
  uint32_t DepthOf(const Node& n) const;
  StringView RuleName(const Node& n) const;

  uint64_t block_bytes_ = 0;
  uint32_t* buckets_ = nullptr;
  uint32_t bucket_mask_ = 0, max_bucket_mask_ = 0;
  CacheEntry* cache_ = nullptr;
  uint32_t cache_mask_ = 0, max_cache_mask_ = 0;
  uint32_t* scratch_ = nullptr;
  uint32_t scratch_size_ = 0;
  uint32_t scratch_used_ = 0;
  uint32_t scratch_peak_ = 0;
  // Words grow up, cells grow down; the block is full when they meet.
  uint32_t* words_ = nullptr;
  uint32_t n_words_ = 0;
  Cell* cells_end_ = nullptr;
  uint32_t n_cells_ = 0;
  uint32_t free_cell_ = 0;
  uint32_t n_free_ = 0;
  uint32_t n_nodes_ = 0;
  uint32_t n_collections_ = 0;
  const CustomOps* ops_[kMaxOps] = {};
  uint32_t n_ops_ = 0;
  Term any_bytes_ = kNothing;
  Term no_bytes_ = kNothing;  // the set without a byte: FirstBytes() of kEmpty
  uint16_t visit_ = 0;
  static constexpr uint32_t kPutOffs = 4;
  PutOff put_off_[kPutOffs] = {};
  uint32_t next_put_off_ = 0;
  uint64_t work_left_ = kAnyWork;
  uint32_t depth_ = 0;            // of the custom term that is being derived
  Term looping_rule_ = kNothing;  // FirstBytes() came back to it
  TermFailure failure_ = TermFailure::kNone;
  const std::atomic<uint32_t>* cancel_ = nullptr;
};

}  // namespace arn
