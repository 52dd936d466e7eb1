// Sequences: the tokens, KV pages, samplers and logits of a session's sequences. Runs nothing.
#pragma once

#include <cstdint>

#include "platform/base/span.h"
#include "runtime/cache/kv_cache.h"
#include "runtime/model/image_place.h"
#include "runtime/sampling/sampler.h"
#include "runtime/session/core.h"
#include "runtime/session/logits_state.h"

namespace arn {

// Per-sequence state besides pages and tokens.
struct Sequence {
  Sampler sampler;
  // Tokens that context shifts have dropped, and the leading ones that they kept.
  uint32_t n_dropped = 0;
  uint32_t n_pinned = 0;
  // Sampler's state before the last choice, to undo a choice whose token did not run.
  SamplerState state_before;
  // Number of tokens at the end that were chosen rather than prefilled.
  uint32_t n_generated = 0;
  // Number of tokens at the end that are not in the cache: a rewind returned to an earlier snapshot
  // of the recurrent states. The next run takes them along.
  uint32_t n_pending = 0;
  // Used while all sequences are recomputed: the sequence's token count, and the prefix it shares
  // with an earlier sequence.
  uint32_t length = 0;
  uint32_t shared = 0;
  uint32_t shared_with = 0;
  uint32_t n_adapters = 0;  // that it uses
  // Argmax of its logits in host memory, if it is known: see Sequences::AddLogits().
  int32_t best_id = LogitsState::kNoToken;
};

class Sequences {
 public:
  explicit Sequences(SessionCore* core) : core_(*core) {}
  Sequences(const Sequences&) = delete;
  Sequences& operator=(const Sequences&) = delete;

  // Makes all sequences of the plan, empty and greedy. Their samplers use `ops`.
  void Init(const LogitsOps* ops);

  uint32_t size() const { return static_cast<uint32_t>(all_.size()); }
  Sequence& At(uint32_t sequence) { return all_[sequence]; }
  const Sequence& At(uint32_t sequence) const { return all_[sequence]; }
  KvCache& cache() { return cache_; }
  const KvCache& cache() const { return cache_; }
  LogitsState& logits() { return logits_; }
  const LogitsState& logits() const { return logits_; }

  // Number of tokens of a sequence: those in the cache, and the pending ones.
  uint32_t Length(uint32_t sequence) const {
    return cache_.length(sequence) + all_[sequence].n_pending;
  }
  // The sequence that calls without one act on, and its number of tokens.
  uint32_t selected() const { return selected_; }
  uint32_t length() const { return Length(selected_); }
  // REQUIRES: sequence < size().
  void Select(uint32_t sequence) { selected_ = sequence; }

  // Returns the buffer of a sequence's token ids: [context_tokens].
  int32_t* History(uint32_t sequence) const {
    return core_.memory.As<int32_t>(core_.plan.history) +
           uint64_t{sequence} * core_.plan.options.context_tokens;
  }
  // Returns the token ids of a sequence, valid until it changes. Those below 0 are embeddings
  // (SessionPart).
  Span<const int32_t> Ids(uint32_t sequence) const { return {History(sequence), Length(sequence)}; }
  // Returns them with the model's image token in place of embeddings, valid until the next call.
  Span<const int32_t> PlainIds(uint32_t sequence) const;
  // Returns the rows that ids below 0 stand for: f32 [embedding_rows,
  // VectorFloats].
  Span<const float> Embeddings() const;
  // kBadToken, or kBadArgument for more or fewer rows than places. A place is an id below 0, or the
  // model's image token; rows take them in order.
  Status CheckMixed(Span<const int32_t> ids, Span<const float> rows) const;
  // With M-RoPE: returns the positions of the rows of a run (RunArgs::axis_positions), valid until
  // the next call; empty if no sequence has an image. parts: of each of the run's sequences.
  Span<const uint32_t> AxisPositions(const RunArgs& args, Span<const SessionPart> parts) const;
  // True if tokens of a sequence turn by other positions than their place in it: after images,
  // where the RoPE has axes.
  bool HasAxisPositions(uint32_t sequence) const;
  // Returns how many positions later tokens move if n tokens from `first` on are taken out.
  uint32_t PositionsOf(uint32_t sequence, uint32_t first, uint32_t n) const;
  // Copies the rows of ids from n_common on: before it they are those that the selected sequence
  // begins with, or began with. *out: the ids with those of the rows. Rows of the selected sequence
  // behind its first n_kept tokens are lost. kContextFull: embedding_rows. REQUIRES: CheckMixed.
  Status TakeEmbeddings(Span<const int32_t> ids, Span<const float> rows, size_t n_common,
                        size_t n_kept, Span<const int32_t>* out);
  // Marks the rows that a sequence holds, until they change. Returns the number of rows up to the
  // last of them.
  uint32_t MarkEmbeddings() { return MarkEmbeddings(Length(selected_)); }
  bool IsMarked(uint32_t row) const;
  // Returns the place of a row's token in its image. REQUIRES: M-RoPE.
  const ImagePlace& PlaceOf(uint32_t row) const;
  // Replaces all rows by saved ones [n, EmbeddingFloats]. REQUIRES: no more than embedding_rows.
  void RestoreEmbeddings(Span<const std::byte> rows);
  // Returns `position`, or where the image begins that ends there in either the selected sequence
  // or ids and not in both, if tokens of images attend to each other in both directions: those
  // before the end would have other values.
  uint32_t WithoutCutImage(uint32_t position, Span<const int32_t> ids) const;
  // Makes *out a mask in which the tokens of an image attend to all of it. Null: there is no image,
  // or they do not.
  const RowMask* SeeImagesBothWays(Span<const int32_t> tokens, uint32_t first_position,
                                   RowMask* out) const;
  // Returns how many leading ids, with their rows, the selected sequence begins with.
  size_t CommonTokens(Span<const int32_t> ids, Span<const float> rows) const;

  // Notes that a sequence's logits exist. best: their argmax, if it is known.
  void AddLogits(uint32_t sequence, int32_t best = LogitsState::kNoToken) {
    logits_.Add(sequence);
    At(sequence).best_id = best;
  }
  // Returns the argmax of a sequence's logits if it came with them, or instead of them; else
  // LogitsState::kNoToken.
  int32_t BestOf(uint32_t sequence) const {
    return logits_.MustRead() ? logits_.best_id() : At(sequence).best_id;
  }
  // Returns the host-memory logits of a sequence: its buffer, even if not filled yet.
  float* LogitsOf(uint32_t sequence) const;

  bool IsFull(uint32_t sequence) const { return Length(sequence) == cache_.capacity(); }
  // True if the next token is the sequence's last: the one after a full context, which is chosen
  // but does not run.
  bool IsAtLast(uint32_t sequence) const {
    return IsFull(sequence) && core_.plan.options.overflow != Overflow::kShift;
  }
  // True if that last token has been chosen.
  bool IsAtEnd(uint32_t sequence) const { return IsAtLast(sequence) && !logits_.Has(sequence); }
  // True if some layers keep a recurrent state instead of keys and values.
  bool HasState() const;
  bool OthersAreEmpty() const;
  // Returns the first position that Rewind() of the selected sequence allows.
  uint32_t FirstRewindPosition() const;
  // Returns the bytes of all KV pages in use.
  uint64_t KvUsedBytes() const;

  // Each returns kOk, or a failure that the core's diag explains.
  // kBadToken unless all ids from `first` on are in the vocabulary.
  Status CheckIds(Span<const int32_t> ids, size_t first = 0) const;
  // kBadArgument unless all sequences exist and are distinct.
  Status CheckSequences(Span<const uint32_t> sequences) const;
  // kBadState if the model needs encoder output and the sequence has none.
  Status CheckEncoderOutput(uint32_t sequence) const;
  // As above; kContextFull if n more tokens never fit, even after dropping old ones.
  Status CheckRoom(uint32_t sequence, size_t n_tokens) const;
  // Always kContextFull: says what is full.
  Status ContextFullError(uint32_t sequence) const;

  // Adapters that a sequence uses, or while beams run, the sequence they come from.
  Span<const ActiveAdapter> AdaptersOf(uint32_t sequence) const;
  // kBadArgument for an index or scale out of range.
  Status CheckAdapters(Span<const uint32_t> adapters, const float* scales) const;
  // Makes the selected sequence use these of the plan's adapters; scales: null: 1. kBadArgument for
  // an index or scale out of range, kBadState unless the sequence is empty.
  Status SetAdapters(Span<const uint32_t> adapters, const float* scales);
  // Lets all sequences use the adapters of the selected one for its lifetime.
  class SharedAdapters {
   public:
    explicit SharedAdapters(Sequences* sequences) : sequences_(*sequences) {
      sequences_.shares_adapters_ = true;
      sequences_.adapters_of_ = sequences_.selected_;
    }
    ~SharedAdapters() { sequences_.shares_adapters_ = false; }
    SharedAdapters(const SharedAdapters&) = delete;
    SharedAdapters& operator=(const SharedAdapters&) = delete;

   private:
    Sequences& sequences_;
  };

  // Empties sequences [first, last), with their encoder output.
  void Clear(uint32_t first, uint32_t last);
  void ClearAll() { Clear(0, size()); }
  void ClearSelected() { Clear(selected_, selected_ + 1); }
  // Makes `to` a copy of `from`, with other random numbers. kBadState unless `to` is empty.
  Status Fork(uint32_t from, uint32_t to);
  // Drops the selected sequence's tokens from `position` on, and with them its logits. Tokens
  // before it are pending if no snapshot of the recurrent states is at `position`. kBadState if the
  // pages that `position` sees are gone, or the states.
  Status Rewind(uint32_t position);
  // Returns where a rewind to `position` continues from: the tokens in between must run again.
  uint32_t ResumePosition(uint32_t position) const;
  // Moves the last tokens of a sequence from the cache to the pending ones, so that the last token
  // runs again. REQUIRES: the sequence is not empty, and FirstRewindPosition() is before its end.
  void ReturnBeforeLast(uint32_t sequence);
  // Keeps a snapshot of the selected sequence's states until others need its slot. REQUIRES: no
  // token is pending.
  Status Mark();
  // Returns the limits of the sequences' sampling options.
  SamplingLimits sampling_limits() const { return core_.plan.sampling_limits(); }
  // Returns memory for the lists of one sequence's options: sequence size() is scratch.
  uint32_t* SamplingLists(uint32_t sequence) const;
  // Reorders the sequences by their parents, with their ids. None has logits afterwards. Sampling
  // options stay with the sequence index.
  Status Reorder(Span<const uint32_t> parents);
  // Appends the ids of a part that has run, and been committed to the cache, to the history.
  void Remember(const SessionPart& part);

 private:
  class AxisCursor;

  // As above, for the first n_kept tokens of the selected sequence.
  uint32_t MarkEmbeddings(size_t n_kept);
  // True if an id of a caller stands for a row.
  bool IsRow(int32_t id) const;
  // True if the embedding of a history's id has this place in its image.
  bool HasPlace(int32_t id, const float* from) const;
  ActiveAdapter* AdapterSlots(uint32_t sequence) const;
  void CopyAdapters(uint32_t from, uint32_t to);

  SessionCore& core_;
  Span<Sequence> all_;
  uint32_t selected_ = 0;
  bool shares_adapters_ = false;  // SharedAdapters
  uint32_t adapters_of_ = 0;
  LogitsState logits_;
  KvCache cache_;
};

}  // namespace arn
