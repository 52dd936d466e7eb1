// TokenConstraint: a compiled constraint as a rule about a model's tokens. Lives in a block of the
// caller's and allocates nothing.
//
// The constrained text is what the tokens append after the prompt; its first token is decoded as
// the first of a text (docs/constraints.md). End tokens are allowed exactly where the text may end.
// Special tokens, but those that a format of tool calls is made of, and ids without text are never
// allowed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/base/arena.h"
#include "platform/base/diag.h"
#include "platform/base/span.h"
#include "platform/base/status.h"
#include "runtime/constrain/constraint.h"
#include "runtime/constrain/time_histogram.h"
#include "runtime/constrain/token_bytes.h"
#include "runtime/text/tokenizer.h"

namespace arn {

// Text that is tokenised at a time because it must follow.
inline constexpr size_t kMaxForcedBytes = 192;

// A model's tokens as constraints see them. All must outlive the constraints.
struct TokenSet {
  const Tokenizer* tokenizer = nullptr;
  TokenBytes bytes;
  Span<const uint32_t> end_ids;
  uint32_t vocab = 0;  // ids from here on are never allowed
  // Scratch of the tokenizer for kMaxForcedBytes, for forced tokens; empty: there are none.
  Span<std::byte> encode_scratch;
};

struct TokenConstraintOptions {
  ConstraintOptions constraint;
  // Chooses forced text token by token too, as any other text.
  bool chooses_forced = false;
};

struct ConstraintCounts {
  uint64_t steps = 0;              // tokens accepted, end tokens included
  uint64_t candidates_tested = 0;  // tokens looked up one by one
  uint64_t masks_filled = 0;       // walks over all tokens
  uint64_t forced_tokens = 0;      // accepted without being chosen
  uint64_t compile_ns = 0;
};

class TokenConstraint {
 public:
  // Most tokens that Forced() returns.
  static constexpr uint32_t kMaxForcedTokens = 32;

  // Compiles in `block`, aligned to 64 bytes. Makes n_states states, all at the start of the text.
  // On failure *out is null and the diag names rule, offset or JSON pointer, or the bytes missing.
  static Status Compile(const TokenConstraintOptions& options, const TokenSet& tokens,
                        uint32_t n_states, Span<std::byte> block, TokenConstraint** out,
                        Diag* diag);

  // Which tokens end the text besides the model's own; `are_allowed` false: none does.
  void SetEnds(Span<const int32_t> extra, bool are_allowed) {
    extra_ends_ = extra;
    ends_allowed_ = are_allowed;
  }

  // REQUIRES: states are below n_states, here and below.
  void Reset(uint32_t state);
  void Copy(uint32_t from, uint32_t to);
  // Number of tokens accepted since the last reset.
  uint32_t n_tokens(uint32_t state) const { return states_[state].n_tokens; }
  bool IsAtEnd(uint32_t state) const { return states_[state].has_ended; }

  // True if the token may come next. *n_bytes (may be null): how many of its bytes may.
  bool Allows(uint32_t state, int32_t id, size_t* n_bytes = nullptr);
  // Moves past a token. Returns false, and stays, if it is not allowed.
  bool Accept(uint32_t state, int32_t id, size_t* n_bytes = nullptr);
  // True if the text may end here; if nothing but the end may follow.
  bool CanEnd(uint32_t state) { return constraint_->CanEnd(state); }
  bool MustEnd(uint32_t state) { return states_[state].has_ended || constraint_->MustEnd(state); }
  // The next tokens that are certain: the text that must follow, tokenised as a text of its own, as
  // far as no token of the vocabulary could join it with what follows. Empty: the token must be
  // chosen. Valid until the next call.
  Span<const int32_t> Forced(uint32_t state);
  // Looks at what may follow `id`, in the state `scratch`; changes nothing else, no counts either.
  // guesses[0, n): tokens that may come after it. Returns how many of them are allowed, one after
  // the other; if they do not begin with the tokens that are certain after `id`, these replace
  // them. *n_certain: how many of the result are certain.
  uint32_t LookAhead(uint32_t state, uint32_t scratch, int32_t id, Span<int32_t> guesses,
                     uint32_t n, uint32_t* n_certain);
  // The bits of all tokens that may come next: u32 [ceil(vocab / 32)], valid until the next call.
  Span<const uint32_t> Mask(uint32_t state);
  // True if Mask(state) needs no walk.
  bool HasMask(uint32_t state) const {
    return FindMask(state, states_[state].n_tokens == 0) != nullptr;
  }
  // Null, or why a call since ClearFailure() has failed: the block is too small, or the text nests
  // too deep. What it said is not allowed may be.
  const char* Failure() const {
    return constraint_->failed() ? constraint_->FailureText() : nullptr;
  }
  void ClearFailure() { constraint_->ClearFailure(); }
  // Limits the work until the next call, in Terms::SetWork()'s units; kAnyWork: not. A call that
  // needs more fails, IsPutOff() is true then, and gets further when it is repeated.
  static constexpr uint64_t kAnyWork = Terms::kAnyWork;
  void SetWork(uint64_t units) { constraint_->SetWork(units); }
  bool IsPutOff() const { return constraint_->is_put_off(); }
  // True if what was worked out for the state's next token has been released twice: the work is to
  // be done at once.
  bool MustFinish(uint32_t state) const {
    return constraint_->n_flushes() - states_[state].n_flushes >= 2;
  }

  bool IsEnd(int32_t id) const;
  // Returns what it was compiled from; the texts are in the block.
  const TokenConstraintOptions& options() const { return options_; }
  const ConstraintCounts& counts() const { return counts_; }
  uint64_t used_bytes() const { return own_bytes_ + constraint_->used_bytes(); }
  const TimeHistogram& times() const { return times_; }
  void AddTime(uint64_t ns) { times_.Add(ns); }
  void ResetCounts();

 private:
  static constexpr uint32_t kMinMasks = 2, kMaxMasks = 32;

  struct State {
    uint32_t n_tokens;
    uint32_t n_flushes;  // of the constraint, when the last token was accepted
    bool has_ended;
    uint8_t n_forced;  // tokens left in `forced`, the next one first
    uint8_t next_forced;
    int32_t forced[kMaxForcedTokens];
  };
  struct CachedMask {
    uint64_t key;
    uint64_t cost_ns;   // of filling it; 0: never filled
    uint64_t priority;  // the least is replaced
    bool is_start;
  };

  TokenConstraint() = default;
  Status Init(const TokenConstraintOptions& options, uint32_t n_states, uint64_t block_bytes,
              Arena* arena, Diag* diag);
  bool HasText(int32_t id) const {
    return id >= 0 && static_cast<uint32_t>(id) < tokens_.vocab &&
           (has_text_[static_cast<uint32_t>(id) / 32] >> (id % 32) & 1) != 0;
  }
  const ByteTree& TreeOf(uint32_t state) const {
    return states_[state].n_tokens == 0 ? tokens_.bytes.start_tree() : tokens_.bytes.tree();
  }
  void FindTexts();
  // The bytes that the token appends, or those that stand for a special one, in piece_.
  Span<const uint8_t> BytesOf(uint32_t state, int32_t id);
  const CachedMask* FindMask(uint32_t state, bool is_start) const;
  CachedMask* MaskOf(uint32_t state, bool is_start);
  Span<uint32_t> MaskBits(const CachedMask* mask) const;
  void FillMask(uint32_t state, bool is_start, Span<uint32_t> bits);
  void FillCountedMask(uint32_t state, Span<const uint32_t> without_counts, Span<uint32_t> bits);
  void FindForced(uint32_t state);
  Status FindSpecials(const ConstraintOptions& options, Arena* arena);
  bool IsInFormat(int32_t id) const;
  bool AllowsBytes(uint32_t state, int32_t id, size_t* n_bytes);
  bool AllowsEnd(uint32_t state) { return ends_allowed_ && CanEnd(state); }

  TokenSet tokens_;
  TokenConstraintOptions options_;
  Constraint* constraint_ = nullptr;  // with one more state, for looking ahead
  Span<State> states_;
  uint32_t n_words_ = 0;        // of a mask
  Span<uint32_t> has_text_;     // bits: in the byte trees
  Span<uint32_t> mask_bits_;    // [n_masks_, n_words_]
  Span<uint32_t> result_bits_;  // [n_words_]
  CachedMask masks_[kMaxMasks] = {};
  uint32_t n_masks_ = 0;  // as many as take a quarter of the block
  // GreedyDual (Young 1994): a mask's priority is its cost plus that of the last one replaced.
  uint64_t mask_age_ = 0;
  Span<char> piece_;
  Span<char> forced_bytes_;   // [kMaxForcedBytes]
  Span<int32_t> forced_ids_;  // [kMaxForcedBytes]
  bool chooses_forced_ = false;
  Span<SpecialToken> specials_;  // of the format of tool calls
  Span<const int32_t> extra_ends_;
  bool ends_allowed_ = true;
  uint64_t own_bytes_ = 0;
  ConstraintCounts counts_;
  TimeHistogram times_;
};

}  // namespace arn
