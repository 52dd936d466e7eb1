// Session: generates tokens for one or more sequences. Lives inside its own memory block and
// allocates nothing after Create(). Calls without a sequence argument act on the selected sequence.
#pragma once

#include <atomic>
#include <cstdint>

#include "platform/base/diag.h"
#include "runtime/cache/kv_cache.h"
#include "runtime/memory/session_plan.h"
#include "runtime/model/model.h"
#include "runtime/sampling/beam_search.h"
#include "runtime/sampling/sampler.h"
#include "runtime/session/device_watch.h"
#include "runtime/session/kv_pager.h"
#include "runtime/session/pacer.h"
#include "runtime/session/profile.h"
#include "runtime/state/state_reader.h"
#include "runtime/state/state_writer.h"

namespace arn {

enum class Finish : uint32_t {
  kNone = 0,
  kEos = 1,
  kStop = 2,
  kLength = 3,
  kContext = 4,
  kCallback = 5,
  kCancelled = 6,
};

struct GenerateOptions {
  uint32_t max_tokens = 0;  // 0: until a stop token or the end of the context
  bool ignore_eos = false;
  Span<const StringView> stops;
  Span<const int32_t> extra_eos_ids;
  // Called for every new token with the text that is ready to show. A non-zero result stops the
  // generation. May be null.
  int32_t (*callback)(void* user, int32_t id, const char* text, size_t text_bytes) = nullptr;
  void* user = nullptr;
};

struct GenerateResult {
  uint32_t n_tokens = 0;
  Finish finish = Finish::kNone;
};

struct BeamRequest {
  BeamOptions options;  // max_tokens 0: as many as fit the context. Its `stop_ids` are ignored.
  bool ignore_eos = false;
  Span<const int32_t> extra_eos_ids;
};

struct BeamResult {
  uint32_t n_sequences = 0;
  uint32_t n_steps = 0;
  uint64_t kv_peak_bytes = 0;
};

struct SessionStats {
  uint64_t prefill_tokens = 0;
  uint64_t prefill_ns = 0;
  uint64_t decode_tokens = 0;
  uint64_t decode_ns = 0;
  // Totals over all runs; each weight counts once per run (StepWork).
  uint64_t weight_bytes_read = 0;
  uint64_t kv_bytes_read = 0;
};

// Per-sequence state besides pages and tokens.
struct Sequence {
  Sampler sampler;
  // True if the logits of the last token exist. A sequence with a full context has none once the
  // token after it has been chosen, because that token does not run.
  bool has_logits = false;
  // Random state before the last choice, to undo a choice whose token did not run.
  uint64_t random_before = 0;
  // Used while all sequences are recomputed: the sequence's token count, and the prefix it shares
  // with an earlier sequence.
  uint32_t length = 0;
  uint32_t shared = 0;
  uint32_t shared_with = 0;
};

struct LoadedBackend {
  const Backend* backend = nullptr;
  void* state = nullptr;
};

// Location of a layer's keys and values in the selected sequence.
struct KvLayer {
  uint32_t group = 0;
  uint32_t group_layer = 0;
  uint32_t kv_layer = 0;        // layer that owns the keys and values: this one or an earlier one
  uint32_t first_position = 0;  // earlier positions have been dropped
};

// Saved state to restore.
struct StateSource {
  Span<const std::byte> bytes;
  // Open file that `bytes` is a mapping of; -1: none. Its pages are mapped instead of copied where
  // possible.
  int fd = -1;
  uint64_t file_offset = 0;  // offset of `bytes` in that file
  bool verify_pages = false;
};

class Session {
 public:
  // What a session gives back at its end.
  struct Owned {
    Span<std::byte> pages;  // that its block lies in; empty: they are the caller's
    int kv_file = -1;       // of KvPager::MakeFile
  };
  static SessionObjects Objects() { return {sizeof(Session), sizeof(Sequence)}; }
  // Builds a session in `block`. REQUIRES: block has plan.TotalBytes() bytes, aligned to
  // kRegionAlign. Destroy() releases the `owned` pages, if any. On failure the block is unused and
  // the caller still owns `owned`. Loads the fallback backend too if the plan has one; the session
  // then starts on the fallback when the device is unavailable.
  static Status Create(const Model& model, const SessionPlan& plan, Span<std::byte> block,
                       const Owned& owned, Session** out, Diag* diag);
  static void Destroy(Session* session);

  // Documented in arenite.h.
  Status EncodeIds(Span<const int32_t> ids);
  // features: f32 [n_frames, width].
  Status EncodeFeatures(Span<const float> features, uint32_t n_frames, uint32_t width);
  Status Prefill(Span<const int32_t> ids);
  Status PrefillLogits(Span<const int32_t> ids, const float** out_logits);
  Status Logits(const float** out_logits);
  Status SetSampling(const SamplingOptions& options);
  Status Sample(int32_t* out_id);
  Status Decode(int32_t* out_id);
  Status Generate(const GenerateOptions& options, GenerateResult* out);
  Status SearchBeams(const BeamRequest& request, BeamResult* out);
  // Returns a sequence found by the last beam search.
  Status Beam(uint32_t index, Span<int32_t> out_ids, size_t* out_count, float* out_score) const;
  void Reset();
  Status ReusePrefix(Span<const int32_t> ids, uint32_t* out_kept);
  Status UsePrefix();
  Status Select(uint32_t sequence);
  Status Fork(uint32_t from, uint32_t to);
  Status Rewind(uint32_t position);
  // Runs one token for each of the given sequences in a single run.
  Status StepBatch(Span<const uint32_t> sequences, Span<const int32_t> ids);
  Status DecodeBatch(Span<const uint32_t> sequences, Span<int32_t> out_ids);
  Status Trim(uint64_t* out_bytes);
  Status FindKvLayer(uint32_t layer, KvLayer* out) const;
  // keys, values: f32 [n_kv_heads, n, head_dim]. Either may be null.
  Status ReadKv(uint32_t layer, uint32_t first, uint32_t n, float* keys, float* values);
  // Writes a state of SaveBytes() bytes to the sink. kUnsupported without a cache. kDeviceLost if
  // the device fails midway; saving again works if the fallback backend took over.
  Status SaveBytes(uint64_t* out_bytes) const;
  Status Save(const StateSink& sink);
  // Replaces all sequences by those of a saved state. On failure nothing changes, unless the
  // backend itself fails (a device): then all sequences are empty.
  Status Restore(const StateSource& source);
  // Calls `on_matmul` before every matmul with the tensor's name (MatmulObserver). Null removes it.
  using OnMatmul = void (*)(void* user, const char* tensor, const float* rows, size_t n_rows,
                            size_t width, const float* sums, size_t out_width);
  void ObserveMatmuls(OnMatmul on_matmul, void* user);
  void Cancel() { cancel_.store(1, std::memory_order_relaxed); }
  void ClearCancel() { cancel_.store(0, std::memory_order_relaxed); }
  // True while a callback runs that a call of this session made.
  bool is_in_callback() const { return is_in_callback_; }

  // Backend in use, and the reason if it is not the planned one ("" otherwise).
  const Backend* backend() const { return in_use_->backend; }
  const char* device_name() const;
  const char* kernel_names() const;
  const char* fallback_reason() const { return fallback_reason_.text(); }

  uint32_t selected() const { return selected_; }
  uint32_t length() const { return cache_.length(selected_); }
  uint32_t first_rewind_position() const;
  Span<const int32_t> history() const;
  const SessionPlan& plan() const { return plan_; }
  const SessionStats& stats() const { return stats_; }
  void ResetStats();
  // Returns the CPUs that the threads may run on now.
  ThreadCpus ReadCpus() const;
  // Returns the sensor readings; empty unless the session was created with sensors.
  DeviceWatch& Watch() const;
  const Pacer& pacer() const { return pacer_; }
  KvFileStats kv_file_stats() const { return kv_pager_.stats(); }
  uint64_t kv_used_bytes() const;
  const KvCache& cache() const { return cache_; }
  // Bytes read by one decode step: every weight of the program, but one row of the embedding.
  uint64_t WeightBytesPerToken() const;
  // KV bytes that a decode step reads at the current length.
  uint64_t KvBytesReadPerToken() const;
  StepProfile* profile() { return &profile_; }
  const StepProfile& profile() const { return profile_; }
  uint64_t create_ns() const { return create_ns_; }
  Diag* diag() { return &diag_; }
  const Diag& diag() const { return diag_; }

 private:
  Session(const Model& model, const SessionPlan& plan, Span<std::byte> block,
          Span<std::byte> owned);
  // Loads the backends. `wanted` has the options that are read only here; the session's copy of the
  // plan lacks them.
  Status Load(const SessionPlan& wanted, Diag* diag);
  // Runs the self-test. kDevice if the device of the backend in use computes wrong results and
  // there is no fallback; with a fallback, switches to it.
  Status TestDevice(Diag* diag);
  struct TestTokens;
  Status CompareWithExpected(Diag* diag);
  Status CompareChoice(Diag* diag);
  Status ComputeExpected(const TestTokens& test, float* expected, Diag* diag);
  template <typename OnRun>
  Status RunTestTokens(const TestTokens& test, const OnRun& on_run);
  Status EncodeTestInput();
  void Unload();
  void InitSequences();

  using Part = SessionPart;
  struct Generation;  // state of a running Generate()
  // Sets the flag while a callback of the caller runs.
  class InCallback {
   public:
    explicit InCallback(bool* flag) : flag_(flag) { *flag_ = true; }
    ~InCallback() { *flag_ = false; }
    InCallback(const InCallback&) = delete;
    InCallback& operator=(const InCallback&) = delete;

   private:
    bool* flag_;
  };
  // Decode steps of the selected sequence that the device samples and runs.
  struct StepsOnDevice {
    uint32_t wanted = 1;  // at most
    Span<const int32_t> stop_ids;
    Generation* generation = nullptr;  // receives each token; may be null
    bool is_taken = false;             // false: no step ran, the host must choose the next token
    uint32_t n_run = 0;
    bool ended = false;  // stopped by one of `stop_ids`
    int32_t last_id = 0;
  };
  // Location of a single sequence's logits. kBackend: read_logits() fetches them.
  enum class LogitsAt : uint8_t { kHost, kBackend, kBoth };

  Status CheckIds(Span<const int32_t> ids);
  // Fails unless all sequences exist and are distinct.
  Status CheckSequences(Span<const uint32_t> sequences);
  // kBadState if the model needs encoder output and the sequence has none.
  Status CheckEncoderOutput(uint32_t sequence);
  Status Encode(Span<const int32_t> ids, Span<const float> features, uint32_t rows);
  // kContextFull if n more tokens never fit, even after dropping old ones.
  Status CheckRoom(uint32_t sequence, size_t n_tokens);
  // Number of prefill tokens for the next run, at least one. Shifts when the context is full.
  Status NextChunk(uint32_t sequence, size_t left, size_t* out_tokens);
  Status Shift(uint32_t sequence);
  bool IsFull(uint32_t sequence) const { return cache_.length(sequence) == cache_.capacity(); }
  // True if the next token is the sequence's last: the one after a full context, which is chosen
  // but does not run.
  bool IsAtLast(uint32_t sequence) const {
    return IsFull(sequence) && plan_.options.overflow != Overflow::kShift;
  }
  // True if that last token has been chosen.
  bool IsAtEnd(uint32_t sequence) const {
    return IsAtLast(sequence) && !sequences_[sequence].has_logits;
  }
  // Drops the oldest tokens when the sequence is full and its overflow policy allows it.
  Status MakeRoomForOne(uint32_t sequence);

  // Executes one run and appends its tokens to the sequences. REQUIRES: sequences are distinct.
  Status Run(Span<const Part> parts, LogitRows logit_rows);
  Status RunWithCache(Span<const Part> parts, LogitRows logit_rows);
  Status TryWithCache(Span<const Part> parts, LogitRows logit_rows);
  Status RunWithoutCache(const Part& part, LogitRows logit_rows);
  Status RunBackend(size_t n_tokens, size_t n_rows, LogitRows logit_rows);
  // Decides which logits the run keeps of a single sequence. *best: receives the argmax if the
  // backend computes it.
  void AskForLogits(RunArgs* args, int32_t* best);
  void CountWork(const RunArgs& args);
  Status OpenWatch(const SessionOptions& options, Diag* diag);
  // Sleeps as the rate limit and thermal throttling require.
  Status Pace(Span<const Part> parts);
  void KeepLogits(Span<const Part> parts);
  // Records a successful run: appends its token ids and marks which sequences have logits.
  void Committed(Span<const Part> parts, LogitRows logit_rows);
  // True if the failure is a device failure and a fallback backend exists.
  bool CanFallBack(Status status) const;
  // Makes the fallback backend the one in use.
  void ActivateFallback();
  // Switches to the fallback backend for the reason in diag_. Its KV pages are empty.
  void SwitchToFallback(Status failure);
  // Switches to the fallback backend and recomputes the tokens of all sequences; keeps their
  // logits. On failure returns kDeviceLost and empties all sequences.
  Status FallBack(Status failure);
  // Returns kDeviceLost and empties all sequences: their encoder output cannot be recomputed.
  Status LoseEncoderOutputs();
  // wants_logits: also compute the logits of each sequence's last token.
  Status ComputeAnew(bool wants_logits);
  Status ComputeUpTo(uint32_t sequence, uint32_t end, LogitRows of_last);
  Status RunOne(uint32_t sequence, int32_t id);
  // Runs a token that was just chosen. Undoes the choice if the run fails.
  Status RunChosen(uint32_t sequence, int32_t id);
  // Returns kCancelled and clears the request if a cancel is pending.
  Status HeedCancel(uint32_t sequence);
  Status RunEdits();
  Status TrimPool(const PagePool& pool, const KvPages& pages, bool is_in_file, uint64_t* bytes);
  void Remember(const Part& part);
  Status RunError(Status status, uint32_t sequence);
  Status ContextFullError(uint32_t sequence);
  // Runs as many of the steps as fit one call of the backend.
  Status DecodeOnDevice(StepsOnDevice* steps);
  bool CanChooseOnDevice() const;
  // Appends the token that the device ran last to the sequence.
  void CommitStep(StepsOnDevice* steps);
  // Passes a chosen token to on_token. Returns false to stop.
  bool DeliverAndContinue(int32_t id, Generation* generation);
  // Collects the stop token ids. Returns false if they do not fit `out`.
  bool CollectStopIds(const GenerateOptions& options, Span<int32_t> out, size_t* n) const;
  Status CollectStopIds(const BeamRequest& request, BeamOptions* options);
  Status BeamSteps(uint32_t num_beams, BeamResult* out);
  Status Reorder(Span<const uint32_t> parents);
  void ClearSequences(uint32_t first, uint32_t last);
  bool IsStopId(int32_t id, const GenerateOptions& options) const;

  Status CopyKv(const KvLayer& layer, uint32_t first, uint32_t n, float* keys, float* values);
  Status TrySave(const StateSink& sink);
  bool CanMap(int fd) const;
  // True if some layers keep a recurrent state instead of keys and values.
  bool HasState() const;
  bool OthersAreEmpty() const;
  Status CheckPrefix(StateView* out);
  // Clears the selected sequence and starts it from a prefix that CheckPrefix accepted.
  Status TakePrefix(const StateView& view);
  Status CopyPrefixPages(const StateView& view);
  // Writes all of a saved page to page `index`.
  Status WritePage(const KvPages& pages, uint32_t index, Span<const std::byte> from);
  // *out: number of leading `ids` that the bundle's prefix provides, if more than `kept`; else 0.
  Status CountPrefix(Span<const int32_t> ids, uint32_t kept, StateView* view, uint32_t* out);
  // Fails if the session cannot save or restore states. `done` names the action for the message.
  Status CheckHasState(const char* done) const;
  // Number of sequences that a saved state holds: up to the last one that differs from a new
  // session's.
  uint32_t SequencesToSave() const;
  void CountState(StateCounts* out) const;
  Status SaveIndex(const StateCounts& counts, StateGroup* groups, StateWriter* writer) const;
  Status SavePages(const StateCounts& counts, uint32_t g, uint32_t kind, StateWriter* writer) const;
  Status RestorePages(const StateView& view, int fd, uint64_t file_offset);
  void RestoreSequences(const StateView& view);

  static constexpr int32_t kNotFound = -1;

  Sequence& At(uint32_t sequence) { return sequences_[sequence]; }
  int32_t* History(uint32_t sequence) const {
    return memory_.As<int32_t>(plan_.history) + uint64_t{sequence} * plan_.options.context_tokens;
  }
  // Returns the host-memory logits of a sequence (its buffer, even if not filled yet).
  float* LogitsOf(uint32_t sequence) const;
  // Copies a single sequence's logits from the backend to host memory if they are not there.
  Status FetchLogits();
  // Ensures the logits of a sequence's last token exist; re-runs that token if needed. kBadState if
  // it cannot run or the sequence is empty; kContextFull at the end of the context.
  Status NeedLogits(uint32_t sequence);
  Status RunLastAgain(uint32_t sequence);
  // Samples a token. REQUIRES: the sequence has logits.
  Status Choose(uint32_t sequence, int32_t* out_id);
  // Undoes the last choice.
  void Unchoose(uint32_t sequence);

  const Model& model_;
  SessionPlan plan_;
  Memory memory_;
  Span<std::byte> owned_;
  LoadedBackend planned_, fallback_;
  const LoadedBackend* in_use_ = &planned_;
  Diag fallback_reason_;
  KvCache cache_;
  KvPager kv_pager_;
  Span<Sequence> sequences_;
  BeamSearch beams_;
  uint32_t selected_ = 0;
  LogitsAt logits_at_ = LogitsAt::kHost;
  uint32_t logits_row_ = 0;      // a single sequence's row in the last run's logits
  int32_t best_id_ = kNotFound;  // argmax of the logits, if the last run computed it
  bool wants_logits_ = false;    // logits were requested after a run that returned the argmax alone
  bool is_decoding_ = false;     // decode steps are running on the device
  std::atomic<uint32_t> cancel_{0};
  bool is_cancellable_ = true;  // false while a token runs again that is already in its sequence
  bool is_in_callback_ = false;
  SessionStats stats_;
  // Shape and weight bytes of the last counted run.
  struct Counted {
    size_t n_tokens = 0, n_sequences = 0;
    LogitRows logit_rows = LogitRows::kNone;
    uint64_t weight_bytes = 0;
  };
  Counted counted_;
  StepProfile profile_;
  MatmulObserver observer_;
  OnMatmul on_matmul_ = nullptr;
  void* on_matmul_user_ = nullptr;
  uint64_t create_ns_ = 0;
  Pacer pacer_;
  mutable DeviceWatch watch_;  // mutable: caches sensor readings
  mutable Diag diag_;          // mutable: message of the last failure
};

}  // namespace arn
