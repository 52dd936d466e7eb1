// Prefiller: runs prompts in chunks.
#pragma once

#include <cstdint>

#include "platform/base/span.h"
#include "platform/base/status.h"
#include "runtime/session/core.h"
#include "runtime/session/executor.h"
#include "runtime/session/runner.h"
#include "runtime/session/sequences.h"

namespace arn {

class Prefiller {
 public:
  static constexpr size_t kNoMark = SIZE_MAX;

  // All arguments must outlive the part.
  Prefiller(SessionCore* core, const Executor* executor, Sequences* sequences, Runner* runner)
      : core_(*core), executor_(*executor), sequences_(*sequences), runner_(*runner) {}

  // Appends the tokens to the selected sequence, with logits of the last one. kContextFull if they
  // do not fit; kCancelled keeps the chunks that ran. Marks the recurrent states after the first
  // `marked` tokens, if there are that many.
  Status Prefill(Span<const int32_t> ids, size_t marked = kNoMark);
  // As above for ids of Sequences::TakeEmbeddings.
  Status PrefillMixed(Span<const int32_t> ids, size_t marked = kNoMark);
  // As above for the first chunk only, with logits if it is the last. *out_tokens: how many ran.
  Status PrefillFirstChunk(Span<const int32_t> ids, size_t marked, size_t* out_tokens);
  // As above for one chunk, with the logits of all of its tokens: f32 [ids, vocab], valid until the
  // next run. kBadState unless the session has all_logits.
  Status PrefillLogits(Span<const int32_t> ids, const float** out_logits);
  // One chunk whose tokens have the positions and see what the mask says. Logits of the last token,
  // or of all as above unless out_logits is null. kUnsupported for recurrent states, for positions
  // beside relative biases, without a cache, and for a backend without masks; a mask that hides a
  // token from itself or has a position outside the context is kBadArgument. Nothing changes then.
  // Tokens that run again later (after a rewind among them) run without the mask.
  Status PrefillMasked(Span<const int32_t> ids, const RowMask& mask, const float** out_logits);

  // Called by Prefill after each chunk with the tokens that ran so far, and all of them; another
  // result than 0 ends the call with kCancelled before the next chunk. Null: none.
  using OnChunk = int32_t (*)(void* user, uint64_t done, uint64_t total);
  void SetOnChunk(OnChunk on_chunk, void* user) {
    on_chunk_ = on_chunk;
    on_chunk_user_ = user;
  }

 private:
  Status CheckMask(size_t n_ids, const RowMask& mask, bool wants_logits) const;
  // Refuses a prompt before any of it runs.
  Status CheckPrompt(Span<const int32_t> ids);
  // Runs the chunk of the prompt `ids` that begins at *done, and moves that on.
  Status RunChunk(Span<const int32_t> ids, size_t marked, size_t* done);
  // Runs the part in one run. out_logits: as PrefillLogits; null: logits of the last token only.
  Status PrefillChunk(const SessionPart& part, const float** out_logits);
  // Number of prefill tokens for the next run, at least one. Shifts when the context is full.
  Status NextChunk(uint32_t sequence, size_t left, uint32_t most, size_t* out_tokens);
  // Ends a chunk of the first *n ids before an image that it would cut. kBadArgument: an image is
  // longer than a chunk.
  Status KeepImagesWhole(Span<const int32_t> ids, size_t* n) const;
  // Calls on_chunk_. Returns true if it ends the call.
  bool IsEnded(uint64_t done, uint64_t total);
  KvCache& cache() { return sequences_.cache(); }
  LogitsState& logits() { return sequences_.logits(); }

  SessionCore& core_;
  const Executor& executor_;
  Sequences& sequences_;
  Runner& runner_;
  OnChunk on_chunk_ = nullptr;
  void* on_chunk_user_ = nullptr;
};

}  // namespace arn
