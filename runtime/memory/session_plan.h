// SessionPlan: all memory of a session, decided before a byte is allocated. Planning and loading
// share the same slices.
#pragma once

#include <cstdint>

#include "kernels/contract/backend.h"
#include "kernels/contract/kv_type.h"
#include "platform/base/diag.h"
#include "platform/base/dtype.h"
#include "platform/base/layout.h"
#include "platform/os/thread_pool.h"
#include "platform/os/topology.h"
#include "runtime/cache/kv_cache.h"
#include "runtime/cache/kv_layout.h"
#include "runtime/model/adapter_bundle.h"
#include "runtime/model/model.h"
#include "runtime/model/rope_scaling.h"
#include "runtime/sampling/beam_search.h"
#include "runtime/sampling/processors.h"
#include "runtime/sampling/sampler.h"
#include "runtime/speculate/guess_policy.h"
#include "runtime/speculate/ngram_drafter.h"

namespace arn {

// Policy when a sequence reaches the context.
enum class Overflow : uint32_t {
  kStop = 0,   // generate ends with Finish::kContext; other calls return kContextFull
  kError = 1,  // every call returns kContextFull
  kShift = 2,  // drops the oldest unpinned tokens
};

// CPUs that the threads stay on.
enum class CpuChoice : uint32_t {
  kAuto = 0,         // as Topology::keeps()
  kPerformance = 1,  // the performance CPUs, for any number of threads
  kAll = 2,          // placed by the system
  kMask = 3,         // SessionOptions::cpu_mask
};

// Where guesses of the next tokens come from: bits.
enum class Speculation : uint32_t {
  kNone = 0,
  kNgram = 1,  // the sequence itself (NgramDrafter)
  kDraft = 2,  // another model (SessionOptions::draft)
  kAuto = 3,   // the sequence, and behind it the model if there is one, else kMtp if it can be
  kMtp = 4,    // the model's multi-token prediction head (Model::mtp)
};

// Rate limit and thermal throttling; all zero: none.
struct PaceOptions {
  float max_tokens_per_s = 0;    // decoded, over all sequences
  int32_t thermal_limit_mc = 0;  // millidegrees Celsius of a thermal zone
  float thermal_headroom = 0;    // Android's thermal headroom
  uint32_t thermal_duty_percent =
      0;  // share of time spent running while hot; 0: kDefaultThermalDuty
};
inline constexpr uint32_t kDefaultThermalDuty = 50;

struct SessionPlan;

struct SessionOptions {
  KvType k_type = KvType::kInt8;
  KvType v_type = KvType::kInt8;
  KvType encoder_type = KvType::kInt8;  // of an encoder's keys and values; never quantised
  bool has_encoder_type = false;        // false: they are as active pages of k_type and v_type
  uint32_t kv_residual = 0;    // most recent tokens, never quantised; 0: kDefaultKvResidual
  uint32_t kv_group_size = 0;  // tokens (K), channels (V) per quantisation group; 0: the default
                               // of kv_page_tokens, or a page
  bool k_by_token = false;     // quantised pages: as in KvGroup
  bool v_by_channel = false;
  uint32_t context_tokens = 0;     // 0: the model's, at most kDefaultContextTokens
  uint32_t prefill_chunk = 0;      // 0: kDefaultPrefillChunk, or what a device chooses
  uint32_t n_threads = 0;          // 0: the number of performance CPUs
  uint32_t n_prefill_threads = 0;  // 0: n_threads
  uint32_t kv_page_tokens = 0;     // 0: KvTypeTraits::page_tokens of k_type
  uint32_t encoder_rows = 0;       // 0: the model's; for token ids at most kDefaultEncoderTokens
  bool all_logits = false;
  uint32_t max_sequences = 0;  // 0: 1
  uint32_t kv_tokens = 0;      // total of all sequences; 0: enough for all to be full
  Overflow overflow = Overflow::kStop;
  uint32_t pinned_tokens = 0;    // kShift: leading tokens that are kept, rounded up to whole pages
  bool splits_rows = false;      // as in Program
  bool no_cache = false;         // every run recomputes all tokens of its sequences
  bool kv_in_file = false;       // pages of full-attention layers lie in a file
  const char* device = nullptr;  // for backends with devices (GpuOptions); must stay valid
                                 // until the session is created
  const char* device_folder = nullptr;  // likewise
  bool hardware_only = false;           // as in GpuOptions
  bool half_products = false;           // likewise
  bool trusts_device = false;           // skips the self-test against the CPU
  // Fallback backend without a device, loaded too. Takes over if the device fails. Uses only memory
  // of the session's block. Null: none.
  const Backend* fallback = nullptr;
  CpuChoice cpus = CpuChoice::kAuto;
  uint64_t cpu_mask = 0;           // kMask: bit i is CPU i
  bool logits_processors = false;  // plans memory for LogitsProcessors
  uint32_t sampling_words = 0;     // elements of a sequence's lists in SamplingOptions
  PaceOptions pace;
  uint64_t constraint_bytes = 0;  // of each constraint; 0: none
  uint32_t max_constraints = 0;   // different ones at a time; 0: one for each sequence
  // Snapshots of the recurrent states kept for each sequence. The plan has 0 if there is nothing to
  // keep: a model without such states, or no_cache.
  uint32_t state_snapshots = 0;
  uint32_t snapshot_every = 0;  // tokens between two of them; 0: prefill_chunk, or no snapshots
  Speculation speculation = Speculation::kNone;
  // Guesses that a run verifies at most. The plan has 0 without speculation; 0: kDefaultGuesses.
  uint32_t max_guesses = 0;
  bool guesses_always = false;   // verifies every guess there is
  const Model* draft = nullptr;  // of kDraft and kAuto; must outlive the session
  // The session with the keys and values of ModelSpec::lender. Null: the model has its own.
  const SessionPlan* lender = nullptr;
  // Keeps pages that windows and chunks do not see any more, so that every rewind is possible.
  bool keeps_unseen = false;
  RopeScaling rope_scaling;
  bool sensors = false;  // find temperature and energy sensors; implied by a thermal limit
  const char* thermal_zone = nullptr;  // part of a zone's type; null: all. Lifetime as `device`
  // Embeddings in place of tokens (those of images) that the sequences may hold at a time.
  uint32_t embedding_rows = 0;
  uint32_t max_requests = 0;  // of a scheduler, those that wait included; 0: none
  // That sequences may use; each must outlive the session, the array only its planning.
  Span<const AdapterBundle* const> adapters = {};
  const char* system_root = nullptr;  // prepended to /sys; null: "". Lifetime as `device`
};

// Smallest block of a constraint: what follows says how much a text needs.
inline constexpr uint64_t kMinConstraintBytes = 16384;
inline constexpr uint64_t kMaxConstraintBytes = uint64_t{1} << 31;
inline constexpr uint32_t kDefaultContextTokens = 4096;
inline constexpr uint32_t kDefaultEncoderTokens = 512;
inline constexpr uint32_t kDefaultPrefillChunk = 128;
inline constexpr uint32_t kDefaultKvResidual = 128;
inline constexpr uint32_t kMaxPrefillChunk = 4096;
inline constexpr uint32_t kDefaultGuesses = 15;
inline constexpr uint32_t kMinKvPageTokens = 8;
static_assert(kMinKvPageTokens % kKvStrip == 0);
inline constexpr uint32_t kMaxKvPageTokens = 1024;
inline constexpr uint32_t kMaxSequences = 1024;
inline constexpr uint32_t kMaxSamplingWords = 1u << 20;
inline constexpr uint32_t kMaxStateSnapshots = 1024;
inline constexpr uint32_t kMaxAdapters = 1024;
inline constexpr uint32_t kMaxEmbeddingRows = 1u << 20;
inline constexpr uint32_t kMaxRequests = 1u << 16;
// Maximum bytes of a stop string that a session holds back.
inline constexpr uint32_t kMaxStopBytes = 256;

// Bookkeeping of a KV file while it is read: layers at a time, OS pages per chunk, bytes per chunk.
inline constexpr uint32_t kKvLayersNoted = 2;
inline constexpr uint32_t kKvChunkPages = 16;
inline constexpr uint32_t kKvChunkMarkBytes = 4;

// Logits that are searched at a time for the best tokens.
inline constexpr uint32_t kConstraintBlock = 2048;

// Memory of the sequences' constraints; empty without constraint_bytes.
struct ConstraintsPlan {
  uint32_t n = 0;           // constraints
  uint64_t bytes_each = 0;  // of a block, a multiple of kSliceAlign
  Slice blocks;             // [n, bytes_each]
  Slice uses;               // ConstraintUse [2, max_sequences]
  Slice masked;             // f32 [vocab]
  Slice found;              // u32 [kConstraintBlock]
  Slice encode;             // scratch of the tokenizer for forced text
  uint64_t TotalBytes() const {
    return blocks.bytes + uses.bytes + masked.bytes + found.bytes + encode.bytes;
  }
};

// Memory of a scheduler; empty without max_requests.
struct SchedulerPlan {
  uint32_t step_tokens = 0;    // of one reply that a step reports at most
  uint32_t chosen_stride = 0;  // step_tokens, and guesses behind them
  uint32_t n_events = 0;
  Slice requests;           // RequestRecord [max_requests]
  Slice order;              // u32 [max_requests]
  Slice events;             // RequestEvent [n_events]
  Slice wishes;             // RowWish [max_sequences]
  Slice leases;             // SequenceLease [max_sequences]
  Slice replies;            // ReplyText [max_sequences]
  Slice chosen;             // i32 [max_sequences, chosen_stride]
  Slice shares;             // SharedGuessPolicy::Share [max_sequences] with speculation
  Slice text;               // [max_sequences, text_bytes]
  uint64_t text_bytes = 0;  // as SessionPlan::text
  Slice shown;              // texts of a step's events
  uint64_t TotalBytes() const {
    return requests.bytes + order.bytes + events.bytes + wishes.bytes + leases.bytes +
           replies.bytes + chosen.bytes + shares.bytes + text.bytes + shown.bytes;
  }
};

// Memory of the model's own multi-token prediction head; empty without Speculation::kMtp.
struct MtpPlan {
  uint32_t n_rows = 0;  // of the model that are kept for the head
  Slice rows;           // f32 [n_rows + 1, hidden]; the last one is of a guess
  Slice text;           // i32 [context]: the ids that the rows belong to; of an assistant [n_rows]
  Slice block;          // of a session of the head
  bool exists() const { return n_rows != 0; }
  uint64_t TotalBytes() const { return rows.bytes + text.bytes + block.bytes; }
};

struct SessionPlan {
  SessionOptions options;  // as applied: defaults filled in
  const Backend* backend = nullptr;
  // True: the device's backend chooses chunks of a prompt, up to options.prefill_chunk.
  bool device_chooses_chunk = false;
  // The model's program with this session's sizes. Its values, ropes and kv_groups point into this
  // struct: call Bind() after a copy.
  Program program;
  Value values[kMaxValues];
  RopeKind ropes[kMaxRopeKinds];
  uint32_t long_ropes = 0;  // bit i: rope i uses the long-context frequencies
  Slice scaled_rope;        // f32 [rotary_dim / 2] with options.rope_scaling, else empty
  KvGroup kv_groups[kMaxKvGroups];
  BackendPlan backend_plan;
  BackendPlan fallback_plan;  // for options.fallback
  Diag refused;               // why the preferred backend is not used; "": it is
  KvCachePlan cache;
  SamplerPlan sampler;
  ConstraintsPlan constraints;
  ProcessorsPlan processors;  // empty unless options.logits_processors
  Slice adapters;             // const AdapterBundle* [options.adapters]
  Slice active_adapters;      // ActiveAdapter [max_sequences, options.adapters]
  Slice sampling_lists;       // u32 [max_sequences + 1, sampling_words]; the last are scratch
  NgramPlan ngrams;           // empty without guesses from texts
  Slice guesses;              // SequenceGuesses [sequences of a run]; empty without speculation
  Slice draft;                // block of a session of the draft model; empty without one
  MtpPlan mtp;
  uint64_t speculation_bytes = 0;  // of all these, and of logits that only guesses need
  BeamSearchPlan beams;            // up to max_sequences beams
  Slice kv_marks;                  // u16 [kKvLayersNoted, chunks, 2] of a KV file; else empty
  Slice session;                   // the Session object itself
  Slice sequences;                 // Sequence [max_sequences]
  Slice rows;                      // SequenceRows [max_sequences]
  Slice growths;                   // Growth [max_sequences]
  Slice parts;                     // SessionPart [max_sequences]
  Slice tokens;                    // i32 [max_rows]: ids of the run
  Slice history;                   // i32 [max_sequences, context]: ids of the sequences
  Slice scratch_history;           // i32 [context] if there are several sequences, else empty
  Slice embeddings;                // f32 [embedding_rows, hidden]
  Slice embedding_marks;           // u8 [embedding_rows]: while free ones are looked for
  Slice image_places;              // ImagePlace [embedding_rows], with M-RoPE
  Slice axis_positions;            // u32 [max_rows, kRopeAxes], with M-RoPE: of a run
  Slice mixed_ids;                 // i32 [context] with embedding_rows: ids of a call
  Slice plain_ids;                 // i32 [context] with embedding_rows: ids for processors
  Slice image_mask;                // u8 [chunk, chunk] if images are seen both ways, else empty
  Slice beam_sequences;            // u32 [max_sequences]
  Slice beam_logits;               // const float* [max_sequences]
  Slice sequence_logits;           // f32 [max_sequences, vocab] if there are several, else empty
  SchedulerPlan scheduler;
  Slice text;  // text that may still become a stop string, and the piece being written
  uint64_t region_bytes[kRegionCount] = {};  // kWeights: the mapped bytes
  Topology topology;
  CpuMask cpus;             // CPUs that the threads stay on
  bool keeps_cpus = false;  // false: placed by the system

  void Bind();
  uint64_t RegionBytes(Region region) const { return region_bytes[static_cast<uint32_t>(region)]; }
  // Returns the bytes of a region in the session's block; 0 if the region lies on a device and no
  // fallback backend needs it.
  uint64_t BlockBytes(Region region) const;
  // Returns the size of the session's block: the sum of its regions.
  uint64_t TotalBytes() const;
  // True if the group's pool lies in the KV file. Pools of sliding windows and states do not: all
  // of their bytes are read for every token.
  bool IsInFile(uint32_t g) const;
  SamplingLimits sampling_limits() const {
    return {program.vocab, options.logits_processors, options.sampling_words};
  }
  // Returns the bytes of the slots for snapshots, a part of the KV region.
  uint64_t SnapshotBytes() const;
  // Returns the bytes in the block for adapters. Their bundles are not part of it.
  uint64_t AdapterBytes() const {
    return adapters.bytes + active_adapters.bytes + backend_plan.adapter_bytes +
           fallback_plan.adapter_bytes;
  }
  // Returns the bytes in the block for embeddings.
  uint64_t EmbeddingBytes() const {
    return embeddings.bytes + embedding_marks.bytes + image_places.bytes + axis_positions.bytes +
           mixed_ids.bytes + plain_ids.bytes + image_mask.bytes;
  }
  // Returns the KV bytes of one token once its page is quantised, ignoring windows.
  uint64_t KvBytesPerToken() const;
};

// Tokens of one sequence in a run. An id below 0 stands for row -1 - id of the session's
// embeddings, in a sequence's history too.
struct SessionPart {
  uint32_t sequence = 0;
  Span<const int32_t> ids;
  const RowMask* mask = nullptr;  // of these tokens, if the run has no other part
  // The last ones of them that are guesses: with LogitRows::kLastOfEach they have logits too, and
  // the sequence those of the token before them.
  uint32_t n_guesses = 0;
  Span<const float> features = {};  // RunArgs::features; of a run without other parts
};

// Sizes of the session object and its per-sequence objects.
struct SessionObjects {
  uint64_t session_bytes = 0;
  uint64_t sequence_bytes = 0;
  uint64_t constraint_use_bytes = 0;
  uint64_t draft_bytes = 0;       // of a DraftModel
  uint64_t mtp_bytes = 0;         // of an MtpDrafter or AssistantDrafter
  uint64_t guesses_bytes = 0;     // of a SequenceGuesses
  uint64_t lease_bytes = 0;       // of a SequenceLease
  uint64_t reply_text_bytes = 0;  // of a ReplyText
};

// Checks the options against the model and lays out all memory.
Status PlanSession(const Model& model, const Backend* backend, const SessionOptions& options,
                   const SessionObjects& objects, SessionPlan* out, Diag* diag);

// Plans the session of the draft model that a session of this plan has: one sequence in a block of
// its own, with a `session` slice of objects.draft_bytes. kBadArgument unless the two models have
// the same tokens, kUnsupported for a draft that cannot forget tokens. REQUIRES: target.options
// have a draft and are applied.
Status PlanDraft(const Model& model, const SessionPlan& target, const SessionObjects& objects,
                 SessionPlan* out, Diag* diag);

// Plans the session of the model's multi-token prediction head, likewise. REQUIRES: the model
// has one.
Status PlanMtp(const Model& model, const SessionPlan& target, const SessionObjects& objects,
               SessionPlan* out, Diag* diag);

// Lays out the memory of a scheduler. kUnsupported for a model with an encoder, and beside options
// that change what sequences hold. REQUIRES: out->options are applied and have max_requests.
Status PlanScheduler(const Model& model, const SessionObjects& objects, SessionPlan* out,
                     Layout* layout, Diag* diag);

// Returns the regions of a block of TotalBytes(), aligned to kRegionAlign.
Memory PartitionBlock(const SessionPlan& plan, std::byte* block);

}  // namespace arn
