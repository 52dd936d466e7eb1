// Backend: runs a Program. Every backend has the six functions; what only some can do is a table
// that is null or complete.
// plan() rejects everything the backend cannot do with kUnsupported and a reason; later calls never
// do. Later failures are device failures (kDevice, kDeviceLost, kOutOfMemory); after one, every
// call except unload() fails.
#pragma once

#include <atomic>
#include <cstdint>

#include "kernels/contract/adapter.h"
#include "kernels/contract/cost.h"
#include "kernels/contract/program.h"
#include "kernels/contract/row_mask.h"
#include "platform/base/diag.h"
#include "platform/base/layout.h"
#include "platform/base/span.h"

namespace arn {

class CpuMask;  // platform/os/topology.h
struct ThreadCpus;

// Read by backends that compute on threads.
struct CpuOptions {
  // Thread counts, including the calling thread. n_threads: runs with one token per sequence;
  // n_prefill_threads: all other runs.
  uint32_t n_threads = 1;
  uint32_t n_prefill_threads = 1;
  // Pins the threads to these CPUs, the calling thread during a run. Null: the system places them.
  // Read by load() only.
  const CpuMask* cpus = nullptr;
  // load() fails with kUnsupported if the system does not pin the threads.
  bool needs_cpus = false;
  // Weights whose stored layout does not suit this CPU are repacked by the first run, not by
  // load(): their memory is untouched, and no time is spent, if none follows.
  bool repacks_late = false;
  // Matrices of order kDeviceRows are read in place instead of being repacked: they are in memory
  // once if a device reads them there too. For runs of few rows as fast, for others slower. Read by
  // plan() and load().
  bool reads_device_rows = false;

  uint32_t max_threads() const {
    return n_threads > n_prefill_threads ? n_threads : n_prefill_threads;
  }
};

// Read by backends that compute on a device, by load() only.
struct GpuOptions {
  const char* device = nullptr;  // its number, or part of its name. Null: the best device
  bool hardware_only = false;    // skips drivers that compute on the CPU unless `device` names one
  const char* folder = nullptr;  // for caches that speed up the next load. Null: none
  bool shares_kv = false;        // maps Region::kKv for the host too, if the device can
  bool half_products = false;    // matmuls of f16 and bf16 weights may multiply in f16
};

struct BackendOptions {
  CpuOptions cpu;
  GpuOptions gpu;
};

// Slices placed by plan(). Pass it unchanged to load(). The meaning of each slice is private to the
// backend.
struct BackendPlan {
  // A split backend stores some of the slices of both its parts and some of its own.
  static constexpr uint32_t kMaxPartSlices = 14, kMaxSlices = kMaxPartSlices + 2;
  Slice slices[kMaxSlices];
  uint64_t repacked_weight_bytes = 0;  // weights whose stored layout does not suit this CPU
  uint64_t adapter_bytes = 0;          // scratch memory of kAdapt steps
  uint64_t device_bytes = 0;           // device buffers, all outside the session's block
  // Part of device_bytes: weights that take none where the device reads them in the file's pages.
  uint64_t importable_bytes = 0;
};

// Rows [first_row, first_row + n_rows) of a run: consecutive tokens of one sequence.
struct SequenceRows {
  uint32_t first_row = 0;
  uint32_t n_rows = 0;
  uint32_t first_position = 0;
  // One table per Program::kv_groups entry. The pages for the positions of these rows are already
  // allocated.
  const PageTable* tables = nullptr;
  uint32_t encoder_rows = 0;           // of the sequence; kinds with is_cross_attention read them
  uint32_t n_first_type = UINT32_MAX;  // rows of token type 0; those after them have type 1
  uint32_t more_logit_rows = 0;        // before the last one, with LogitRows::kLastOfEach
  // logits_copy, f32 [vocab], receives a copy of the sequence's first row of logits, and best_id
  // the argmax of that row, the lowest id on ties. Null: not copied, or not computed. best_id
  // requires logits_copy. REQUIRES, unless null: LogitsAccess::copies_rows, kLastOfEach.
  float* logits_copy = nullptr;
  int32_t* best_id = nullptr;
  Span<const ActiveAdapter> adapters = {};
};

struct RunArgs;

// Called before each step that attends to tokens, from the thread that called run(): steps[0], and
// those that follow it.
struct AttentionObserver {
  void (*before)(void* user, const RunArgs& args, Span<const Step> steps) = nullptr;
  void* user = nullptr;
  const AttentionObserver* next = nullptr;  // called after it
};

enum class LogitRows : uint8_t { kNone, kLastOfEach, kAll };

// Called before each matmul, on the thread that called run(). `rows`: [n_rows, cols of the weight],
// the input. `sums`: [n_rows, rows of the weight], the accumulator, or null if the matmul does not
// accumulate. Both are valid only during the call.
struct MatmulObserver {
  void (*on_matmul)(void* user, WeightId weight, const float* rows, uint32_t n_rows,
                    const float* sums) = nullptr;
  void* user = nullptr;
};

struct RunArgs {
  // Applied before any step, in order. A run may consist of edits only.
  Span<const KvEdit> edits;
  // [n_rows], each in [0, vocab), or -1 - i for row i of `embeddings`; empty: edits only
  Span<const int32_t> tokens;
  Span<const SequenceRows> sequences;  // cover all rows, in order
  LogitRows logit_rows = LogitRows::kLastOfEach;
  // Runs the encoder steps instead, on the complete encoder input of a single sequence: tokens, or
  // features [n_rows * row_factor, width] in the layout of the kFeatures step's value. A program
  // that pools takes several sequences of tokens, one after the other.
  bool is_encoder = false;
  // Leaves the logits with the backend.
  // REQUIRES: Backend::logits, one sequence, kLastOfEach.
  bool leaves_logits = false;
  // Receives the argmax of the logits, the lowest id on ties. Null: not computed.
  // REQUIRES: LogitsAccess::finds_best, and leaves_logits.
  int32_t* best_id = nullptr;
  // If the run is cancelled, the logits that the last run wrote may be gone; LogitsAccess::read()
  // gives them again. REQUIRES: LogitsAccess::finds_best, one row of logits, and that the last run
  // with logits had one.
  bool may_lose_logits = false;
  // Features: of an encoder run, or in a decoder with a kFeatures step, rows as wide as its value.
  // REQUIRES, of a decoder: Backend::takes_features.
  Span<const float> features;
  // f32 [rows, EmbedParams::embedding_stride] of tokens below 0. REQUIRES, if there are any:
  // Backend::takes_embeddings, and no encoder run.
  Span<const float> embeddings;
  // Parts of the sequences, which cover all rows in order: kinds with has_parts attend within them,
  // in place of the sequences. REQUIRES, unless empty: an encoder run.
  Span<const SequenceRows> parts;
  // [n_rows, kRopeAxes] for RoPE with axes, each below 2^24. Empty: all of a row are its position
  // in its text. REQUIRES, unless empty: Backend::takes_embeddings, or an encoder run.
  Span<const uint32_t> axis_positions;
  // Null, or REQUIRES: Backend::takes_masks (or takes_prefix_masks, and such a mask), one sequence,
  // and a program without recurrent states.
  // With positions: and without relative position biases.
  const RowMask* mask = nullptr;
  // Mapped bytes of the matrix that a kEmbed step looks rows up in, if they need not stay in
  // memory: a backend that reads them where they are drops the pages of a row once it has read it.
  Span<const std::byte> row_table;
  // Set only during calibration. A backend that does not materialise these rows rejects it.
  const MatmulObserver* observer = nullptr;
  // Null, or REQUIRES: Backend::host_kv.
  const AttentionObserver* attention_observer = nullptr;
  // Checked before every step, and between the parts of long ones where the backend can; non-zero
  // ends the run with kCancelled. May be null.
  const std::atomic<uint32_t>* cancel = nullptr;
  // Null, or one counter for each of StepsOf(program, is_encoder). The run adds each step's time in
  // nanoseconds. A backend that fuses steps adds their time to the first of them.
  uint64_t* step_ns = nullptr;
};

// steps: those that are left.
inline void NotifyAttentionObserver(const RunArgs& args, Span<const Step> steps) {
  if (steps[0].op() != Op::kAttention) return;
  for (const AttentionObserver* observer = args.attention_observer; observer != nullptr;
       observer = observer->next) {
    observer->before(observer->user, args, steps);
  }
}

inline void Observe(const RunArgs& args, WeightId weight, const float* rows, uint32_t n_rows,
                    const float* sums = nullptr) {
  if (args.observer != nullptr) {
    args.observer->on_matmul(args.observer->user, weight, rows, n_rows, sums);
  }
}

// Sampling parameters, applied in this order (runtime/sampling/sampler.h).
struct ChoiceRule {
  float temperature = 0.0f;  // 0: greedy, the lowest id on ties
  uint32_t top_k = 0;        // 0: off
  float top_p = 1.0f;        // 1: off
  float min_p = 0.0f;        // 0: off

  bool IsGreedy() const { return temperature == 0.0f; }
};

// Decode steps of one sequence. Each step samples a token from the previous step's logits and runs
// it. The first step samples from the logits of the last run() or decode().
struct DecodeArgs {
  static constexpr uint32_t kMaxSteps = 64, kMaxStopIds = 16;

  Span<const KvEdit> edits;  // applied before the first step
  SequenceRows sequence;     // the one row of the first step; the tables hold the pages of all
                             // steps
  uint32_t n_steps = 0;      // 1 to kMaxSteps
  ChoiceRule rule;
  Span<const uint32_t> rng;  // [n_steps], uniform random numbers: the 32 most significant bits of
                             // the fraction. Unused at temperature 0.
  Span<const int32_t> stop_ids;  // stop token ids: a step that samples one is the last, and does
                                 // not run it
  // Called for each token, in order, as soon as it is known; later steps may already be in flight.
  // Return false to make this the last token: later steps count as never run. Null: all tokens are
  // accepted.
  bool (*on_token)(void* user, int32_t id) = nullptr;
  void* user = nullptr;
  // Checked after each call of `on_token` and between submissions; non-zero ends the steps with
  // kCancelled. May be null.
  const std::atomic<uint32_t>* cancel = nullptr;
};

struct DecodeResult {
  uint32_t n_tokens = 0;  // tokens passed to `on_token`, or that would have been if it were set
  bool ended = false;     // a stop token id was sampled after them
};

// The logits of a run may stay with the backend: on its device, or not computed.
struct LogitsAccess {
  // False: runs that leave their logits keep them all. True: runs with RunArgs::best_id compute it
  // and may discard the logits; read() computes them again.
  bool finds_best;
  // True if runs fill SequenceRows::logits_copy and best_id.
  bool copies_rows;
  // Copies f32 [vocab] to the host: the logits left by run() or decode(); inside
  // DecodeArgs::on_token, those the token was sampled from. `cancel` as RunArgs::cancel, for a
  // backend that computes them; kCancelled leaves anything in `to`.
  Status (*read)(void* state, Span<float> to, const std::atomic<uint32_t>* cancel, Diag* diag);
};

// Tokens are sampled on the device. REQUIRES: Backend::logits
// (docs/decisions/0011-choosing-on-the-device.md).
struct TokenOps {
  // Samples and runs tokens. On kOk the tokens passed to `on_token` have run, and the logits are
  // those of the last one (with no token: unchanged). On kCancelled or any other failure, all but
  // the last of these tokens have run; after kCancelled the logits are those the last one was
  // sampled from.
  Status (*decode)(void* state, const DecodeArgs& args, DecodeResult* out, Diag* diag);
};

// Tokens of a prompt in a run, at most, where a device chooses. Plans have room for as many.
inline constexpr uint32_t kMostChunkRows = 512;

// The backend computes on a device. Strings are valid as long as the state.
struct DeviceOps {
  const char* (*name)(const void* state);
  // Returns the kernel variants in use and how they were chosen, as human-readable text.
  const char* (*kernel_names)(const void* state);
  // Returns what is avoided for known bugs of the driver, as human-readable text; "": nothing.
  const char* (*quirks)(const void* state);
  // Returns the tokens of a prompt that a run should have, up to kMostChunkRows.
  uint32_t (*chunk_rows)(const void* state);
  // Called once the device has passed its self-test: its caches may then be written to
  // GpuOptions::folder.
  void (*trust)(void* state);
  // Returns the host mapping of the device's Region::kKv, cached and coherent. The host may use it
  // between runs. Valid as long as the state. Empty: not mapped, or shares_kv was not set.
  Span<std::byte> (*kv_mapping)(const void* state);
  // Returns the bytes of weights that the device reads in the file's pages: 0 or
  // BackendPlan::importable_bytes, or those of some of its buffers.
  uint64_t (*imported_bytes)(const void* state);
  // Copies the first bytes of a slice of Region::kActivations to the host.
  Status (*read_values)(void* state, Slice from, Span<std::byte> to, Diag* diag);
};

// KV pages are read and written only where Region::kKv lies in `memory`, so its contents may be
// exchanged between runs. Without it, Region::kKv and Region::kActivations are on a device, and
// `memory` need not back them.
struct HostKvOps {
  // Moves Region::kKv to `kv` from the next run on. `kv` is 64-byte aligned and as large as in the
  // layout.
  void (*place)(void* state, Span<std::byte> kv);
};

// The backend starts and pins threads.
struct ThreadOps {
  // Reads the CPUs on which the threads may run now; for the calling thread, those of the last run.
  void (*read_cpus)(const void* state, ThreadCpus* out);
};

// The backend shares its work with the fallback, which is loaded before it and unloaded after it.
struct PartnerOps {
  // Called once, after load(). `fallback`: the other backend's state, loaded for the same program
  // and memory; null if there is none, which is an error.
  Status (*join)(void* state, void* fallback, Diag* diag);
};

struct Backend {
  const char* name;
  // Adds the backend's needs (state, repacked weights, workspace) to the layout. Pure: allocates
  // nothing, returns the same slices for the same input. May read Weight::data (headers only), but
  // must not require it to be resident.
  Status (*plan)(const Program& program, const BackendOptions& options, Layout* layout,
                 BackendPlan* plan, Diag* diag);
  // Builds the state inside `memory`, which need not be zero-filled. `program` must outlive the
  // state. *state is null on failure.
  Status (*load)(const Program& program, const BackendOptions& options, const BackendPlan& plan,
                 const Memory& memory, void** state, Diag* diag);
  // Runs all steps. Writes logits to Program::logits: row i of the selected rows at i * vocab.
  // Allocates nothing. After an error the KV pages of these rows are undefined; everything else is
  // unchanged, including the logits of the previous run, wherever they are stored.
  Status (*run)(void* state, const RunArgs& args, Diag* diag);
  // Copies between host memory and a slice of Region::kKv.
  Status (*kv_read)(void* state, Slice from, Span<std::byte> to);
  Status (*kv_write)(void* state, Slice to, Span<const std::byte> from);
  // Ends threads and releases everything outside `memory`. Accepts null.
  void (*unload)(void* state);

  bool takes_masks = false;         // RunArgs::mask
  bool takes_prefix_masks = false;  // one without positions, whose rows attend to all up to a place
                                    // that is no earlier in the next row
  bool takes_embeddings = false;    // RunArgs::embeddings
  bool takes_features = false;      // RunArgs::features, beside tokens
  // Capabilities. Null: the backend has none of the table.
  const HostKvOps* host_kv = nullptr;
  const ThreadOps* threads = nullptr;
  const DeviceOps* device = nullptr;
  const LogitsAccess* logits = nullptr;
  const TokenOps* tokens = nullptr;
  const PartnerOps* partner = nullptr;
  const CostOps* cost = nullptr;
};

}  // namespace arn
