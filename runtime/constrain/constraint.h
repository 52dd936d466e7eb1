// Constraint: which bytes may follow, for one or more texts that are being written.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "platform/base/diag.h"
#include "platform/base/span.h"
#include "platform/base/status.h"
#include "runtime/constrain/terms.h"
#include "runtime/constrain/token_bytes.h"
#include "runtime/constrain/tool_calls.h"

namespace arn {

enum class ConstraintKind : uint8_t {
  kJsonSchema = 0,  // a text in JSON that a schema describes
  kRegex = 1,       // a text that a regular expression matches from its beginning to its end
  kGrammar = 2,     // a text of a grammar in GBNF
  kChoices = 3,     // one of several texts, which NUL bytes separate
  kToolCalls = 4,   // a reply that may call tools
};

struct ConstraintOptions {
  ConstraintKind kind = ConstraintKind::kRegex;
  StringView text;              // the schema, expression, grammar or choices; UTF-8
  bool any_order = false;       // kJsonSchema, kToolCalls: properties in any order
  bool any_whitespace = false;  // kJsonSchema: whitespace where JSON permits it, not compact
  bool any_spelling = false;    // kJsonSchema: strings in every way that JSON permits
  ToolCallOptions calls;        // kToolCalls: `text` is the tools
  // Non-zero ends the compilation with kCancelled. Null: it runs to its end.
  const std::atomic<uint32_t>* cancel = nullptr;
};

// A compiled constraint and the states of `n_states` texts. All memory is the caller's block; when
// it is full, what no state needs is released. Where a call says that it ran out of memory, a state
// alone fills the block; the text can then not be continued.
class Constraint {
 public:
  // The smallest block that Compile() accepts; most constraints need more.
  static uint64_t MinBytes(uint32_t n_states);

  // Compiles into `block`, which must outlive the constraint. Every state is at the beginning.
  // Errors name the place: offset, rule, or JSON pointer and keyword. kUnsupported: what cannot be
  // enforced exactly; kOutOfMemory: the block is too small. `text` may go away afterwards.
  // REQUIRES: `block` is 64-byte aligned.
  static Status Compile(const ConstraintOptions& options, uint32_t n_states, Span<std::byte> block,
                        Constraint** out, Diag* diag);

  void Reset(uint32_t state);
  void CopyState(uint32_t from, uint32_t to);

  // Returns true if all bytes are allowed, one after the other. Does not move the state. Sets *n_ok
  // to the number of those allowed unless null.
  bool Accepts(uint32_t state, Span<const uint8_t> bytes, size_t* n_ok = nullptr);
  // Moves the state if all bytes are allowed, else returns false.
  bool Advance(uint32_t state, Span<const uint8_t> bytes);
  // Return true if the text may end here, and if it must.
  bool CanEnd(uint32_t state) const;
  bool MustEnd(uint32_t state);
  // Writes the bytes that are the only continuation, as many as `out` takes; returns their number.
  size_t Forced(uint32_t state, Span<uint8_t> out);
  // Clears `bits`, and sets bit id % 32 of word id / 32 for every id of the tree whose bytes are
  // all allowed. Ids beyond the bits are left out.
  void FillMask(uint32_t state, const ByteTree& tree, Span<uint32_t> bits);
  // The same, where characters lead back to the state; `all`: the bits of all ids of the tree.
  // Returns false for other states; the bits mean nothing then. REQUIRES, here and below: `places`
  // are those of the tree.
  bool FillMaskOfLoop(uint32_t state, const ByteTree& tree, const BytePlaces& places,
                      Span<const uint32_t> all, Span<uint32_t> bits);
  // Where a state is such a one but that it counts characters: sets the state `to` to the one
  // without counts. Returns false for other states.
  bool WithoutCounts(uint32_t from, uint32_t to);
  // The same for such a state; without_counts: the mask of the state that WithoutCounts() makes. Of
  // the tokens of more than *n_sure characters, some that the count forbids are set too. Returns
  // false if the block was too full; the bits mean nothing then.
  bool FillMaskOfCounts(uint32_t state, const ByteTree& tree, const BytePlaces& places,
                        Span<const uint32_t> without_counts, Span<uint32_t> bits, uint32_t* n_sure);

  // Equal keys mean that the same may follow.
  uint64_t StateKey(uint32_t state) const {
    return uint64_t{n_flushes_} << 32 | live_[kFirstState + state];
  }

  // Returns true if a call since Compile() or the last ClearFailure() ran out of memory or nested
  // too deep; its result then was that nothing is allowed. FailureText() says which.
  bool failed() const { return failure_ != TermFailure::kNone; }
  const char* FailureText() const { return TermFailureText(failure_); }
  void ClearFailure() { failure_ = TermFailure::kNone; }
  // Limits the work of the calls that follow (Terms::SetWork()); those that need more fail, and get
  // further when they are repeated. is_put_off(): one did since ClearFailure().
  void SetWork(uint64_t units) { terms_->SetWork(units); }
  bool is_put_off() const { return failure_ == TermFailure::kPutOff; }

  uint32_t n_states() const { return n_states_; }
  uint64_t block_bytes() const { return block_bytes_; }
  uint64_t used_bytes() const { return own_bytes_ + terms_->used_bytes(); }
  uint64_t compiled_bytes() const { return compiled_bytes_; }  // used by Compile()
  uint32_t n_terms() const { return terms_->n_terms(); }
  uint32_t n_flushes() const { return n_flushes_; }

 private:
  static constexpr uint32_t kFirstState = 1;

  Constraint() = default;
  // Both keep what is in live_[0, n_live), where `from` is.
  Term Step(Term from, uint8_t byte, uint32_t n_live);
  ByteSet FirstBytes(Term of, uint32_t n_live);
  bool MakeRoom(uint32_t n_live);
  void ResetCursors();
  Term Walk(uint32_t state, Span<const uint8_t> bytes, size_t* n_ok);
  template <typename Refuse>
  void WalkTree(const ByteTree& tree, uint32_t first, uint32_t end, Refuse refuse);
  struct Loop;
  Loop LoopOf(Term state) const;
  struct Path;
  bool FollowPath(const ByteTree& tree, uint32_t node, Path* path);
  bool FindExits(const Loop& loop, ByteSet* exits, ByteSet* dead);
  bool LoopsByCharacters(const Loop& loop);
  Term AfterCharacters(const Loop& loop, uint32_t n);

  Terms* terms_ = nullptr;
  // The beginning, the states, and then the states on the way through a text or tree.
  Term* live_ = nullptr;
  Terms::Cursor* cursors_ = nullptr;  // of FillMask(), by depth
  uint32_t n_states_ = 0;
  uint32_t n_flushes_ = 0;
  uint64_t block_bytes_ = 0;
  uint64_t own_bytes_ = 0;  // of the block, all but the Terms' part
  uint64_t compiled_bytes_ = 0;
  TermFailure failure_ = TermFailure::kNone;
};

}  // namespace arn
