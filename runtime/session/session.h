// Session: generates tokens for one or more sequences. Lives inside its own memory block and
// allocates nothing after Create(). Calls without a sequence argument act on the selected sequence.
//
// A facade: each call goes to the part that does it, and each part's header says what its calls
// require and return (docs/architecture.md lists the parts). No part knows the session.
#pragma once

#include <cstdint>

#include "platform/base/diag.h"
#include "runtime/memory/session_plan.h"
#include "runtime/session/beam_driver.h"
#include "runtime/session/chooser.h"
#include "runtime/session/constrainer.h"
#include "runtime/session/core.h"
#include "runtime/session/decoder.h"
#include "runtime/session/encoder.h"
#include "runtime/session/executor.h"
#include "runtime/session/generator.h"
#include "runtime/session/kv_reader.h"
#include "runtime/session/kv_writer.h"
#include "runtime/session/prefiller.h"
#include "runtime/session/recompute.h"
#include "runtime/session/runner.h"
#include "runtime/session/saving.h"
#include "runtime/session/scheduler.h"
#include "runtime/session/self_test.h"
#include "runtime/session/sequences.h"
#include "runtime/session/speculator.h"
#include "runtime/session/throttle.h"

namespace arn {

class Session {
 public:
  // Resources that a session releases at its end.
  struct Owned {
    Span<std::byte> pages;  // that its block lies in; empty: they are the caller's
    int kv_file = -1;       // of KvPager::MakeFile
  };
  static SessionObjects Objects() {
    SessionObjects objects;
    objects.session_bytes = sizeof(Session);
    objects.sequence_bytes = sizeof(Sequence);
    objects.constraint_use_bytes = sizeof(ConstraintUse);
    objects.draft_bytes = sizeof(DraftModel);
    objects.mtp_bytes = Max(sizeof(MtpDrafter), sizeof(AssistantDrafter));
    objects.guesses_bytes = sizeof(SequenceGuesses);
    objects.lease_bytes = sizeof(SequenceLease);
    objects.reply_text_bytes = sizeof(ReplyText);
    return objects;
  }
  // Builds a session in `block`. REQUIRES: block has plan.TotalBytes() bytes, aligned to
  // kRegionAlign. Destroy() releases the `owned` pages, if any. On failure the block is unused and
  // the caller still owns `owned`. Loads the fallback backend too if the plan has one; the session
  // then starts on the fallback when the device is unavailable.
  static Status Create(const Model& model, const SessionPlan& plan, Span<std::byte> block,
                       const Owned& owned, Session** out, Diag* diag);
  // Accepts null.
  static void Destroy(Session* session);

  // Encoder input, if the model has an encoder. features: f32 [n_frames, width].
  Status EncodeIds(Span<const int32_t> ids) { return encoder_.EncodeIds(ids); }
  Status EncodeFeatures(Span<const float> features, uint32_t n_frames, uint32_t width) {
    return encoder_.EncodeFeatures(features, n_frames, width);
  }

  // Prompts, and the logits of the last token: f32 [vocab], valid until the next call that changes
  // the session.
  Status Prefill(Span<const int32_t> ids) { return prefiller_.Prefill(ids); }
  // Prompts with rows in place of some tokens (Sequences::TakeEmbeddings).
  Status PrefillEmbeddings(Span<const int32_t> ids, Span<const float> embeddings);
  Status PrefillLogits(Span<const int32_t> ids, const float** out_logits) {
    return prefiller_.PrefillLogits(ids, out_logits);
  }
  Status PrefillMasked(Span<const int32_t> ids, const RowMask& mask, const float** out_logits) {
    return prefiller_.PrefillMasked(ids, mask, out_logits);
  }
  void SetOnChunk(Prefiller::OnChunk on_chunk, void* user) {
    prefiller_.SetOnChunk(on_chunk, user);
  }
  Status Logits(const float** out_logits);

  // Tokens, one at a time.
  Status SetSampling(const SamplingOptions& options);
  Status SetAdapters(Span<const uint32_t> adapters, const float* scales) {
    return sequences_.SetAdapters(adapters, scales);
  }
  // Drops the constraint if `options` is null.
  Status SetConstraint(const TokenConstraintOptions* options, uint32_t first);
  // Samples a token without running it.
  Status Sample(int32_t* out_id);
  Status Decode(int32_t* out_id) { return decoder_.Decode(out_id); }
  Status StepBatch(Span<const uint32_t> sequences, Span<const int32_t> ids) {
    return decoder_.StepBatch(sequences, ids);
  }
  Status DecodeBatch(Span<const uint32_t> sequences, Span<int32_t> out_ids) {
    return decoder_.DecodeBatch(sequences, out_ids);
  }

  // Tokens, many at a time.
  Status Generate(const GenerateOptions& options, GenerateResult* out) {
    return generator_.Generate(options, out);
  }
  Status SearchBeams(const BeamRequest& request, BeamResult* out) {
    return beams_.Search(request, out);
  }
  Status Beam(uint32_t index, Span<int32_t> out_ids, size_t* out_count, float* out_score) const {
    return beams_.Read(index, out_ids, out_count, out_score);
  }

  // Whole sequences.
  void Reset() { sequences_.ClearSelected(); }
  Status Select(uint32_t sequence);
  Status Fork(uint32_t from, uint32_t to);
  Status Rewind(uint32_t position) { return sequences_.Rewind(position); }
  Status Mark();
  Status ReusePrefix(Span<const int32_t> ids, Span<const float> embeddings, uint32_t* out_kept) {
    return arn::ReusePrefix(Saving(), ids, embeddings, out_kept);
  }
  Status UsePrefix() { return arn::UsePrefix(Saving()); }
  Status SaveBytes(uint64_t* out_bytes) { return arn::SaveBytes(Saving(), out_bytes); }
  Status Save(const StateSink& sink) { return arn::Save(Saving(), sink); }
  Status Restore(const StateSource& source) { return arn::Restore(Saving(), source); }

  // KV pages. Trim: gives the memory of unused ones back to the system; kUnsupported if the memory
  // is the caller's or a device's.
  Status Trim(uint64_t* out_bytes);
  Status FindKvLayer(uint32_t layer, KvLayer* out) const {
    return kv_reader_.FindLayer(layer, out);
  }
  Status ReadKv(uint32_t layer, uint32_t first, uint32_t n, float* keys, float* values) {
    return kv_reader_.Read(layer, first, n, keys, values);
  }
  Status WriteKv(Span<const int32_t> ids, const float* const* keys, const float* const* values) {
    return kv_writer_.Append(ids, keys, values);
  }

  // Calls `before` ahead of each attention to tokens or encoder rows, on the thread of the call.
  // Null: nobody. kUnsupported: the backend in use keeps its values on a device.
  Status ObserveAttention(decltype(AttentionObserver::before) before, void* user);

  // Ends the call in progress, or the next one; callable from any thread.
  void Cancel() { core_.cancel.store(1, std::memory_order_relaxed); }
  void ClearCancel() { core_.ClearCancel(); }
  // True while a callback runs that a call of this session made.
  bool is_in_callback() const { return core_.is_in_callback; }
  // Marks that a callback of the caller runs, as long as the result lives.
  InCallback BeginCallback() { return InCallback(&core_); }

  // Give read access to the parts, and to their switches. Call the session, not a part, to run
  // tokens.
  const Model& model() const { return core_.model; }
  const SessionPlan& plan() const { return core_.plan; }
  const Memory& memory() const { return core_.memory; }
  const SessionStats& stats() const { return core_.stats; }
  void ResetStats();
  uint64_t create_ns() const { return create_ns_; }
  Diag* diag() { return &core_.diag; }
  const Diag& diag() const { return core_.diag; }
  Executor& executor() { return executor_; }
  const Executor& executor() const { return executor_; }
  const Sequences& sequences() const { return sequences_; }
  const Constrainer& constrainer() const { return constrainer_; }
  const Throttle& throttle() const { return throttle_; }
  // Runs many requests, if the plan has memory for them; closed in a new session.
  Scheduler& scheduler() { return scheduler_; }
  const Scheduler& scheduler() const { return scheduler_; }
  KvFileStats kv_file_stats() const { return runner_.pager().stats(); }

 private:
  Session(const Model& model, const SessionPlan& plan, Span<std::byte> block,
          Span<std::byte> owned);
  SavingView Saving();
  SelfTestView SelfTest();

  SessionCore core_;
  Span<std::byte> owned_;
  uint64_t create_ns_ = 0;
  Throttle throttle_;
  Executor executor_;
  Sequences sequences_;
  Constrainer constrainer_;
  Recompute recompute_;
  Runner runner_;
  Chooser chooser_;
  Encoder encoder_;
  Prefiller prefiller_;
  Decoder decoder_;
  Speculator speculator_;
  Generator generator_;
  BeamDriver beams_;
  KvReader kv_reader_;
  KvWriter kv_writer_;
  Scheduler scheduler_;
};

}  // namespace arn
