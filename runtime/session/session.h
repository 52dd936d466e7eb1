// Session: sequences of tokens being generated. It lives inside its own block of memory, and
// nothing is allocated after Create(). Calls that speak of one sequence mean the selected one.
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
  uint32_t max_tokens = 0;  // 0: no limit of its own
  bool ignore_eos = false;
  Span<const StringView> stops;
  Span<const int32_t> extra_eos_ids;
  // Called for every new token with the text that can be shown. Non-zero ends. May be null.
  int32_t (*callback)(void* user, int32_t id, const char* text, size_t text_bytes) = nullptr;
  void* user = nullptr;
};

struct GenerateResult {
  uint32_t n_tokens = 0;
  Finish finish = Finish::kNone;
};

struct BeamRequest {
  BeamOptions options;  // max_tokens 0: as many as fit the context; its end tokens are not read
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
  // By all runs, each weight once a run (StepWork).
  uint64_t weight_bytes_read = 0;
  uint64_t kv_bytes_read = 0;
};

// What a session keeps of each sequence besides its pages and tokens.
struct Sequence {
  Sampler sampler;
  bool has_logits = false;
  // While all are computed anew: its tokens, and how many of them it has in common with which one.
  uint32_t length = 0;
  uint32_t shared = 0;
  uint32_t shared_with = 0;
};

struct LoadedBackend {
  const Backend* backend = nullptr;
  void* state = nullptr;
};

// The keys and values of a layer of the selected sequence.
struct KvLayer {
  uint32_t group = 0;
  uint32_t group_layer = 0;
  uint32_t kv_layer = 0;        // whose keys and values the layer uses: its own or an earlier one's
  uint32_t first_position = 0;  // positions before it are dropped
};

// A state to restore.
struct StateSource {
  Span<const std::byte> bytes;
  // The open file that `bytes` are a mapping of; -1: none. Its pages are mapped
  // instead of copied where that can be done.
  int fd = -1;
  uint64_t file_offset = 0;  // of `bytes` in that file
  bool verify_pages = false;
};

class Session {
 public:
  static SessionObjects Objects() { return {sizeof(Session), sizeof(Sequence)}; }
  // Builds a session in `block` (plan.TotalBytes(), aligned to kRegionAlign). `owned` pages, if
  // any, are released by Destroy(). On failure nothing of the block is in use and the caller still
  // owns `owned`. Where the plan has a backend in reserve, it is loaded too, and a device that
  // cannot be had is no failure: the session begins with that one.
  static Status Create(const Model& model, const SessionPlan& plan, Span<std::byte> block,
                       Span<std::byte> owned, Session** out, Diag* diag);
  static void Destroy(Session* session);

  // arenite.h documents these.
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
  // A sequence that the last search found.
  Status Beam(uint32_t index, Span<int32_t> out_ids, size_t* out_count, float* out_score) const;
  void Reset();
  Status Follow(Span<const int32_t> ids, uint32_t* out_kept);
  Status UsePrefix();
  Status Select(uint32_t sequence);
  Status Fork(uint32_t from, uint32_t to);
  Status Rewind(uint32_t position);
  // One token for each of some sequences, in one run.
  Status StepBatch(Span<const uint32_t> sequences, Span<const int32_t> ids);
  Status DecodeBatch(Span<const uint32_t> sequences, Span<int32_t> out_ids);
  Status Trim(uint64_t* out_bytes);
  Status FindKvLayer(uint32_t layer, KvLayer* out) const;
  // keys, values: f32 [n_kv_heads, n, head_dim] each; either may be null.
  Status ReadKv(uint32_t layer, uint32_t first, uint32_t n, float* keys, float* values);
  // A state of SaveBytes() goes to the sink. kUnsupported without a cache. kDeviceLost: the device
  // failed half-way; where another backend took over, saving anew works.
  Status SaveBytes(uint64_t* out_bytes) const;
  Status Save(const StateSink& sink);
  // Replaces all sequences by those of a state. On failure nothing has changed, unless the backend
  // itself failed (a device): then all sequences are empty.
  Status Restore(const StateSource& source);
  // From now on `seen` is told of every matrix product (ProductObserver), by the tensor's name;
  // null: no longer.
  using ProductSeen = void (*)(void* user, const char* tensor, const float* rows, size_t n_rows,
                               size_t width, const float* sums, size_t out_width);
  void ObserveProducts(ProductSeen seen, void* user);
  void Cancel() { cancel_.store(1, std::memory_order_relaxed); }

  // What computes now, and why it is not what was planned; "" when it is.
  const Backend* backend() const { return in_use_->backend; }
  const char* device_name() const;
  const char* kernel_names() const;
  const char* why_spare() const { return why_spare_.text(); }

  uint32_t selected() const { return selected_; }
  uint32_t length() const { return cache_.length(selected_); }
  uint32_t first_rewind_position() const;
  Span<const int32_t> history() const;
  const SessionPlan& plan() const { return plan_; }
  const SessionStats& stats() const { return stats_; }
  void ResetStats();
  // What its threads may run on now.
  ThreadCpus ReadCpus() const;
  // What the device says of itself now; nothing unless the session was created with sensors.
  DeviceWatch& Watch() const;
  const Pacer& pacer() const { return pacer_; }
  uint64_t kv_used_bytes() const;
  const KvCache& cache() const { return cache_; }
  // Bytes that one decode step reads: every weight that a step names, but one row of the embedding.
  uint64_t WeightBytesPerToken() const;
  // And the keys and values that it attends to at the present length.
  uint64_t KvBytesReadPerToken() const;
  StepProfile* profile() { return &profile_; }
  const StepProfile& profile() const { return profile_; }
  uint64_t create_ns() const { return create_ns_; }
  Diag* diag() { return &diag_; }
  const Diag& diag() const { return diag_; }

 private:
  Session(const Model& model, const SessionPlan& plan, Span<std::byte> block,
          Span<std::byte> owned);
  // Of `wanted` what is read at load alone: the session's own copy has it no longer.
  Status Load(const SessionPlan& wanted, Diag* diag);
  // kDevice when the device of the backend in use does not compute what a CPU does; where there is
  // one in reserve, that one takes over instead.
  Status TestDevice(Diag* diag);
  struct TestTokens;
  Status CompareWithExpected(Diag* diag);
  Status CompareChoice(Diag* diag);
  Status ComputeExpected(const TestTokens& test, float* expected, Diag* diag);
  template <typename See>
  Status RunTestTokens(const TestTokens& test, const See& see);
  Status EncodeTestSource();
  void Unload();
  void InitSequences();

  using Part = SessionPart;
  struct Generation;  // a Generate() that goes on
  // Steps of the selected sequence that the device chooses and runs.
  struct StepsOnDevice {
    uint32_t wanted = 1;  // at most
    Span<const int32_t> ends;
    Generation* generation = nullptr;  // which is shown each token; may be null
    bool is_taken = false;  // false: nothing has happened, the next token is the host's to choose
    uint32_t n_run = 0;
    bool ended = false;  // by one of `ends`
    int32_t last_id = 0;
  };
  // Where a lone sequence's logits are; kBackend: where read_logits() brings them from.
  enum class LogitsAt : uint8_t { kHost, kBackend, kBoth };

  Status CheckIds(Span<const int32_t> ids);
  // The sequences exist, and none is named twice.
  Status CheckSequences(Span<const uint32_t> sequences);
  // kBadState when the model attends to a source and the sequence has none.
  Status CheckSource(uint32_t sequence);
  Status Encode(Span<const int32_t> ids, Span<const float> features, uint32_t rows);
  // kContextFull when n tokens cannot follow, whatever is dropped.
  Status CheckRoom(uint32_t sequence, size_t n_tokens);
  // The tokens of a prefill that the next run takes, at least one; shifts when there is no room.
  Status NextChunk(uint32_t sequence, size_t left, size_t* out_tokens);
  Status Shift(uint32_t sequence);
  bool IsFull(uint32_t sequence) const { return cache_.length(sequence) == cache_.capacity(); }
  // Drops the oldest tokens when the sequence is full and its policy allows it.
  Status MakeRoomForOne(uint32_t sequence);

  // One run; its tokens are in the sequences afterwards. No sequence twice.
  Status Run(Span<const Part> parts, LogitRows logit_rows);
  Status RunWithCache(Span<const Part> parts, LogitRows logit_rows);
  Status TryWithCache(Span<const Part> parts, LogitRows logit_rows);
  Status RunWithoutCache(const Part& part, LogitRows logit_rows);
  Status RunBackend(size_t n_tokens, size_t n_rows, LogitRows logit_rows);
  // What the run keeps of a lone sequence's logits.
  void AskForLogits(RunArgs* args);
  void CountWork(const RunArgs& args);
  Status OpenWatch(const SessionOptions& options, Diag* diag);
  // Sleeps where the session holds itself back.
  Status Pace(Span<const Part> parts);
  void KeepLogits(Span<const Part> parts);
  // Whether a failure is a device's, and another backend can take over.
  bool CanFallBack(Status status) const;
  void TakeSpare();
  // The backend in reserve takes over, for the reason that stands in diag_; its pages hold nothing.
  void UseSpare(Status failure);
  // The same, and it computes the tokens of all sequences; their logits stay. kDeviceLost, and all
  // are empty, when it cannot.
  Status FallBack(Status failure);
  // kDeviceLost, and all sequences are empty: their sources cannot be computed anew.
  Status LoseSources();
  // wants_logits: of each sequence's last token too.
  Status ComputeAnew(bool wants_logits);
  Status ComputeUpTo(uint32_t sequence, uint32_t end, LogitRows of_last);
  Status RunOne(uint32_t sequence, int32_t id);
  Status RunEdits();
  Status TrimPool(const PagePool& pool, const KvPages& pages, bool is_in_file, uint64_t* bytes);
  void Remember(const Part& part);
  Status Failed(Status status, uint32_t sequence);
  Status Full(uint32_t sequence);
  // As many of the steps as go at once.
  Status DecodeOnDevice(StepsOnDevice* steps);
  bool CanChooseOnDevice() const;
  // The token that the device ran last is in the sequence.
  void CommitStep(StepsOnDevice* steps);
  // Shows a token that was chosen to the caller; whether more are wanted.
  bool Show(int32_t id, Generation* generation);
  // The ids that end a generation; false when there are more than `out` has room for.
  bool CollectEnds(const GenerateOptions& options, Span<int32_t> out, size_t* n) const;
  Status CollectEnds(const BeamRequest& request, BeamOptions* options);
  Status BeamSteps(uint32_t num_beams, BeamResult* out);
  Status Reorder(Span<const uint32_t> parents);
  void ClearSequences(uint32_t first, uint32_t last);
  bool IsEnd(int32_t id, const GenerateOptions& options) const;

  Status CopyKv(const KvLayer& layer, uint32_t first, uint32_t n, float* keys, float* values);
  Status TrySave(const StateSink& sink);
  bool CanMap(int fd) const;
  // Whether some layers keep a state instead of keys and values.
  bool HasState() const;
  bool OthersAreEmpty() const;
  Status CheckPrefix(StateView* out);
  // Forgets the selected sequence and starts it after a prefix that CheckPrefix accepted.
  Status TakePrefix(const StateView& view);
  Status CopyPrefixPages(const StateView& view);
  // How many of `ids` the sequence has at once when it starts after the prefix, if those are more
  // than `kept`; else 0.
  Status CountPrefix(Span<const int32_t> ids, uint32_t kept, StateView* view, uint32_t* out);
  // Whether states of the session can be saved and restored; `done`: for the message.
  Status CheckHasState(const char* done) const;
  // Sequences that a state holds: up to the last that is not as in a new session.
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
  // In host memory: where they are, or are to be.
  float* LogitsOf(uint32_t sequence) const;
  // Brings a lone sequence's logits there, when they were left with the backend.
  Status FetchLogits();
  Status NoLogits();
  // A token from the logits of a sequence that has some.
  Status Choose(uint32_t sequence, int32_t* out_id);

  const Model& model_;
  SessionPlan plan_;
  Memory memory_;
  Span<std::byte> owned_;
  LoadedBackend planned_, spare_;
  const LoadedBackend* in_use_ = &planned_;
  Diag why_spare_;
  KvCache cache_;
  Span<Sequence> sequences_;
  BeamSearch beams_;
  uint32_t selected_ = 0;
  LogitsAt logits_at_ = LogitsAt::kHost;
  int32_t best_id_ = kNotFound;  // of the logits, when the last run has found it
  bool wants_logits_ = false;    // they were asked for where a run had found the best id alone
  bool is_decoding_ = false;     // steps are under way on the device
  std::atomic<uint32_t> cancel_{0};
  SessionStats stats_;
  // The last run whose weights were counted.
  struct Counted {
    size_t n_tokens = 0, n_sequences = 0;
    LogitRows logit_rows = LogitRows::kNone;
    uint64_t weight_bytes = 0;
  };
  Counted counted_;
  StepProfile profile_;
  ProductObserver observer_;
  ProductSeen seen_ = nullptr;
  void* seen_user_ = nullptr;
  uint64_t create_ns_ = 0;
  Pacer pacer_;
  mutable DeviceWatch watch_;  // not state: what the device says
  mutable Diag diag_;          // nor is what the last failure said
};

}  // namespace arn
